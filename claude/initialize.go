// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"fmt"
	"slices"
)

// An InitializeResult is the CLI's answer to the handshake. Fields that older CLIs do not send are
// zero; pointers distinguish false from not sent.
type InitializeResult struct {
	Commands              []SlashCommand `json:"commands"`
	Agents                []AgentInfo    `json:"agents"`
	Models                []ModelInfo    `json:"models"`
	Account               AccountInfo    `json:"account"`
	OutputStyle           string         `json:"output_style"`
	AvailableOutputStyles []string       `json:"available_output_styles"`
	// Version is the CLI's version, "" on older CLIs.
	Version string `json:"claude_code_version"`
	PID     int    `json:"pid"`
	// Capabilities name optional parts of the protocol.
	Capabilities           []string       `json:"capabilities"`
	CurrentPermissionMode  PermissionMode `json:"current_permission_mode"`
	SessionState           string         `json:"session_state"`
	HooksApplied           *bool          `json:"hooks_applied"`
	HookOnFailureSupported *bool          `json:"hook_on_failure_supported"`
	PluginsApplied         *bool          `json:"plugins_applied"`
	// MCPManifestsParked has for each in-process server "parked" if its manifest was accepted, else the reason.
	MCPManifestsParked     map[string]string `json:"sdk_mcp_manifests_parked"`
	FastModeState          string            `json:"fast_mode_state"`
	FastModeDisabledReason string            `json:"fast_mode_disabled_reason"`
	// Pending are whole control requests that were asked before and wait for an answer.
	Pending []json.RawMessage `json:"-"`
	// Raw is the whole introduction.
	Raw json.RawMessage `json:"-"`
}

// AgentInfo describes a subagent that the model may start.
type AgentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model"`
}

// ModelInfo describes a model that may be chosen.
type ModelInfo struct {
	// Value is what to give as the model.
	Value                    string   `json:"value"`
	ResolvedModel            string   `json:"resolvedModel"`
	DisplayName              string   `json:"displayName"`
	Description              string   `json:"description"`
	SupportsEffort           bool     `json:"supportsEffort"`
	SupportedEffortLevels    []string `json:"supportedEffortLevels"`
	SupportsAdaptiveThinking bool     `json:"supportsAdaptiveThinking"`
	SupportsFastMode         bool     `json:"supportsFastMode"`
	SupportsAutoMode         bool     `json:"supportsAutoMode"`
}

// AccountInfo is the account that the CLI uses. It holds no secret.
type AccountInfo struct {
	Email            string `json:"email"`
	Organization     string `json:"organization"`
	SubscriptionType string `json:"subscriptionType"`
	TokenSource      string `json:"tokenSource"`
	APIKeySource     string `json:"apiKeySource"`
	APIProvider      string `json:"apiProvider"`
}

// checkHooks returns an error if this CLI did not accept all hooks as sent.
func (r *InitializeResult) checkHooks(hooks []Hook) error {
	switch {
	case len(hooks) == 0:
		return nil
	case r.HooksApplied != nil && !*r.HooksApplied:
		return fmt.Errorf("claude: the CLI did not apply the hooks: %w", &OptionError{"Hooks", "settings or a policy of this machine forbid them"})
	case needsOnFailure(hooks) && (r.HookOnFailureSupported == nil || !*r.HookOnFailureSupported):
		return fmt.Errorf("%w: %w", ErrTooOld, &OptionError{"Hooks", fmt.Sprintf("OnFailure %q is not supported by CLI %s", FailBlock, r.Version)})
	}
	if err := validateHooksFor(r.Version, hooks); err != nil {
		return fmt.Errorf("%w: %w", ErrTooOld, err)
	}
	return nil
}

// decodeInitializeResult decodes the response member of the control response to initialize. Requests
// that still wait for an answer are beside the payload, not in it.
func decodeInitializeResult(response json.RawMessage) (*InitializeResult, error) {
	var envelope struct {
		Response    json.RawMessage   `json:"response"`
		Permissions []json.RawMessage `json:"pending_permission_requests"`
		Dialogs     []json.RawMessage `json:"pending_user_dialog_requests"`
		Elicitation []json.RawMessage `json:"pending_elicitation_requests"`
	}
	if err := json.Unmarshal(response, &envelope); err != nil {
		return nil, fmt.Errorf("claude: answer to initialize: %w", err)
	}
	result := &InitializeResult{Raw: envelope.Response}
	if s := string(envelope.Response); s != "" && s != "null" {
		if err := decodeObject(envelope.Response, result); err != nil && !isFieldError(err) {
			return nil, fmt.Errorf("claude: answer to initialize: %w", err)
		}
	}
	result.Pending = slices.Concat(envelope.Permissions, envelope.Dialogs, envelope.Elicitation)
	return result, nil
}
