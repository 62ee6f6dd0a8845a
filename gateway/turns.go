// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
)

// ErrMaxTurns is matched by every [*TurnsError].
var ErrMaxTurns = errors.New("gateway: the limit of model calls was reached")

const defaultSideCalls = 10

// A TurnsError has the limit of model calls that was reached. It matches [ErrMaxTurns].
type TurnsError struct {
	// Limit is MaxTurns, or SideCallsPerTurn for calls beside the main conversation.
	Limit string
	// Max is how many calls of this kind there may be for one prompt.
	Max int
}

func (e *TurnsError) Error() string {
	if e.Limit == "MaxTurns" {
		return fmt.Sprintf("%s: the main conversation has made %d", ErrMaxTurns, e.Max)
	}
	return fmt.Sprintf("%s: there were %d beside the main conversation", ErrMaxTurns, e.Max)
}

// Advice implements [advice.Adviser].
func (e *TurnsError) Advice() string {
	if e.Limit == "MaxTurns" {
		return "raise MaxTurns, or ask for less"
	}
	return "raise SideCallsPerTurn, or MaxTurns"
}

// Is makes the error match [ErrMaxTurns].
func (e *TurnsError) Is(target error) bool { return target == ErrMaxTurns }

type turnCount struct {
	main, others int
	results      map[string]bool // by which calls of the main conversation were recognised
	interposed   bool            // the main conversation has had another message than the prompt
}

// BeginPrompt counts the model calls from zero again, for a new prompt.
func (r *Run) BeginPrompt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = turnCount{}
}

// takeTurn counts a call, or returns an error if it is one too many.
//
// A call is one of the main conversation if it names no subagent and is the first with tools, or brings a tool's result that
// no such call has brought: then the agent has counted a turn, too. All else, such as calls of subagents, compactions and
// repeats, is another call. A command can make its calls look like either, and they count so.
//
// Claude Code counts from zero when the main conversation gets a message in between, as when an agent in the
// background has ended. Its calls beyond MaxTurns are other calls from then on.
func (c *call) takeTurn() error {
	r := c.run
	if r.o.MaxTurns <= 0 || !c.route.Metered {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.turns
	if c.isMain(t) {
		if t.main < r.o.MaxTurns {
			t.main++
			return nil
		}
		if !t.interposed {
			return &TurnsError{Limit: "MaxTurns", Max: r.o.MaxTurns}
		}
	}
	if most := r.o.MaxTurns * r.sideCalls(); t.others >= most {
		return &TurnsError{Limit: "SideCallsPerTurn", Max: most}
	}
	t.others++
	return nil
}

func (r *Run) sideCalls() int {
	if r.o.SideCallsPerTurn > 0 {
		return r.o.SideCallsPerTurn
	}
	return defaultSideCalls
}

func (c *call) isMain(t *turnCount) bool {
	switch {
	case c.agent != MainAgent:
		return false
	case c.result != "":
		if t.results[c.result] {
			return false
		}
		if t.results == nil {
			t.results = map[string]bool{}
		}
		t.results[c.result] = true
		return true
	case t.main == 0:
		return c.asked.Tools > 0
	}
	t.interposed = t.interposed || c.asked.Tools > 0
	return false
}
