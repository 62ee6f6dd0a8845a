// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"slices"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// A CallState is what is known of a call.
type CallState struct {
	event.ToolCall // Input is what it is made with
	// Decision is what the host decided about it, and Began when. Nil and zero mean that it has not.
	Decision *event.Decision
	Began    time.Time
}

func (r *Record) state() CallState {
	s := CallState{ToolCall: r.ToolCall, Decision: r.decision, Began: r.began}
	s.Input = r.run.raw
	return s
}

// Note adds a call that is about to be decided, unless it is known.
func (l *Ledger) Note(call event.ToolCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosted = true
	in := newInput(call.Input)
	known := func(r *Record) bool {
		return !r.over && !r.recorded && r.Name == call.Name && (r.input.same(in) || r.run.same(in))
	}
	if l.lastLocked(call.ID, known) == nil {
		l.addLocked(call)
	}
}

// isNamed reports whether the stream, or a hook, means the call by a name. Our own tools know theirs without the server.
func (r *Record) isNamed(name string) bool {
	return r.Name == name || r.own && (&tool.Call{Name: r.Name}).IsOf(name)
}

// Decided records the decision of the host about a known call.
func (l *Ledger) Decided(d event.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.lastLocked(d.CallID, func(r *Record) bool { return !r.over && !r.recorded && r.Name == d.Tool })
	if r == nil {
		return
	}
	if r.decision, r.began = &d, time.Now(); d.Input != nil {
		r.run = newInput(d.Input)
	}
}

// State is what is known of the last call with an id.
func (l *Ledger) State(id event.CallID) CallState {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.lastLocked(id, func(*Record) bool { return true }); r != nil {
		return r.state()
	}
	return CallState{ToolCall: event.ToolCall{ID: id}}
}

// MarkRead records that the host of a run has read a call in the stream.
func (l *Ledger) MarkRead(call event.ToolCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosted = true
	at := slices.IndexFunc(l.calls[call.ID], func(r *Record) bool { return !r.seen && r.isNamed(call.Name) })
	if at < 0 {
		l.addLocked(call).seen = true
		return
	}
	r := l.calls[call.ID][at]
	r.seen, r.AgentID = true, cmp.Or(r.AgentID, call.AgentID)
}

// TakeResult is what is known of the call whose result the host reads in the stream, and whether it is to be recorded
// now: it is not if that was done at its end, or if a tool of this program records it. Known is false for a call of
// an earlier run.
func (l *Ledger) TakeResult(id event.CallID) (s CallState, record, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.calls[id], func(r *Record) bool { return (r.seen || r.own) && !r.resulted })
	if at < 0 {
		return CallState{ToolCall: event.ToolCall{ID: id}}, true, false
	}
	r := l.calls[id][at]
	record = !r.recorded && !r.own
	r.resulted, r.recorded, r.over = true, true, true
	s = r.state()
	l.shrinkLocked(r)
	return s, record, true
}

// TakeEnd is what is known of a call whose end a hook reports, and whether it is to be recorded now.
func (l *Ledger) TakeEnd(call event.ToolCall) (s CallState, record bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := newInput(call.Input)
	r := l.lastLocked(call.ID, func(r *Record) bool { return !r.taken && r.isNamed(call.Name) && r.run.same(in) })
	if r == nil {
		r = l.lastLocked(call.ID, func(r *Record) bool { return !r.taken && r.isNamed(call.Name) })
	}
	if r == nil {
		r = l.addLocked(call)
	}
	record = !r.own && !r.recorded
	r.taken, r.recorded = true, true
	s = r.state()
	s.ToolCall = call // what was made, whatever was asked for
	l.shrinkLocked(r)
	return s, record
}

// TakeOpen are the calls that have not ended and that no tool of this program records, in the order of their ids.
// Those of subagents are among them only if all is over.
func (l *Ledger) TakeOpen(all bool) []CallState {
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []CallState
	for _, r := range l.order {
		if !r.recorded && !r.own && (all || r.AgentID == "") {
			r.recorded, r.resulted, r.over = true, true, true
			open = append(open, r.state())
			l.shrinkLocked(r)
		}
	}
	slices.SortStableFunc(open, func(a, b CallState) int { return cmp.Compare(a.ID, b.ID) })
	return open
}

// Runs records that a tool of this program was called, which records the call itself. The returned function ends the call.
func (l *Ledger) Runs(call *tool.Call) (ended func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.lastLocked(call.ID, func(r *Record) bool { return !r.recorded && !r.own && call.IsOf(r.Name) })
	if r == nil {
		asked := call.Event()
		if last := l.lastLocked(call.ID, func(*Record) bool { return true }); asked.AgentID == "" && last != nil {
			asked.AgentID = last.AgentID
		}
		r = l.addLocked(asked)
	}
	r.own = true
	if l.running++; l.running == 1 {
		l.idle = make(chan struct{})
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		r.recorded = true
		l.shrinkLocked(r)
		if l.running--; l.running == 0 {
			close(l.idle)
		}
	}
}

// AwaitOwn waits until the calls of tools of this program have ended, but not for ever.
func (l *Ledger) AwaitOwn(limit time.Duration) {
	l.mu.Lock()
	running, idle := l.running, l.idle
	l.mu.Unlock()
	if running == 0 {
		return
	}
	select {
	case <-idle:
	case <-time.After(limit):
	}
}
