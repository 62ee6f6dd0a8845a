// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"

	"github.com/drover-agents/drover/event"
)

// A Classifier is an adapter that knows what the errors of its agent mean.
type Classifier interface {
	Adapter
	// Classify returns the meaning of a run's error: alone, or as the cause of an [event.Error] or an [event.Done].
	Classify(err error) Failure
}

// A Failure is what an error of an agent means, in words that all agents share. The zero value means that nothing is known.
type Failure struct {
	Kind FailureKind
	// Message is what failed, in one line where possible. Empty means the text of the error.
	Message string
	// Next is what to do about it. Empty means the advice of the error, or of the kind.
	Next string
	// Details are for programs and logs: "exit_code", "stderr", "api_error_status". All have a JSON form.
	Details map[string]any
}

// A FailureKind is the kind of a failure.
type FailureKind string

// The kinds of failures.
const (
	// FailureUnavailable: the agent is missing or too old.
	FailureUnavailable FailureKind = "unavailable"
	// FailureRequest: what was asked for cannot be done, however often it is tried.
	FailureRequest FailureKind = "request"
	// FailureStart: the agent did not answer in time when it was started. The model was not asked.
	FailureStart FailureKind = "start"
	// FailureProcess: the agent ended in the middle.
	FailureProcess FailureKind = "process"
	// FailureProtocol: the output of the agent could not be parsed.
	FailureProtocol FailureKind = "protocol"
	// FailureNoResult: the agent ended without a result.
	FailureNoResult FailureKind = "no_result"
	// FailureExecution: the agent failed without details.
	FailureExecution FailureKind = "execution"

	// FailureAuthentication: the model's service refused the credentials.
	FailureAuthentication FailureKind = "authentication"
	// FailureRateLimit, FailureOverloaded, FailureQuota: it refused for now, had no capacity, or wants to be paid first.
	FailureRateLimit  FailureKind = "rate_limit"
	FailureOverloaded FailureKind = "overloaded"
	FailureQuota      FailureKind = "quota"
	// FailureTimeout: it could not be reached, or did not answer in time.
	FailureTimeout FailureKind = "timeout"
	// FailureServer: it had an error of its own.
	FailureServer FailureKind = "server"
	// FailureTooLarge: the conversation is too large for it.
	FailureTooLarge FailureKind = "too_large"

	// FailureRefusal: the model refused to answer.
	FailureRefusal FailureKind = "refusal"
	// FailureNoOutput: it answered in words where a structured answer was asked for.
	FailureNoOutput FailureKind = "no_output"
	// FailureOutputRetries: none of its structured answers matched the schema, after all retries.
	FailureOutputRetries FailureKind = "output_retries"
	// FailureIncomplete: it answered, and the completion check did not hold.
	FailureIncomplete FailureKind = "incomplete"
	// FailureMaxTurns and FailureMaxBudget: a limit of the request was reached.
	FailureMaxTurns  FailureKind = "max_turns"
	FailureMaxBudget FailureKind = "max_budget"
	// FailureInterrupted: the agent was interrupted.
	FailureInterrupted FailureKind = "interrupted"
)

// EndDetails is the key in a done event's metadata under which an adapter puts details of the end, as the JSON of an [End].
const EndDetails = "endDetails"

// An End has the details of the end of a run beside the [event.Done].
type End struct {
	// APIDurationMS is how long the model took, in milliseconds.
	APIDurationMS float64 `json:"apiDurationMs,omitzero"`
	// StopReason is why the model stopped, in its own words.
	StopReason string `json:"stopReason,omitzero"`
	// Stderr is the end of what the agent wrote to standard error, if the run did not end well.
	Stderr string `json:"stderr,omitzero"`
	// NotStored is why the conversation could not be stored. There is no token to resume it then.
	NotStored string `json:"notStored,omitzero"`
}

// EndOf returns the details in the metadata of a done event. Missing or invalid fields are zero.
func EndOf(e event.Event) (end End) {
	if raw, ok := e.Metadata[EndDetails]; ok {
		_ = json.Unmarshal(raw, &end)
	}
	return end
}
