// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"time"
)

// A CallID names one tool call of a run: the tool use id of the model's service, which may use it again for a later call.
type CallID string

// A ToolCall is a call of a tool, by the model or by a program.
type ToolCall struct {
	// ID is the tool use id. The same id is in every event of the call.
	ID CallID `json:"toolUseId"`
	// Name is the tool as the caller writes it: "Bash", "mcp__server__tool".
	Name string `json:"toolName"`
	// Input is a JSON object. Nil is written as {} in an event.
	Input json.RawMessage `json:"input"`
	// Description is the caller's description of the call, for people.
	Description string `json:"description,omitzero"`
	// AgentID is the subagent that calls; empty means the main agent.
	AgentID string `json:"agentId,omitzero"`
	// Dir is the working directory of the caller, if known.
	Dir string `json:"cwd,omitzero"`
}

// EventKind implements [Payload].
func (ToolCall) EventKind() Kind { return KindToolUse }

func (c ToolCall) wireForm() any {
	c.Input = objectOr(c.Input)
	return c
}

// A ToolStatus is how a tool call ended.
type ToolStatus string

// The ways in which a tool call ends.
const (
	ToolSuccess ToolStatus = "success"
	// ToolError: it ran and failed, its arguments were wrong, or there is no such tool.
	ToolError ToolStatus = "error"
	// ToolDenied and ToolNeedsApproval: it did not run.
	ToolDenied        ToolStatus = "denied"
	ToolNeedsApproval ToolStatus = "needs_approval"
	// ToolCancelled: it was stopped, or never begun because the run was.
	ToolCancelled ToolStatus = "cancelled"
)

// A ToolResult is how a tool call ended, and with what.
type ToolResult struct {
	ID     CallID     `json:"toolUseId"`
	Name   string     `json:"toolName"`
	Status ToolStatus `json:"status"`
	// Output is what the caller got, as JSON. A tool of ours gives the text that the model reads, as a JSON string.
	Output json.RawMessage `json:"output,omitempty"`
	// Duration is rounded to milliseconds on the wire; a duration that was not measured is zero.
	Duration time.Duration `json:"-"`
	// Failure is set unless Status is success.
	Failure *ToolFailure `json:"failure,omitempty"`
	// InputDigest and OutputDigest are SHA-256 over the JSON with sorted keys, where asked for.
	InputDigest  string `json:"inputDigest,omitzero"`
	OutputDigest string `json:"outputDigest,omitzero"`
}

// A ToolFailure is why a tool call did not succeed.
type ToolFailure struct {
	// Code and Category are for programs: "TIMEOUT", and "timeout", "permission" or "cancelled". Either may be empty.
	Code     string `json:"code,omitzero"`
	Category string `json:"category,omitzero"`
	// Message is for people. Of a call that a gate denied it is the reason.
	Message string `json:"message"`
	// Retryable is set if the same call may succeed later.
	Retryable bool `json:"retryable,omitzero"`
}

// EventKind implements [Payload].
func (ToolResult) EventKind() Kind { return KindToolResult }

// toolResultWire is ToolResult without its methods, with the duration in milliseconds. We write
// whole ones; others may measure fractions.
type toolResultWire struct {
	toolResultFields
	DurationMS float64 `json:"durationMs,omitzero"`
}

type toolResultFields ToolResult

func (r ToolResult) wireForm() any {
	return toolResultWire{toolResultFields(r), toMilliseconds(r.Duration)}
}

// MarshalJSON writes the duration in milliseconds.
func (r ToolResult) MarshalJSON() ([]byte, error) { return marshalPlain(r.wireForm()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (r *ToolResult) UnmarshalJSON(data []byte) error {
	var w toolResultWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	duration, err := fromMilliseconds(w.DurationMS)
	if err != nil {
		return err
	}
	*r = ToolResult(w.toolResultFields)
	r.Duration = duration
	return nil
}

// ToolProgress is how far a tool call has come.
type ToolProgress struct {
	ID       CallID  `json:"toolUseId"`
	Progress float64 `json:"progress"`
	// Total is zero where it is not known.
	Total   float64 `json:"total,omitzero"`
	Message string  `json:"message,omitzero"`
}

// EventKind implements [Payload].
func (ToolProgress) EventKind() Kind { return KindToolProgress }

// ToolLog is a line that a tool logged during a call.
type ToolLog struct {
	ID CallID `json:"toolUseId"`
	// Level is "info", "warn" or "error"; levels between them are "info+2".
	Level   string                     `json:"level"`
	Message string                     `json:"message"`
	Attrs   map[string]json.RawMessage `json:"attrs,omitempty"`
}

// EventKind implements [Payload].
func (ToolLog) EventKind() Kind { return KindToolLog }

// ToolStep is a step of a call: "validated", "invalid", "allowed", "denied", "needs_approval", "started" or "returned".
type ToolStep struct {
	ID   CallID `json:"toolUseId"`
	Name string `json:"toolName"`
	Step string `json:"step"`
	// Detail is the reason, for steps that end the call.
	Detail string `json:"detail,omitzero"`
}

// EventKind implements [Payload].
func (ToolStep) EventKind() Kind { return KindToolStep }
