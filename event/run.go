// SPDX-License-Identifier: Apache-2.0

package event

import "encoding/json"

// Init is the beginning of a run, as the agent reports it. Most runs begin with it; one that fails to start has none.
type Init struct {
	Model string `json:"model"`
	// Dir is the working directory.
	Dir string `json:"cwd"`
	// Tools are those that the agent has. Nil is written as [] in an event.
	Tools []string `json:"tools"`
	// Capabilities hold what else an agent reports about itself.
	Capabilities map[string]json.RawMessage `json:"capabilities,omitempty"`
}

// EventKind implements [Payload].
func (Init) EventKind() Kind { return KindInit }

func (i Init) wireForm() any {
	if i.Tools == nil {
		i.Tools = []string{} // readers in other languages iterate over it
	}
	return i
}

// Text is a whole piece of text that the agent wrote.
type Text struct {
	Content string `json:"content"`
}

// EventKind implements [Payload].
func (Text) EventKind() Kind { return KindText }

// TextDelta is a part of a text that is being written. The whole text comes as [Text] all the same.
type TextDelta struct {
	Delta string `json:"delta"`
}

// EventKind implements [Payload].
func (TextDelta) EventKind() Kind { return KindTextDelta }

// Thinking is what the agent shows of its reasoning.
type Thinking struct {
	Summary string `json:"summary"`
}

// EventKind implements [Payload].
func (Thinking) EventKind() Kind { return KindThinking }

// An Error is something that went wrong. It is also a Go error.
type Error struct {
	// Code is for programs: [CodeAdapter] and its like, or a code of the agent's own. It may be empty.
	Code string `json:"code,omitzero"`
	// Message is for people: what failed, and why. Next is what to do about it; it may be empty.
	Message string `json:"message"`
	Next    string `json:"next,omitzero"`
	// Recoverable is set if the run goes on.
	Recoverable bool `json:"recoverable"`
	// Cause is the Go error, where there is one. It does not survive JSON.
	Cause error `json:"-"`
}

// Codes of errors that come from Drover itself. Agents have codes of their own.
const (
	// CodeAdapter: the adapter failed before its done event.
	CodeAdapter = "ADAPTER_ERROR"
	// CodeMissingDone: the adapter ended without a word.
	CodeMissingDone = "MISSING_DONE"
	// CodeParallelTask: a task could not be started.
	CodeParallelTask = "PARALLEL_TASK_ERROR"
	// CodeUnknownTool: the agent called a tool of its own that its catalogue does not have.
	CodeUnknownTool = "UNKNOWN_TOOL"
)

// EventKind implements [Payload].
func (Error) EventKind() Kind { return KindError }

// Error gives the message.
func (e Error) Error() string { return e.Message }

// Advice implements [advice.Adviser].
func (e Error) Advice() string { return e.Next }

// Unwrap gives the cause.
func (e Error) Unwrap() error { return e.Cause }
