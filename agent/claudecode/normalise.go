// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

// A normaliser makes events of the messages of one run. It is used by one goroutine.
type normaliser struct {
	req agent.Request
	// denied reports whether somebody denied the call with this id. Nil means that nobody did.
	denied func(id string) bool

	session string
	active  bool
}

// events are what a message tells. The done event is not among them: see done. The slice is used
// again by the next call.
func (n *normaliser) events(m claude.Message) []event.Event { return nil }

// done is the end of the run: an error event if there is one, and the done event.
func (n *normaliser) done(end *claude.TurnEnd) []event.Event { return nil }

// activity reports whether anything but notices of the system came: only then can the session be
// continued.
func (n *normaliser) activity() bool { return n.active }

// sessionID is the last session that the CLI named.
func (n *normaliser) sessionID() string { return n.session }
