// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/internal/jsonscan"
)

// A ToolProgress says that a tool is still running.
type ToolProgress struct {
	MessageHeader
	ToolUseID       string
	ToolName        string
	ParentToolUseID string
	Elapsed         time.Duration
	TaskID          string
	Heartbeat       bool
	SubagentType    string
	// SubagentRetry is not nil while a subagent waits to repeat an API request.
	SubagentRetry *SubagentRetry
}

// A SubagentRetry is the wait of a subagent before it repeats an API request.
type SubagentRetry struct {
	AgentID       string
	Attempt       int
	MaxRetries    int
	RetryDelay    time.Duration
	ErrorStatus   int // zero if there was no answer
	ErrorCategory string
}

func (m *ToolProgress) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "tool_use_id":
		m.ToolUseID = d.str()
	case "tool_name":
		m.ToolName = d.str()
	case "parent_tool_use_id":
		m.ParentToolUseID = d.str()
	case "elapsed_time_seconds":
		m.Elapsed = d.seconds()
	case "task_id":
		m.TaskID = d.str()
	case "heartbeat":
		m.Heartbeat = d.bool()
	case "subagent_type":
		m.SubagentType = d.str()
	case "subagent_retry":
		m.SubagentRetry = objectPtr[SubagentRetry](d)
	default:
		return false
	}
	return true
}

func (r *SubagentRetry) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "agent_id":
		r.AgentID = d.str()
	case "attempt":
		r.Attempt = d.int()
	case "max_retries":
		r.MaxRetries = d.int()
	case "retry_delay_ms":
		r.RetryDelay = d.millis()
	case "error_status":
		r.ErrorStatus = d.int()
	case "error_category":
		r.ErrorCategory = d.str()
	default:
		return false
	}
	return true
}

// A ToolUseSummary puts several tool calls into words.
type ToolUseSummary struct {
	MessageHeader
	Summary             string
	PrecedingToolUseIDs []string
}

func (m *ToolUseSummary) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "summary":
		m.Summary = d.str()
	case "preceding_tool_use_ids":
		m.PrecedingToolUseIDs = d.strs()
	default:
		return false
	}
	return true
}

// An AuthStatus reports the progress of a login.
type AuthStatus struct {
	MessageHeader
	IsAuthenticating bool
	Output           []string
	Error            string
}

func (m *AuthStatus) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "isAuthenticating":
		m.IsAuthenticating = d.bool()
	case "output":
		m.Output = d.strs()
	case "error":
		m.Error = d.str()
	default:
		return false
	}
	return true
}

// A RateLimitEvent reports a change of the account's limits.
type RateLimitEvent struct {
	MessageHeader
	RateLimitInfo
}

// RateLimitInfo is the state of the account's limits.
type RateLimitInfo struct {
	// Status is allowed, allowed_warning or rejected.
	Status        string
	ResetsAt      time.Time
	RateLimitType string
	// Utilization is a share of the limit, nil if not known.
	Utilization           *float64
	OverageStatus         string
	OverageResetsAt       time.Time
	OverageDisabledReason string
	IsUsingOverage        bool
	OverageInUse          bool
	// OverageEnabled is nil if nothing was said.
	OverageEnabled                  *bool
	SurpassedThreshold              *float64
	LimitScope                      string
	ErrorCode                       string
	CanUserPurchaseCredits          bool
	HasChargeableSavedPaymentMethod bool
}

func (m *RateLimitEvent) field(d *msgDecoder, key []byte) bool {
	if string(key) != "rate_limit_info" {
		return false
	}
	d.object(&m.RateLimitInfo)
	return true
}

func (r *RateLimitInfo) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "status":
		r.Status = d.str()
	case "resetsAt":
		r.ResetsAt = d.time()
	case "rateLimitType":
		r.RateLimitType = d.str()
	case "utilization":
		r.Utilization = d.floatPtr()
	case "overageStatus":
		r.OverageStatus = d.str()
	case "overageResetsAt":
		r.OverageResetsAt = d.time()
	case "overageDisabledReason":
		r.OverageDisabledReason = d.str()
	case "isUsingOverage":
		r.IsUsingOverage = d.bool()
	case "overageInUse":
		r.OverageInUse = d.bool()
	case "overageEnabled":
		r.OverageEnabled = d.boolPtr()
	case "surpassedThreshold":
		r.SurpassedThreshold = d.floatPtr()
	case "limitScope":
		r.LimitScope = d.str()
	case "errorCode":
		r.ErrorCode = d.str()
	case "canUserPurchaseCredits":
		r.CanUserPurchaseCredits = d.bool()
	case "hasChargeableSavedPaymentMethod":
		r.HasChargeableSavedPaymentMethod = d.bool()
	default:
		return false
	}
	return true
}

// A PromptSuggestion is what the user might say next. It comes after the result.
type PromptSuggestion struct {
	MessageHeader
	Suggestion string
}

func (m *PromptSuggestion) field(d *msgDecoder, key []byte) bool {
	if string(key) != "suggestion" {
		return false
	}
	m.Suggestion = d.str()
	return true
}

// A ConversationReset says that the conversation starts anew, as after /clear: running totals begin
// again at zero, and later messages carry another session id.
type ConversationReset struct {
	MessageHeader
	NewConversationID string
	Trigger           string
	UserMessageUUID   string
	Timestamp         time.Time
}

func (m *ConversationReset) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "new_conversation_id":
		m.NewConversationID = d.str()
	case "trigger":
		m.Trigger = d.str()
	case "user_message_uuid":
		m.UserMessageUUID = d.str()
	case "timestamp":
		m.Timestamp = d.time()
	default:
		return false
	}
	return true
}

// An ActiveGoal reports the goal that the session works towards.
type ActiveGoal struct {
	MessageHeader
	// Value is nil when there is no goal any more.
	Value *Goal
}

// A Goal is a condition that the session tries to meet.
type Goal struct {
	Condition     string
	Iterations    int
	SetAt         time.Time
	TokensAtStart int
	LastReason    string
}

func (m *ActiveGoal) field(d *msgDecoder, key []byte) bool {
	if string(key) != "value" {
		return false
	}
	m.Value = objectPtr[Goal](d)
	return true
}

func (g *Goal) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "condition":
		g.Condition = d.str()
	case "iterations":
		g.Iterations = d.int()
	case "set_at":
		g.SetAt = d.time()
	case "tokens_at_start":
		g.TokensAtStart = d.int()
	case "last_reason":
		g.LastReason = d.str()
	default:
		return false
	}
	return true
}

// A CommandLifecycle follows one prompt that was sent with a UUID.
type CommandLifecycle struct {
	MessageHeader
	CommandUUID string
	// State is queued, started, completed or cancelled.
	State string
}

func (m *CommandLifecycle) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "command_uuid":
		m.CommandUUID = d.str()
	case "state":
		m.State = d.str()
	default:
		return false
	}
	return true
}

// An AutocompactState is undocumented; what it says is in Raw.
type AutocompactState struct{ MessageHeader }

func (m *AutocompactState) field(*msgDecoder, []byte) bool { return false }

// A TranscriptMirror carries entries that the CLI adds to a transcript file. It is meant for a
// session store, not for the application.
type TranscriptMirror struct {
	MessageHeader
	FilePath string
	Entries  []json.RawMessage
}

func (m *TranscriptMirror) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "filePath":
		m.FilePath = d.str()
	case "entries":
		m.Entries = d.raws()
	default:
		return false
	}
	return true
}

// A KeepAlive says nothing, or how far the start has come.
type KeepAlive struct {
	MessageHeader
	StartupMark json.RawMessage
}

func (m *KeepAlive) field(d *msgDecoder, key []byte) bool {
	if string(key) != "startup_mark" {
		return false
	}
	m.StartupMark = d.raw()
	return true
}

// A ControlFrame is a line of the control protocol: a control_request, control_response or
// control_cancel_request. The client answers them itself; they appear only to who decodes lines
// on their own.
type ControlFrame struct {
	MessageHeader
	// RequestID names the request, also in a response.
	RequestID string
	// BodySubtype is the subtype of the request or of the response.
	BodySubtype string
	// Body is the whole "request" or "response" object, nil in a cancel request.
	Body json.RawMessage
}

func (m *ControlFrame) field(d *msgDecoder, key []byte) bool {
	switch {
	case string(key) == "request_id" && m.typ != "control_response":
		m.RequestID = d.str()
	case string(key) == "request" && m.typ == "control_request",
		string(key) == "response" && m.typ == "control_response":
		start := d.Pos()
		isObject := d.Kind() == jsonscan.Object
		d.object((*controlBody)(m))
		if isObject {
			m.Body = d.Since(start)
		}
	default:
		return false
	}
	return true
}

// controlBody reads the request or response inside a control frame.
type controlBody ControlFrame

func (m *controlBody) field(d *msgDecoder, key []byte) bool {
	switch {
	case string(key) == "subtype":
		m.BodySubtype = d.str()
	case string(key) == "request_id" && m.typ == "control_response":
		m.RequestID = d.str()
	default:
		return false
	}
	return true
}
