// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"time"
)

// Subtypes of a [ResultMessage].
const (
	ResultSuccess               = "success"
	ResultErrorDuringExecution  = "error_during_execution"
	ResultErrorMaxTurns         = "error_max_turns"
	ResultErrorMaxBudget        = "error_max_budget_usd"
	ResultErrorStructuredOutput = "error_max_structured_output_retries"
)

// A ResultMessage ends a turn. A turn that ended on an API error has the subtype "success" and
// IsError: ask [ResultMessage.Failed], never the subtype alone.
type ResultMessage struct {
	MessageHeader
	IsError     bool
	Duration    time.Duration
	DurationAPI time.Duration
	NumTurns    int
	StopReason  string
	// TotalCostUSD and ModelUsage are running totals of the conversation, including what a
	// resumed session had cost before. Read the latest, never add them up; a [CostTracker] computes
	// amounts per turn from them. Usage is of this turn's main loop alone.
	TotalCostUSD      float64
	ModelUsage        map[string]ModelUsage
	Usage             Usage
	PermissionDenials []PermissionDenial
	// ModelUsageSinceLastResult is nil on CLIs that do not send it.
	ModelUsageSinceLastResult map[string]ModelUsage
	QueuedTurnCount           int
	TerminalReason            string
	// ResultIndex numbers the results of the process from 0; nil on older CLIs.
	ResultIndex            *int
	CredentialExpiresAt    time.Time
	UserMessageUUID        string
	UserMessageUUIDs       []string
	ResumeReason           string
	FastModeState          string
	FastModeDisabledReason string
	// Origin is what started the turn; nil means the user.
	Origin        *Origin
	SubagentStats json.RawMessage

	// Result is the answer as text, or the text of the API error.
	Result string
	// StructuredOutput is nil if the model gave none, which the CLI does not count as a failure.
	StructuredOutput json.RawMessage
	// DeferredToolUse is the call that ended the turn because a hook deferred it.
	DeferredToolUse *DeferredToolUse
	APIErrorStatus  int // HTTP status, zero without a status
	APIErrorType    string
	APIError        string // for example "connection_failed"
	TTFT            *time.Duration
	TTFTStream      *time.Duration
	TimeToRequest   *time.Duration
	// LocalCommand names the command that the CLI ran itself, for example "clear".
	LocalCommand string

	// Errors is for the log; [ResultMessage.Err] chooses what can be shown.
	Errors               []string
	StartupFailureReason string
	InvalidConfigFile    *InvalidConfigFile
}

// A PermissionDenial is a tool call that was not allowed.
type PermissionDenial struct {
	ToolName  string
	ToolUseID string
	ToolInput json.RawMessage
}

// A DeferredToolUse is a tool call that waits for a decision outside of the session.
type DeferredToolUse struct {
	ID    string
	Name  string
	Input json.RawMessage
}

// An InvalidConfigFile is a configuration that kept the CLI from starting.
type InvalidConfigFile struct {
	Path           string
	IsGlobal       bool
	BackupSearched bool
	BackupPath     string
}

// Failed reports whether the turn did not end well.
func (m *ResultMessage) Failed() bool { return m.IsError || m.subtype != ResultSuccess }

// IsAnswer reports whether the result answers a prompt of the user, and is not the end of a turn
// that something else started, such as a background task that ended.
func (m *ResultMessage) IsAnswer() bool { return m.Origin == nil || m.Origin.Kind == OriginHuman }
