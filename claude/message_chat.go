// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"time"
)

// An AssistantMessage is one completed block of the model's answer. The blocks of one answer are separate messages that
// share MessageID; StopReason and Usage are not final in them: take totals from the [ResultMessage].
type AssistantMessage struct {
	MessageHeader
	// MessageID, Model, Content, StopReason and Usage are of the API's message. Model is "<synthetic>" for messages that the
	// CLI made itself.
	MessageID    string
	Model        string
	Content      []Block
	StopReason   string
	StopSequence string
	Usage        Usage
	// ParentToolUseID is the tool call that runs the subagent of the message, or empty.
	ParentToolUseID string
	// Error is the class of an API error, for example "rate_limit", or empty.
	Error             string
	IsAPIErrorMessage bool
	APIErrorStatus    int
	APIErrorType      string
	// RequestID is the API's id of the request that was answered.
	RequestID                     string
	UserMessageUUID               string
	UserMessageUUIDs              []string
	ResumeReason                  string
	ResumedFromIncompleteThinking bool
	// Supersedes are the messages that this one replaces.
	Supersedes []string
	// Aborted is true for the part of an answer that was cut off by an interrupt.
	Aborted         bool
	AgentID         string
	SubagentType    string
	TaskDescription string
	Timestamp       time.Time
	ContextUsage    json.RawMessage
	UsageReport     json.RawMessage
	ToolUseMeta     []ToolUseMeta

	one [1]Block // memory for Content: nearly always one block
}

// ToolUseMeta is how a tool call may be shown to people.
type ToolUseMeta struct {
	ID                string
	DisplayName       string
	ServerDisplayName string
	ToolName          string
}

// Text returns the text of the message, without thinking and tool calls.
func (m *AssistantMessage) Text() string { return joinText(m.Content, "") }

// ToolUses returns the tool calls of the message.
func (m *AssistantMessage) ToolUses() []*ToolUseBlock {
	return blocksOf[*ToolUseBlock](m.Content)
}

func (m *AssistantMessage) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "message":
		d.object((*apiMessage)(m))
	case "parent_tool_use_id":
		m.ParentToolUseID = d.str()
	case "error":
		m.Error = d.str()
	case "is_api_error_message":
		m.IsAPIErrorMessage = d.bool()
	case "api_error_status":
		m.APIErrorStatus = d.int()
	case "api_error_type":
		m.APIErrorType = d.str()
	case "request_id":
		m.RequestID = d.str()
	case "user_message_uuid":
		m.UserMessageUUID = d.str()
	case "user_message_uuids":
		m.UserMessageUUIDs = d.strs()
	case "resume_reason":
		m.ResumeReason = d.str()
	case "resumed_from_incomplete_thinking":
		m.ResumedFromIncompleteThinking = d.bool()
	case "supersedes":
		m.Supersedes = d.strs()
	case "aborted":
		m.Aborted = d.bool()
	case "agent_id":
		m.AgentID = d.str()
	case "subagent_type":
		m.SubagentType = d.str()
	case "task_description":
		m.TaskDescription = d.str()
	case "timestamp":
		m.Timestamp = d.time()
	case "context_usage":
		m.ContextUsage = d.raw()
	case "usage_report":
		m.UsageReport = d.raw()
	case "tool_use_meta":
		d.value(&m.ToolUseMeta, 0)
	default:
		return false
	}
	return true
}

// apiMessage reads the API's message inside an assistant message.
type apiMessage AssistantMessage

func (m *apiMessage) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "id":
		m.MessageID = d.str()
	case "model":
		m.Model = d.str()
	case "content":
		m.Content = d.content(&m.one)
	case "stop_reason":
		m.StopReason = d.str()
	case "stop_sequence":
		m.StopSequence = d.str()
	case "usage":
		m.Usage = d.usage()
	default:
		return false
	}
	return true
}

// A UserMessage is on the user's side of the conversation: most often a tool call's result, or a replayed prompt.
type UserMessage struct {
	MessageHeader
	// Content is what the model sees. A plain string becomes one [TextBlock].
	Content []Block
	// ParentToolUseID is the tool call that runs the subagent concerned, or empty.
	ParentToolUseID string
	// ToolUseResult is the tool's own account of its result; its shape depends on the tool, and on failure it is a string.
	ToolUseResult json.RawMessage
	// ToolResultMeta is raw, one element for each result.
	ToolResultMeta []json.RawMessage
	// IsSynthetic is true for text that the CLI put in.
	IsSynthetic bool
	// IsReplay is true for a prompt of ours that is echoed.
	IsReplay        bool
	FileAttachments json.RawMessage
	// Origin is the author of a prompt; nil means the user.
	Origin   *Origin
	Priority string
	// ShouldQuery is false for a message that starts no turn, nil if it was not sent.
	ShouldQuery     *bool
	ClientComposed  bool
	Timestamp       time.Time
	AgentID         string
	SubagentType    string
	TaskDescription string

	one [1]Block // memory for Content
}

// Text returns the text of the message, without tool results.
func (m *UserMessage) Text() string { return joinText(m.Content, "\n") }

// ToolResults returns the results of tool calls in the message.
func (m *UserMessage) ToolResults() []*ToolResultBlock {
	return blocksOf[*ToolResultBlock](m.Content)
}

func (m *UserMessage) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "message":
		d.object((*apiPrompt)(m))
	case "parent_tool_use_id":
		m.ParentToolUseID = d.str()
	case "tool_use_result":
		m.ToolUseResult = d.raw()
	case "tool_result_meta":
		m.ToolResultMeta = d.raws()
	case "isSynthetic":
		m.IsSynthetic = d.bool()
	case "isReplay":
		m.IsReplay = d.bool()
	case "file_attachments":
		m.FileAttachments = d.raw()
	case "origin":
		d.value(&m.Origin, 0)
	case "priority":
		m.Priority = d.str()
	case "shouldQuery":
		m.ShouldQuery = present(d.Bool())
	case "client_composed":
		m.ClientComposed = d.bool()
	case "timestamp":
		m.Timestamp = d.time()
	case "agent_id":
		m.AgentID = d.str()
	case "subagent_type":
		m.SubagentType = d.str()
	case "task_description":
		m.TaskDescription = d.str()
	default:
		return false
	}
	return true
}

// apiPrompt reads the API's message inside a user message.
type apiPrompt UserMessage

func (m *apiPrompt) field(d *msgDecoder, key []byte) bool {
	if string(key) != "content" {
		return false
	}
	m.Content = d.content(&m.one)
	return true
}

// Kinds of [Origin] that matter most; others may appear.
const (
	OriginHuman            = "human"
	OriginTaskNotification = "task-notification"
	OriginAutoContinuation = "auto-continuation"
)

// An Origin is what started a turn.
type Origin struct {
	// Kind is human, channel, peer, task-notification, coordinator, unclassified, observer,
	// auto-continuation or observer-activity.
	Kind            string
	Server          string // of a channel
	From            string // of a peer or an observer
	FromMode        string
	FromSession     string
	Name            string
	SenderTaskID    string
	Body            string
	VerifiedPeerPID int
	Subkind         string // of a task-notification
	FireReason      string
	RunID           string
}
