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
	// denied reports whether somebody denied the call with this id.
	denied func(id string) bool
}

// events are what a message tells. The done event is not among them: see done.
func (n *normaliser) events(m claude.Message) []event.Event {
	panic("to be written")
}
