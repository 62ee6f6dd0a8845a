// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"time"
)

// A LocalCommandOutput is what a command printed that the CLI ran itself.
type LocalCommandOutput struct {
	MessageHeader
	Content string
}

func (m *LocalCommandOutput) field(d *msgDecoder, key []byte) bool {
	if string(key) != "content" {
		return false
	}
	m.Content = d.str()
	return true
}

// HookRun names a run of a command hook. It is part of [HookStarted], [HookProgress] and
// [HookResponse], which come only when hook events are asked for.
type HookRun struct {
	HookID    string
	HookName  string
	HookEvent string
}

func (r *HookRun) runField(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "hook_id":
		r.HookID = d.str()
	case "hook_name":
		r.HookName = d.str()
	case "hook_event":
		r.HookEvent = d.str()
	default:
		return false
	}
	return true
}

// HookPrint is what a command hook printed.
type HookPrint struct {
	Stdout string
	Stderr string
	Output string
}

func (p *HookPrint) printField(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "stdout":
		p.Stdout = d.str()
	case "stderr":
		p.Stderr = d.str()
	case "output":
		p.Output = d.str()
	default:
		return false
	}
	return true
}

// A HookStarted says that a command hook runs.
type HookStarted struct {
	MessageHeader
	HookRun
}

func (m *HookStarted) field(d *msgDecoder, key []byte) bool { return m.runField(d, key) }

// A HookProgress is what a command hook has printed so far.
type HookProgress struct {
	MessageHeader
	HookRun
	HookPrint
}

func (m *HookProgress) field(d *msgDecoder, key []byte) bool {
	return m.runField(d, key) || m.printField(d, key)
}

// A HookResponse says that a command hook has ended.
type HookResponse struct {
	MessageHeader
	HookRun
	HookPrint
	ExitCode *int   // nil if there was none
	Outcome  string // success, error or cancelled
}

func (m *HookResponse) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "exit_code":
		m.ExitCode = d.intPtr()
	case "outcome":
		m.Outcome = d.str()
	default:
		return m.runField(d, key) || m.printField(d, key)
	}
	return true
}

// A PluginInstall tells how the installation of plugins goes.
type PluginInstall struct {
	MessageHeader
	Status string // started, installed, failed or completed
	Name   string
	Error  string
}

func (m *PluginInstall) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "status":
		m.Status = d.str()
	case "name":
		m.Name = d.str()
	case "error":
		m.Error = d.str()
	default:
		return false
	}
	return true
}

// A WorkerShuttingDown says that the CLI is about to end.
type WorkerShuttingDown struct {
	MessageHeader
	Reason string
}

func (m *WorkerShuttingDown) field(d *msgDecoder, key []byte) bool {
	if string(key) != "reason" {
		return false
	}
	m.Reason = d.str()
	return true
}

// A CommandsChanged lists all commands, replacing any earlier list.
type CommandsChanged struct {
	MessageHeader
	Commands []SlashCommand
}

// A SlashCommand is a command that a prompt may start with.
type SlashCommand struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	ArgumentHint string   `json:"argumentHint"`
	Aliases      []string `json:"aliases,omitempty"`
	Builtin      bool     `json:"builtin,omitempty"`
}

func (m *CommandsChanged) field(d *msgDecoder, key []byte) bool {
	if string(key) != "commands" {
		return false
	}
	m.Commands = objectList[SlashCommand](d)
	return true
}

func (c *SlashCommand) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "name":
		c.Name = d.str()
	case "description":
		c.Description = d.str()
	case "argumentHint":
		c.ArgumentHint = d.str()
	case "aliases":
		c.Aliases = d.strs()
	case "builtin":
		c.Builtin = d.bool()
	default:
		return false
	}
	return true
}

// A NotificationMessage is a note for the user interface.
type NotificationMessage struct {
	MessageHeader
	Key      string
	Text     string
	Priority string
	Color    string
	Timeout  *time.Duration // nil if it stays
}

func (m *NotificationMessage) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "key":
		m.Key = d.str()
	case "text":
		m.Text = d.str()
	case "priority":
		m.Priority = d.str()
	case "color":
		m.Color = d.str()
	case "timeout_ms":
		m.Timeout = d.millisPtr()
	default:
		return false
	}
	return true
}

// A FilesPersisted lists files that were stored; their shape is not documented.
type FilesPersisted struct {
	MessageHeader
	Files       []json.RawMessage
	Failed      []json.RawMessage
	ProcessedAt time.Time
}

func (m *FilesPersisted) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "files":
		m.Files = d.raws()
	case "failed":
		m.Failed = d.raws()
	case "processed_at":
		m.ProcessedAt = d.time()
	default:
		return false
	}
	return true
}

// A MemoryRecall lists the memories that were put into the conversation.
type MemoryRecall struct {
	MessageHeader
	Mode     string
	Memories []RecalledMemory
}

// A RecalledMemory is a file of the CLI's memory.
type RecalledMemory struct {
	Path    string
	Scope   string
	Content string
}

func (m *MemoryRecall) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "mode":
		m.Mode = d.str()
	case "memories":
		m.Memories = objectList[RecalledMemory](d)
	default:
		return false
	}
	return true
}

func (m *RecalledMemory) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "path":
		m.Path = d.str()
	case "scope":
		m.Scope = d.str()
	case "content":
		m.Content = d.str()
	default:
		return false
	}
	return true
}

// An ElicitationComplete says that a question of an MCP server was answered elsewhere.
type ElicitationComplete struct {
	MessageHeader
	MCPServerName string
	ElicitationID string
}

func (m *ElicitationComplete) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "mcp_server_name":
		m.MCPServerName = d.str()
	case "elicitation_id":
		m.ElicitationID = d.str()
	default:
		return false
	}
	return true
}

// A PermissionDenied says that a tool call was refused without asking. It is advice: the list in
// the [ResultMessage] is complete.
type PermissionDenied struct {
	MessageHeader
	ToolName           string
	ToolUseID          string
	AgentID            string
	DecisionReasonType string
	DecisionReason     string
	Message            string
}

func (m *PermissionDenied) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "tool_name":
		m.ToolName = d.str()
	case "tool_use_id":
		m.ToolUseID = d.str()
	case "agent_id":
		m.AgentID = d.str()
	case "decision_reason_type":
		m.DecisionReasonType = d.str()
	case "decision_reason":
		m.DecisionReason = d.str()
	case "message":
		m.Message = d.str()
	default:
		return false
	}
	return true
}

// A MirrorError says that transcript entries could not be given to the session store.
type MirrorError struct {
	MessageHeader
	Error string
	Key   json.RawMessage
}

func (m *MirrorError) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "error":
		m.Error = d.str()
	case "key":
		m.Key = d.raw()
	default:
		return false
	}
	return true
}

// An Informational is a remark of the CLI, for example about a hook whose answer it ignored.
type Informational struct {
	MessageHeader
	Content             string
	Level               string // info, notice, suggestion or warning
	ToolUseID           string
	PreventContinuation bool
	Tag                 string // for example hook_callback_failed
	PromptSubmitOutcome json.RawMessage
}

func (m *Informational) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "content":
		m.Content = d.str()
	case "level":
		m.Level = d.str()
	case "tool_use_id":
		m.ToolUseID = d.str()
	case "prevent_continuation":
		m.PreventContinuation = d.bool()
	case "tag":
		m.Tag = d.str()
	case "prompt_submit_outcome":
		m.PromptSubmitOutcome = d.raw()
	default:
		return false
	}
	return true
}

// A SessionWritesLost says, when the CLI ends, that the disk was full and the transcript is not
// complete.
type SessionWritesLost struct {
	MessageHeader
	ErrorCode            string // ENOSPC or EDQUOT
	Lost                 []json.RawMessage
	TranscriptSessionIDs []string
}

func (m *SessionWritesLost) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "error_code":
		m.ErrorCode = d.str()
	case "lost":
		m.Lost = d.raws()
	case "transcript_session_ids":
		m.TranscriptSessionIDs = d.strs()
	default:
		return false
	}
	return true
}
