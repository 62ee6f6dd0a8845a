// SPDX-License-Identifier: Apache-2.0

package claude

import "encoding/json"

// A HookInput is the CLI's input to a hook: a pointer to an Input type such as [*PreToolUseInput], or [*UnknownHookInput].
type HookInput interface {
	hookEvent() HookEvent
	common() *HookCommon
}

// HookCommon holds what every hook input carries. Fields that the CLI left out are zero.
type HookCommon struct {
	Event          HookEvent `json:"hook_event_name"`
	SessionID      string    `json:"session_id"`
	TranscriptPath string    `json:"transcript_path"`
	Cwd            string    `json:"cwd"`
	// PromptID ties the call to the user's prompt; older CLIs do not send it.
	PromptID       string         `json:"prompt_id"`
	PermissionMode PermissionMode `json:"permission_mode"`
	// AgentID is set only inside a subagent.
	AgentID   string     `json:"agent_id"`
	AgentType string     `json:"agent_type"`
	Effort    HookEffort `json:"effort"`
	// Raw is the whole input as the CLI sent it, with the fields that this package does not know.
	Raw json.RawMessage `json:"-"`
}

func (c *HookCommon) common() *HookCommon { return c }

// HookEffort is the thinking effort in force; Level is "" if the CLI did not send it.
type HookEffort struct {
	Level string `json:"level"`
}

// HookMCPServer names the MCP server that a tool belongs to.
type HookMCPServer struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// An UnknownHookInput is the input of an event that this version does not know; see Raw.
type UnknownHookInput struct{ HookCommon }

// PreToolUseInput is the input of the PreToolUse event: a tool is about to run.
type PreToolUseInput struct {
	HookCommon
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
	MCPServer HookMCPServer   `json:"mcp_server"`
}

// PostToolUseInput is the input of the PostToolUse event: a tool has succeeded.
type PostToolUseInput struct {
	HookCommon
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
	// ToolResponse has the shape of the tool's own output.
	ToolResponse json.RawMessage `json:"tool_response"`
	DurationMS   float64         `json:"duration_ms"`
	MCPServer    HookMCPServer   `json:"mcp_server"`
}

// PostToolUseFailureInput is the input of the PostToolUseFailure event: a tool has failed.
type PostToolUseFailureInput struct {
	HookCommon
	ToolName    string          `json:"tool_name"`
	ToolInput   json.RawMessage `json:"tool_input"`
	ToolUseID   string          `json:"tool_use_id"`
	Error       string          `json:"error"`
	IsInterrupt bool            `json:"is_interrupt"`
	DurationMS  float64         `json:"duration_ms"`
	MCPServer   HookMCPServer   `json:"mcp_server"`
}

// PostToolBatchInput is the input of the PostToolBatch event: all tool calls of one assistant message have ended.
type PostToolBatchInput struct {
	HookCommon
	ToolCalls []HookToolCall `json:"tool_calls"`
}

// A HookToolCall is one call of a batch. ToolResponse is what the model is going to read.
type HookToolCall struct {
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolUseID    string          `json:"tool_use_id"`
	ToolResponse json.RawMessage `json:"tool_response"`
}

// PermissionRequestInput is the input of the PermissionRequest event: the rules require a question. The CLI
// asks [CanUseTool] at the same moment; the first answer decides.
type PermissionRequestInput struct {
	HookCommon
	ToolName    string             `json:"tool_name"`
	ToolInput   json.RawMessage    `json:"tool_input"`
	Suggestions []PermissionUpdate `json:"permission_suggestions"`
	MCPServer   HookMCPServer      `json:"mcp_server"`
}

// PermissionDeniedInput is the input of the PermissionDenied event: mode "auto" has denied a call.
type PermissionDeniedInput struct {
	HookCommon
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
	Reason    string          `json:"reason"`
	MCPServer HookMCPServer   `json:"mcp_server"`
}

// UserPromptSubmitInput is the input of the UserPromptSubmit event.
type UserPromptSubmitInput struct {
	HookCommon
	Prompt       string `json:"prompt"`
	Source       string `json:"source"`
	SessionTitle string `json:"session_title"`
}

// UserPromptExpansionInput is the input of the UserPromptExpansion event: a slash command becomes a prompt.
type UserPromptExpansionInput struct {
	HookCommon
	ExpansionType string `json:"expansion_type"`
	CommandName   string `json:"command_name"`
	CommandArgs   string `json:"command_args"`
	CommandSource string `json:"command_source"`
	Prompt        string `json:"prompt"`
}

// StopInput is the input of the Stop event: the turn is about to end.
type StopInput struct {
	HookCommon
	// StopHookActive is true when an earlier Stop hook already kept this turn going.
	StopHookActive       bool              `json:"stop_hook_active"`
	LastAssistantMessage string            `json:"last_assistant_message"`
	BackgroundTasks      []json.RawMessage `json:"background_tasks"`
	SessionCrons         []json.RawMessage `json:"session_crons"`
}

// StopFailureInput is the input of the StopFailure event: the turn ended on an API error.
type StopFailureInput struct {
	HookCommon
	Error                string          `json:"error"`
	ErrorDetails         json.RawMessage `json:"error_details"`
	LastAssistantMessage string          `json:"last_assistant_message"`
}

// SubagentStartInput is the input of the SubagentStart event; see AgentID and AgentType.
type SubagentStartInput struct{ HookCommon }

// SubagentStopInput is the input of the SubagentStop event. The CLI's internal agents have the empty AgentType.
type SubagentStopInput struct {
	HookCommon
	StopHookActive       bool              `json:"stop_hook_active"`
	AgentTranscriptPath  string            `json:"agent_transcript_path"`
	LastAssistantMessage string            `json:"last_assistant_message"`
	BackgroundTasks      []json.RawMessage `json:"background_tasks"`
	SessionCrons         []json.RawMessage `json:"session_crons"`
}
