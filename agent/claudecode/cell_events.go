// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
)

// cellEvents are the events that the cell and the gateway emit during a run. The emitter never waits.
type cellEvents struct {
	signal chan struct{} // holds something while there is something to take

	mu      sync.Mutex
	waiting []cellEvent
	whole   Tokens // of the model's answers that came to their end
	aborted Tokens // of those that the agent did not wait for
	answers int    // answers to the main conversation in this turn
	reason  string // the stop reason of the last of them that has one
	replied bool   // one of them is something other than calls of tools
}

// A cellEvent is an event with its time: it may be read later.
type cellEvent struct {
	event.Payload
	at time.Time
}

func newCellEvents() *cellEvents { return &cellEvents{signal: make(chan struct{}, 1)} }

// add may be called from any goroutine.
func (a *cellEvents) add(p event.Payload) {
	a.mu.Lock()
	a.waiting = append(a.waiting, cellEvent{p, time.Now()})
	if call, ok := p.(gateway.ModelCall); ok {
		whole := call.Error == "" && call.Status == http.StatusOK
		switch tokens := (Tokens{call.Tokens.AllInput(), call.Tokens.Output}); {
		case call.Aborted:
			a.aborted = a.aborted.plus(tokens)
		case whole:
			a.whole = a.whole.plus(tokens)
		}
		if call.Agent == gateway.MainAgent && (whole || call.StopReason != "") && call.Operation == "messages" {
			a.answers++
			a.reason = cmp.Or(call.StopReason, a.reason)
			a.replied = a.replied || call.StopReason != "tool_use"
		}
	}
	a.mu.Unlock()
	select {
	case a.signal <- struct{}{}:
	default:
	}
}

// newTurn forgets the answers of earlier turns.
func (a *cellEvents) newTurn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers, a.reason, a.replied = 0, "", false
}

// await waits until a condition holds, which is called under the lock, and reports whether it does.
func (a *cellEvents) await(limit time.Duration, holds func() bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		a.mu.Lock()
		done := holds()
		a.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-a.signal:
		case <-timer.C:
			return false
		}
	}
}

// awaitAnswer reports whether the main conversation has got an answer in this turn other than calls of tools.
// The gateway reports a call a moment after the CLI has read its answer.
func (a *cellEvents) awaitAnswer(limit time.Duration) bool {
	return a.await(limit, func() bool { return a.replied })
}

// stopReason returns the stop reason of the main conversation's last answer in this turn, or "". It waits until the
// gateway has reported as many answers as given.
func (a *cellEvents) stopReason(answers int, limit time.Duration) (reason string) {
	a.await(limit, func() bool {
		reason = a.reason
		return a.answers >= answers
	})
	return reason
}

// answered are the tokens of the answers that came to their end, and of those that the agent did not wait for.
func (a *cellEvents) answered() (whole, aborted Tokens) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.whole, a.aborted
}

// take returns the events since the last time.
func (a *cellEvents) take() []cellEvent {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.waiting
	a.waiting = nil
	return all
}
