// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"

	"github.com/drover-agents/drover/event"
)

// A Journal keeps what an agent writes down of its conversations, so that they outlive the process and the machine. It is
// safe for concurrent use.
type Journal interface {
	// Append adds lines, each a JSON object, after those that a name has. When it returns without an error they are kept.
	Append(ctx context.Context, name string, lines []json.RawMessage) error
	// Load returns the lines of a name in their order.
	Load(ctx context.Context, name string) ([]json.RawMessage, error)
	// Names are the names that have lines. The one with the last append is last.
	Names(ctx context.Context) ([]string, error)
}

// A Keeper is an adapter whose conversations go on after the death of the process that had them.
type Keeper interface {
	Adapter
	// KeptIn is the adapter with its conversations in a journal, line by line as they grow, instead of anywhere else. A
	// call of the main agent that may change something begins when its line is kept. An adapter that cannot do that keeps
	// nothing there.
	KeptIn(j Journal) Adapter
	// Recover finds the last conversation of a journal. It adds the results of the calls that have none, as result has
	// them: the agent is not running, and no call is made.
	Recover(ctx context.Context, j Journal, result func(event.CallID) event.ToolResult) (Recovered, error)
}

// A Recovered conversation goes on with its next prompt, after the last step that it has finished.
type Recovered struct {
	// Token resumes it, by the adapter that is kept in the journal. Empty means that there is nothing to go on with.
	Token string
	// Calls are the calls that the model has read the results of. A subagent's are among them if the call that started it is.
	Calls []event.CallID
}
