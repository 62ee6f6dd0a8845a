// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"time"
)

// A DoneStatus is how a run ended.
type DoneStatus string

// The ways in which a run ends.
const (
	// DoneSuccess: the agent has answered. Calls may have been denied on the way.
	DoneSuccess DoneStatus = "success"
	// DoneError: the agent or its adapter failed. An [Error] before the done has the cause.
	DoneError DoneStatus = "error"
	// DoneInterrupted: the context ended; Done.Reason has its cause.
	DoneInterrupted DoneStatus = "interrupted"
	// DoneMaxTurns and DoneMaxBudget: a limit of the request was reached.
	DoneMaxTurns  DoneStatus = "max_turns"
	DoneMaxBudget DoneStatus = "max_budget"
)

// Done is the end of a run. A run has exactly one, and nothing follows it.
type Done struct {
	Status DoneStatus `json:"status"`
	// Result is the answer, or the known reason why the answer is missing.
	Result string `json:"result,omitzero"`
	// Output is the structured answer, where one was asked for.
	Output json.RawMessage `json:"output,omitempty"`
	// Reason is why a run was interrupted, where that is known: "context deadline exceeded".
	Reason string `json:"reason,omitzero"`
	// ResumeToken continues the conversation in another run. Empty means that it cannot be continued.
	ResumeToken string `json:"resumeToken,omitzero"`
	Usage       Usage  `json:"usage"`
	// Duration is rounded to milliseconds on the wire.
	Duration time.Duration `json:"-"`
	// Cause is why the run did not succeed, where there is a Go error. It does not survive JSON.
	Cause error `json:"-"`
}

// EventKind implements [Payload].
func (Done) EventKind() Kind { return KindDone }

type doneWire struct {
	doneFields
	DurationMS float64 `json:"durationMs"`
}

type doneFields Done

func (d Done) wireForm() any {
	return doneWire{doneFields(d), toMilliseconds(d.Duration)}
}

// MarshalJSON writes the duration in milliseconds.
func (d Done) MarshalJSON() ([]byte, error) { return marshalPlain(d.wireForm()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Done) UnmarshalJSON(data []byte) error {
	var w doneWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	duration, err := fromMilliseconds(w.DurationMS)
	if err != nil {
		return err
	}
	*d = Done(w.doneFields)
	d.Duration = duration
	return nil
}
