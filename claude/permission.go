// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/drover-agents/drover/internal/plainjson"
)

// CanUseTool decides about a tool call that the CLI's rules leave open. It is asked only then: not for tools that a rule,
// the permission mode or a hook allows. There is no deadline; the context ends when the CLI withdraws the question.
//
// An error, a panic, a nil result or a result that cannot be sent denies the call. The text of the error stays in the log.
//
// ToolName may also be a name that is in no tool list, such as "SandboxNetworkAccess".
type CanUseTool func(ctx context.Context, req *PermissionRequest) (PermissionResult, error)

// A PermissionRequest is the CLI's question about one tool call.
type PermissionRequest struct {
	ToolName  string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	// Suggestions are the updates that would make the question unnecessary next time. They may be
	// returned as they are in [Allow.UpdatedPermissions].
	Suggestions []PermissionUpdate `json:"permission_suggestions"`
	BlockedPath string             `json:"blocked_path"`
	// DecisionReason is why the CLI asks; it may contain terminal escape sequences.
	DecisionReason string `json:"decision_reason"`
	// DecisionReasonType is the kind of DecisionReason: "rule", "mode", "workingDir", "hook", ...
	DecisionReasonType      string            `json:"decision_reason_type"`
	DecisionReasonHookEvent HookEvent         `json:"decision_reason_hook_event"`
	ClassifierApprovable    *bool             `json:"classifier_approvable"`
	SuppressAlwaysAllowRule bool              `json:"suppress_always_allow_rule"`
	DefaultToNo             bool              `json:"default_to_no"`
	MatchedAskRule          *MatchedRule      `json:"matched_ask_rule"`
	Title                   string            `json:"title"`
	DisplayName             string            `json:"display_name"`
	Description             string            `json:"description"`
	AgentID                 string            `json:"agent_id"` // set only inside a subagent
	MCPServer               *PermissionServer `json:"mcp_server"`
	// RequiresUserInteraction marks questions that only a person can answer, such as AskUserQuestion and ExitPlanMode.
	RequiresUserInteraction bool `json:"requires_user_interaction"`
	// Raw is the whole request.
	Raw json.RawMessage `json:"-"`
}

// A MatchedRule is the rule that made the CLI ask.
type MatchedRule struct {
	Source      string `json:"source"`
	ToolName    string `json:"tool_name"`
	RuleContent string `json:"rule_content"`
}

// A PermissionServer is the MCP server of the tool. Base trust on Source, not on Name.
type PermissionServer struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// A PermissionResult is an [Allow] or a [Deny].
type PermissionResult interface{ permissionResult() }

// Allows reports whether the answer lets the tool run.
func Allows(result PermissionResult) bool {
	switch r := result.(type) {
	case Allow:
		return true
	case *Allow:
		return r != nil
	}
	return false
}

// A DecisionClass is the kind of decision that the user made.
type DecisionClass string

// The classes of decisions.
const (
	UserTemporary DecisionClass = "user_temporary"
	UserPermanent DecisionClass = "user_permanent"
	UserReject    DecisionClass = "user_reject"
)

// Allow lets the tool run.
type Allow struct {
	// UpdatedInput is the input to run it with: a json.RawMessage or a value that marshals to an
	// object. Nil means the input as asked.
	UpdatedInput any
	// UpdatedPermissions change the rules from now on; at most 4096, with at most 4096 rules or directories each.
	UpdatedPermissions []PermissionUpdate
	// Classification is optional.
	Classification DecisionClass
}

// Deny keeps the tool from running.
type Deny struct {
	// Message is what the model reads. Empty means a general refusal.
	Message string
	// Interrupt ends the turn as well.
	Interrupt bool
	// Classification is optional.
	Classification DecisionClass
}

func (Allow) permissionResult() {}
func (Deny) permissionResult()  {}

// permissionWire is the CLI's form of both results.
type permissionWire struct {
	Behavior           string             `json:"behavior"`
	Message            string             `json:"message,omitzero"`
	Interrupt          bool               `json:"interrupt,omitzero"`
	UpdatedInput       any                `json:"updatedInput,omitzero"`
	UpdatedPermissions []PermissionUpdate `json:"updatedPermissions,omitzero"`
	ToolUseID          string             `json:"toolUseID,omitzero"`
	Classification     DecisionClass      `json:"decisionClassification,omitzero"`
}

func (a Allow) wire() permissionWire {
	return permissionWire{Behavior: "allow", UpdatedInput: a.UpdatedInput, UpdatedPermissions: a.UpdatedPermissions, Classification: a.Classification}
}

func (d Deny) wire() permissionWire {
	if d.Message == "" {
		d.Message = generalRefusal
	}
	return permissionWire{Behavior: "deny", Message: d.Message, Interrupt: d.Interrupt, Classification: d.Classification}
}

// MarshalJSON gives the form that a PermissionRequest hook answers with.
func (a Allow) MarshalJSON() ([]byte, error) {
	if err := checkUpdates(a.UpdatedPermissions); err != nil {
		return nil, err
	}
	if err := checkInput(a.UpdatedInput); err != nil {
		return nil, err
	}
	return plainjson.Marshal(a.wire())
}

// MarshalJSON gives the form that a PermissionRequest hook answers with.
func (d Deny) MarshalJSON() ([]byte, error) { return plainjson.Marshal(d.wire()) }

// servePermission answers a can_use_tool request. It never panics and returns a JSON object; failures become a denial.
func servePermission(ctx context.Context, log *slog.Logger, fn CanUseTool, req json.RawMessage) (answer json.RawMessage) {
	var asked PermissionRequest
	defer func() {
		if p := recover(); p != nil {
			log.ErrorContext(ctx, "permission callback panicked", "tool", asked.ToolName, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			answer = denial(asked.ToolUseID)
		}
	}()
	answer, err := decidePermission(ctx, fn, req, &asked)
	if err != nil {
		log.ErrorContext(ctx, "permission callback failed", "tool", asked.ToolName, "error", err)
		return denial(asked.ToolUseID)
	}
	return answer
}

func decidePermission(ctx context.Context, fn CanUseTool, req json.RawMessage, asked *PermissionRequest) (json.RawMessage, error) {
	if err := decodeObject(req, asked); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if asked.ToolName == "" || asked.Input == nil {
		return nil, errIncomplete
	}
	if fn == nil {
		return nil, errors.New("no CanUseTool function is set")
	}
	asked.Raw = req
	result, err := fn(ctx, asked)
	if err != nil {
		return nil, err
	}
	return encodePermission(result, asked)
}

func encodePermission(result PermissionResult, asked *PermissionRequest) (json.RawMessage, error) {
	w, err := resultWire(result)
	if err != nil {
		return nil, err
	}
	if w.Behavior == "allow" && isNil(w.UpdatedInput) {
		w.UpdatedInput = asked.Input // older CLIs need it
	}
	w.ToolUseID = asked.ToolUseID
	return plainjson.Marshal(w)
}

func resultWire(result PermissionResult) (permissionWire, error) {
	switch r := result.(type) {
	case *Allow:
		if r != nil {
			return resultWire(*r)
		}
	case *Deny:
		if r != nil {
			return r.wire(), nil
		}
	case Allow:
		if err := checkUpdates(r.UpdatedPermissions); err != nil {
			return permissionWire{}, err
		}
		return r.wire(), checkInput(r.UpdatedInput)
	case Deny:
		return r.wire(), nil
	}
	return permissionWire{}, errors.New("the callback gave no result")
}

// checkInput refuses an updated input that is not an object: the CLI would deny the call with an internal error.
func checkInput(input any) error {
	if isNil(input) {
		return nil
	}
	b, err := plainjson.Marshal(input)
	if err == nil && b[0] != '{' {
		err = errNotObject
	}
	if err != nil {
		return fmt.Errorf("updated input: %w", err)
	}
	return nil
}

// denial is the answer to a question that the callback could not answer.
func denial(toolUseID string) json.RawMessage {
	w := Deny{Message: permissionFailed}.wire()
	w.ToolUseID = toolUseID
	answer, err := plainjson.Marshal(w)
	if err != nil { // cannot happen: only strings are encoded
		panic(err)
	}
	return answer
}
