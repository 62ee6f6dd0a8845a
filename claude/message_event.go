// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A ToolProgress reports that a tool is still running.
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

// A ToolUseSummary is a summary of several tool calls.
type ToolUseSummary struct {
	MessageHeader
	Summary             string
	PrecedingToolUseIDs []string
}

// An AuthStatus reports the progress of a login.
type AuthStatus struct {
	MessageHeader
	IsAuthenticating bool
	Output           []string
	Error            string
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
	// OverageEnabled is nil if it was not sent.
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
	d.fill(&m.RateLimitInfo)
	return true
}

// A PromptSuggestion is a possible next prompt. It comes after the result.
type PromptSuggestion struct {
	MessageHeader
	Suggestion string
}

// A ConversationReset reports that the conversation starts again from scratch, as after /clear. Running
// totals start again at zero, and later messages carry another session id.
type ConversationReset struct {
	MessageHeader
	NewConversationID string
	Trigger           string
	UserMessageUUID   string
	Timestamp         time.Time
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

// A CommandLifecycle follows one prompt that was sent with a UUID.
type CommandLifecycle struct {
	MessageHeader
	CommandUUID string
	// State is queued, started, completed or cancelled.
	State string
}

// An AutocompactState is undocumented; Raw has its content.
type AutocompactState struct{ MessageHeader }

// A TranscriptMirror carries entries that the CLI adds to a transcript file, for a session store, not the application.
type TranscriptMirror struct {
	MessageHeader
	FilePath string
	Entries  []json.RawMessage
}

// A KeepAlive is empty, or has the progress of the start.
type KeepAlive struct {
	MessageHeader
	StartupMark json.RawMessage
}

// A ControlFrame is a line of the control protocol: a control_request, control_response or control_cancel_request. The
// client answers them itself; only programs that decode lines themselves see them.
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
		isObject := d.Kind() == plainjson.Object
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
