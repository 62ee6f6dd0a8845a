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

// HookRun names a run of a command hook. It is part of [HookStarted], [HookProgress] and
// [HookResponse], which come only when hook events are asked for.
type HookRun struct {
	HookID    string
	HookName  string
	HookEvent string
}

// HookPrint is what a command hook printed.
type HookPrint struct {
	Stdout string
	Stderr string
	Output string
}

// A HookStarted reports that a command hook runs.
type HookStarted struct {
	MessageHeader
	HookRun
}

// A HookProgress is what a command hook has printed so far.
type HookProgress struct {
	MessageHeader
	HookRun
	HookPrint
}

// A HookResponse reports that a command hook has ended.
type HookResponse struct {
	MessageHeader
	HookRun
	HookPrint
	ExitCode *int   // nil without an exit code
	Outcome  string // success, error or cancelled
}

// A PluginInstall reports how the installation of plugins goes.
type PluginInstall struct {
	MessageHeader
	Status string // started, installed, failed or completed
	Name   string
	Error  string
}

// A WorkerShuttingDown reports that the CLI is about to end.
type WorkerShuttingDown struct {
	MessageHeader
	Reason string
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

// A NotificationMessage is a note for the user interface.
type NotificationMessage struct {
	MessageHeader
	Key      string
	Text     string
	Priority string
	Color    string
	Timeout  *time.Duration // nil if it stays
}

// A FilesPersisted lists files that were stored; their shape is not documented.
type FilesPersisted struct {
	MessageHeader
	Files       []json.RawMessage
	Failed      []json.RawMessage
	ProcessedAt time.Time
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

// An ElicitationComplete reports that a question of an MCP server was answered elsewhere.
type ElicitationComplete struct {
	MessageHeader
	MCPServerName string
	ElicitationID string
}

// A PermissionDenied reports a tool call refused without a question. Only the list in the [ResultMessage] is complete.
type PermissionDenied struct {
	MessageHeader
	ToolName           string
	ToolUseID          string
	AgentID            string
	DecisionReasonType string
	DecisionReason     string
	Message            string
}

// A MirrorError reports that transcript entries could not be given to the session store.
type MirrorError struct {
	MessageHeader
	Error string
	Key   json.RawMessage
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

// A SessionWritesLost reports, when the CLI ends, that the disk was full and the transcript is not complete.
type SessionWritesLost struct {
	MessageHeader
	ErrorCode            string // ENOSPC or EDQUOT
	Lost                 []json.RawMessage
	TranscriptSessionIDs []string
}
