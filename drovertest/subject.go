// SPDX-License-Identifier: Apache-2.0

package drovertest

import (
	"context"
	"testing"

	"github.com/drover-agents/drover/agent"
)

// A Subject is an adapter to be tested.
type Subject struct {
	// New makes an adapter whose model does the steps, one for each time that it is called. Steps that are left at
	// the end of the test must not have been needed. New closes the adapter at the end of the test.
	New func(t *testing.T, steps ...Step) (agent.Adapter, Model)
	// Tool is the name under which the model calls a tool of the prompt.
	Tool func(name string) string
	// Native makes calls of the agent's own tools.
	Native Native
	// Capabilities select the tests. A capability that is not claimed is not tested.
	Capabilities Capabilities
}

// Capabilities are what an adapter may be able to do.
type Capabilities struct {
	Tools            bool // tools of the prompt
	StructuredOutput bool // typed answers
	Transcript       bool // what the agent writes down
	Disclosure       bool // sections that are opened in the run
	Transactions     bool // calls that fail change nothing
	Budgets          bool // tokens are counted while they are spent
	Policies         bool // calls are decided before they are made
	Feedback         bool // the model can be given a text beside a result
	Completion       bool // an agent that is not done is sent back
	NativeTools      bool // the agent has tools of its own
	Isolation        bool // it works in a cell of its own
	Skills           bool // it finds skills
	Conversations    bool // it can be talked to again
}

// All are all capabilities.
func All() Capabilities {
	return Capabilities{true, true, true, true, true, true, true, true, true, true, true, true, true}
}

// A Model is what the suite asks about a scripted model.
type Model interface {
	// Read reports whether the model was given this text anywhere.
	Read(text string) bool
	// Calls is how often the model was called.
	Calls() int
	// Await waits until it was called so often.
	Await(ctx context.Context, calls int) error
}

// A Step is what a model does when it is called.
type Step struct {
	// Text is sent first. A step without calls ends the turn.
	Text string
	// Calls are made after it.
	Calls []Call
	// Answer is the structured answer, as the type of the prompt has it. An agent that takes only objects
	// gets it in one.
	Answer any
	// Wait sends no answer until the client closes the connection.
	Wait bool
	// Tokens is the input that the call reports. Zero leaves that to the model.
	Tokens int64
}

// A Call is a call that a model makes.
type Call struct {
	Tool  string
	Input any
}

// Native makes calls of an agent's own tools.
type Native struct {
	// Write writes a file, by its path in the working directory.
	Write func(path, content string) Call
	// Shell runs a command in the working directory.
	Shell func(command string) Call
}

func reply(text string) Step            { return Step{Text: text} }
func answer(v any) Step                 { return Step{Answer: v} }
func call(tool string, in any) Step     { return Step{Calls: []Call{{tool, in}}} }
func calls(all ...Call) Step            { return Step{Calls: all} }
func waits() Step                       { return Step{Wait: true} }
func costing(tokens int64, s Step) Step { s.Tokens = tokens; return s }
