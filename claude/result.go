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
	// resumed session had cost before. Read the latest, never add them up; a [CostTracker] makes
	// amounts per turn of them. Usage is of this turn's main loop alone.
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
	// Origin says who started the turn; nil means the user.
	Origin        *Origin
	SubagentStats json.RawMessage

	// Result is the answer as text, or the text of the API error.
	Result string
	// StructuredOutput is nil if the model gave none, which the CLI does not count as a failure.
	StructuredOutput json.RawMessage
	// DeferredToolUse is the call that ended the turn because a hook deferred it.
	DeferredToolUse *DeferredToolUse
	APIErrorStatus  int // HTTP status, zero if there was none
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

func (m *ResultMessage) field(d *msgDecoder, key []byte) bool {
	return m.commonField(d, key) || m.successField(d, key) || m.errorField(d, key)
}

func (m *ResultMessage) commonField(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "is_error":
		m.IsError = d.bool()
	case "duration_ms":
		m.Duration = d.millis()
	case "duration_api_ms":
		m.DurationAPI = d.millis()
	case "num_turns":
		m.NumTurns = d.int()
	case "stop_reason":
		m.StopReason = d.str()
	case "total_cost_usd":
		m.TotalCostUSD = d.float()
	case "modelUsage":
		m.ModelUsage = d.modelUsage()
	case "model_usage_since_last_result":
		m.ModelUsageSinceLastResult = d.modelUsage()
	case "usage":
		m.Usage = d.usage()
	case "permission_denials":
		m.PermissionDenials = objectList[PermissionDenial](d)
	case "queued_turn_count":
		m.QueuedTurnCount = d.int()
	case "terminal_reason":
		m.TerminalReason = d.str()
	case "result_index":
		m.ResultIndex = d.intPtr()
	case "credential_expires_at":
		m.CredentialExpiresAt = d.time()
	case "user_message_uuid":
		m.UserMessageUUID = d.str()
	case "user_message_uuids":
		m.UserMessageUUIDs = d.strs()
	case "resume_reason":
		m.ResumeReason = d.str()
	case "fast_mode_state":
		m.FastModeState = d.str()
	case "fast_mode_disabled_reason":
		m.FastModeDisabledReason = d.str()
	case "origin":
		m.Origin = objectPtr[Origin](d)
	case "subagent_stats":
		m.SubagentStats = d.raw()
	default:
		return false
	}
	return true
}

func (m *ResultMessage) successField(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "result":
		m.Result = d.str()
	case "structured_output":
		m.StructuredOutput = d.raw()
	case "deferred_tool_use":
		m.DeferredToolUse = objectPtr[DeferredToolUse](d)
	case "api_error_status":
		m.APIErrorStatus = d.int()
	case "api_error_type":
		m.APIErrorType = d.str()
	case "api_error":
		m.APIError = d.str()
	case "ttft_ms":
		m.TTFT = d.millisPtr()
	case "ttft_stream_ms":
		m.TTFTStream = d.millisPtr()
	case "time_to_request_ms":
		m.TimeToRequest = d.millisPtr()
	case "local_command":
		m.LocalCommand = d.str()
	default:
		return false
	}
	return true
}

func (m *ResultMessage) errorField(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "errors":
		m.Errors = d.strs()
	case "startup_failure_reason":
		m.StartupFailureReason = d.str()
	case "invalid_config_file":
		m.InvalidConfigFile = objectPtr[InvalidConfigFile](d)
	default:
		return false
	}
	return true
}

func (p *PermissionDenial) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "tool_name":
		p.ToolName = d.str()
	case "tool_use_id":
		p.ToolUseID = d.str()
	case "tool_input":
		p.ToolInput = d.raw()
	default:
		return false
	}
	return true
}

func (t *DeferredToolUse) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "id":
		t.ID = d.str()
	case "name":
		t.Name = d.str()
	case "input":
		t.Input = d.raw()
	default:
		return false
	}
	return true
}

func (c *InvalidConfigFile) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "path":
		c.Path = d.str()
	case "is_global":
		c.IsGlobal = d.bool()
	case "backup_searched":
		c.BackupSearched = d.bool()
	case "backup_path":
		c.BackupPath = d.str()
	default:
		return false
	}
	return true
}
