// SPDX-License-Identifier: Apache-2.0

package claude

import "encoding/json"

// PreCompactInput is the input of the PreCompact event.
type PreCompactInput struct {
	HookCommon
	Trigger string `json:"trigger"` // "manual" or "auto"
	// CustomInstructions is nil where none were given.
	CustomInstructions *string `json:"custom_instructions"`
}

// PostCompactInput is the input of the PostCompact event.
type PostCompactInput struct {
	HookCommon
	Trigger        string `json:"trigger"`
	CompactSummary string `json:"compact_summary"`
}

// ModelSwitch describes a change of model.
type ModelSwitch struct {
	FromModel              string  `json:"from_model"`
	ToModel                string  `json:"to_model"`
	RequestedModel         string  `json:"requested_model"`
	Source                 string  `json:"source"` // "sdk" for SetModel
	ContextTokens          int     `json:"context_tokens"`
	PromptCacheWarm        bool    `json:"prompt_cache_warm"`
	CacheTTL               string  `json:"cache_ttl"`
	EstimatedCacheWriteUSD float64 `json:"estimated_cache_write_usd"`
	Pricing                string  `json:"pricing"`
}

// PreModelSwitchInput is the input of the PreModelSwitch event.
type PreModelSwitchInput struct {
	HookCommon
	ModelSwitch
}

// PostModelSwitchInput is the input of the PostModelSwitch event.
type PostModelSwitchInput struct {
	HookCommon
	ModelSwitch
}

// SessionStartInput is the input of the SessionStart event. The CLI calls callbacks only for "clear" and "compact".
type SessionStartInput struct {
	HookCommon
	Source                   string  `json:"source"`
	Model                    string  `json:"model"`
	SessionTitle             string  `json:"session_title"`
	SecondsSinceLastResponse float64 `json:"seconds_since_last_response"`
	ContextTokens            int     `json:"context_tokens"`
	PromptCacheLikelyExpired bool    `json:"prompt_cache_likely_expired"`
	EstimatedCacheWriteUSD   float64 `json:"estimated_cache_write_usd"`
}

// SessionEndInput is the input of the SessionEnd event. The CLI calls callbacks only for the reason "clear".
type SessionEndInput struct {
	HookCommon
	Reason string `json:"reason"`
}

// SetupInput is the input of the Setup event, which no known CLI gives to callbacks.
type SetupInput struct {
	HookCommon
	Trigger string `json:"trigger"`
}

// InstructionsLoadedInput is the input of the InstructionsLoaded event: a CLAUDE.md or rule file was read.
type InstructionsLoadedInput struct {
	HookCommon
	FilePath        string   `json:"file_path"`
	MemoryType      string   `json:"memory_type"`
	LoadReason      string   `json:"load_reason"`
	Globs           []string `json:"globs"`
	TriggerFilePath string   `json:"trigger_file_path"`
	ParentFilePath  string   `json:"parent_file_path"`
}

// MessageDisplayInput is the input of the MessageDisplay event: a piece of assistant text.
type MessageDisplayInput struct {
	HookCommon
	TurnID    string `json:"turn_id"`
	MessageID string `json:"message_id"`
	Index     int    `json:"index"`
	Final     bool   `json:"final"`
	Delta     string `json:"delta"`
}

// NotificationInput is the input of the Notification event.
type NotificationInput struct {
	HookCommon
	Message          string `json:"message"`
	Title            string `json:"title"`
	NotificationType string `json:"notification_type"`
}

// ElicitationInput is the input of the Elicitation event: an MCP server asks the user something.
type ElicitationInput struct {
	HookCommon
	MCPServerName   string          `json:"mcp_server_name"`
	Message         string          `json:"message"`
	Mode            string          `json:"mode"`
	URL             string          `json:"url"`
	ElicitationID   string          `json:"elicitation_id"`
	RequestedSchema json.RawMessage `json:"requested_schema"`
}

// ElicitationResultInput is the input of the ElicitationResult event.
type ElicitationResultInput struct {
	HookCommon
	MCPServerName string            `json:"mcp_server_name"`
	ElicitationID string            `json:"elicitation_id"`
	Mode          string            `json:"mode"`
	Action        ElicitationAction `json:"action"`
	Content       json.RawMessage   `json:"content"`
}

// ConfigChangeInput is the input of the ConfigChange event: a settings file was edited.
type ConfigChangeInput struct {
	HookCommon
	Source   string `json:"source"`
	FilePath string `json:"file_path"`
}

// CwdChangedInput is the input of the CwdChanged event.
type CwdChangedInput struct {
	HookCommon
	OldCwd string `json:"old_cwd"`
	NewCwd string `json:"new_cwd"`
}

// FileChangedInput is the input of the FileChanged event, for paths that a hook asked to watch.
type FileChangedInput struct {
	HookCommon
	FilePath string `json:"file_path"`
	Change   string `json:"event"` // "change", "add" or "unlink"
}

// DirectoryAddedInput is the input of the DirectoryAdded event.
type DirectoryAddedInput struct {
	HookCommon
	Directory string `json:"directory"`
	Source    string `json:"source"`
}

// WorktreeCreateInput is the input of the WorktreeCreate event.
type WorktreeCreateInput struct {
	HookCommon
	Name string `json:"name"`
}

// WorktreeRemoveInput is the input of the WorktreeRemove event.
type WorktreeRemoveInput struct {
	HookCommon
	WorktreePath string `json:"worktree_path"`
}

// HookTask describes an entry of the agent's task list.
type HookTask struct {
	TaskID          string `json:"task_id"`
	TaskSubject     string `json:"task_subject"`
	TaskDescription string `json:"task_description"`
	TeammateName    string `json:"teammate_name"`
	TeamName        string `json:"team_name"`
}

// TaskCreatedInput is the input of the TaskCreated event.
type TaskCreatedInput struct {
	HookCommon
	HookTask
}

// TaskCompletedInput is the input of the TaskCompleted event.
type TaskCompletedInput struct {
	HookCommon
	HookTask
}

// TeammateIdleInput is the input of the TeammateIdle event.
type TeammateIdleInput struct {
	HookCommon
	TeammateName string `json:"teammate_name"`
	// TeamName is deprecated by the CLI.
	TeamName string `json:"team_name"`
}
