// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/recent"
)

// readAhead is how many events may wait for a reader before the adapter is held up.
const readAhead = 256

// merged is the one line in which the events of an adapter and those of its host wait for the reader.
// The adapter puts events and is held up when too many wait; the host emits events and never waits.
//
// The first end is the end of the line: a done event, an error, or that the adapter has returned.
// Later events are discarded. When ctx ends, everything but a done is dropped and counted.
type merged struct {
	ctx context.Context

	mu      sync.Mutex
	waiting []event.Event
	held    []event.Event                          // the host's, about calls that the adapter has not reported
	open    map[event.CallID]callPosition          // of the calls that the adapter has reported and that have no result
	over    recent.Map[event.CallID, callPosition] // of the last calls that have one
	known   observed
	ending  ending
	stopped time.Time // when ctx ended
	closed  bool      // the reader has left
	asleep  bool      // the reader waits for a signal

	ready chan struct{} // has an entry when there is something new for a reader that waits
	room  chan struct{} // has one when the adapter need not wait
}

// A callPosition is where a call is in the run. Events of the host about the call get the same position.
type callPosition struct {
	sessionID       string
	turn            int
	parentToolUseID event.CallID
	agentID         string
	used            bool // there was a tool_use, not only a result
}

// observed is what the adapter has let us know, whether or not it was delivered.
type observed struct {
	sessionID string // the last one
	toolUses  int
	dropped   int
}

// An ending is how the adapter's part ended. The zero value means that it goes on.
type ending struct {
	done *event.Event
	err  error // why there is no done
}

func (e ending) reached() bool { return e.done != nil || e.err != nil }

func newMerged(ctx context.Context) *merged {
	return &merged{
		ctx: ctx, open: map[event.CallID]callPosition{}, over: recent.Map[event.CallID, callPosition]{Size: rememberedCalls},
		ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// put takes an event of the adapter, once there is room for it. It reports false when no more events are wanted.
func (m *merged) put(e event.Event) bool {
	for {
		taken, more := m.offer(e)
		if taken {
			return more
		}
		select {
		case <-m.room:
		case <-m.ctx.Done(): // then it will be dropped
		}
	}
}

// offer reports false for taken if there is no room.
func (m *merged) offer(e event.Event) (taken, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending.reached() {
		return true, false
	}
	if _, isDone := e.Payload.(event.Done); isDone {
		done := e
		m.endLocked(ending{done: &done})
		return true, false
	}
	stopped := m.stoppedLocked()
	if !stopped && len(m.waiting) >= readAhead {
		return false, true
	}
	id := m.observeLocked(&e)
	if stopped {
		m.known.dropped++
		return true, !m.closed // it may still yield the done
	}
	m.addLocked(e, id)
	return true, true
}

// observeLocked learns from an event of the adapter. It returns the call whose tool_use or tool_result the event is.
func (m *merged) observeLocked(e *event.Event) event.CallID {
	if e.SessionID != "" {
		m.known.sessionID = e.SessionID
	}
	var id event.CallID
	var used bool
	switch p := e.Payload.(type) {
	case event.ToolCall:
		id, used = p.ID, true
	case event.ToolResult:
		id = p.ID
	default:
		return ""
	}
	call, known := m.positionOf(id)
	if used && !call.used {
		m.known.toolUses++
	}
	if used || !known {
		call = callPosition{e.SessionID, e.Turn, e.ParentToolUseID, e.AgentID, used || call.used}
	}
	if used {
		m.open[id] = call
	} else {
		delete(m.open, id)
		m.over.Put(id, call)
	}
	return id
}

func (m *merged) positionOf(id event.CallID) (callPosition, bool) {
	if call, open := m.open[id]; open {
		return call, true
	}
	return m.over.Get(id)
}

// addLocked appends an event of the adapter. Earlier events of the host about its call follow a
// tool_use and precede a tool_result.
func (m *merged) addLocked(e event.Event, id event.CallID) {
	if id == "" || len(m.held) == 0 {
		m.waiting = append(m.waiting, e)
	} else if _, isUse := e.Payload.(event.ToolCall); isUse {
		m.waiting = append(m.waiting, e)
		m.releaseLocked(id)
	} else {
		m.releaseLocked(id)
		m.waiting = append(m.waiting, e)
	}
	m.wakeLocked()
}

func (m *merged) releaseLocked(id event.CallID) {
	kept := m.held[:0]
	for _, e := range m.held {
		if e.CallID() == id {
			m.waiting = append(m.waiting, m.positionedLocked(e))
		} else {
			kept = append(kept, e)
		}
	}
	clear(m.held[len(kept):])
	m.held = kept
}

// positionedLocked gives an event about a call the position of the call.
func (m *merged) positionedLocked(e event.Event) event.Event {
	call, _ := m.positionOf(e.CallID())
	e.SessionID, e.Turn, e.ParentToolUseID, e.AgentID = call.sessionID, call.turn, call.parentToolUseID, call.agentID
	return e
}

// emit takes an event of the host. If it is about a call it waits for the tool_use of that call.
func (m *merged) emit(e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending.reached() {
		return
	}
	if m.stoppedLocked() {
		m.known.dropped++
		return
	}
	id := e.CallID()
	if _, known := m.positionOf(id); id != "" && !known {
		m.held = append(m.held, e)
		return
	}
	m.waiting = append(m.waiting, m.positionedLocked(e))
	m.wakeLocked()
}

// end notes that no done will come, and why. It reports false if the line was over already.
func (m *merged) end(err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending.reached() {
		return false
	}
	m.endLocked(ending{err: err})
	return true
}

func (m *merged) endLocked(how ending) {
	m.stoppedLocked()
	m.waiting = append(m.waiting, m.held...) // their calls will not come
	m.held = nil
	m.ending = how
	m.wakeLocked()
}

// drain is called when ctx has ended. It returns when that was noticed first.
func (m *merged) drain() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stoppedLocked()
	m.wakeLocked()
	return m.stopped
}

// stoppedLocked reports whether ctx has ended, and then drops what waits.
func (m *merged) stoppedLocked() bool {
	if m.ctx.Err() == nil {
		return false
	}
	if m.stopped.IsZero() {
		m.stopped = time.Now()
	}
	m.known.dropped += len(m.waiting) + len(m.held)
	m.waiting, m.held = nil, nil
	return true
}

// close notes that the reader has left.
func (m *merged) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

type situation struct {
	observed
	ending
	events []event.Event
}

// take takes all that waits. into is where the last events were, to be used again. If there is nothing,
// ready will have an entry when there is.
func (m *merged) take(into []event.Event) situation {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stoppedLocked()
	now := situation{m.known, m.ending, m.waiting}
	clear(into)
	m.waiting = into[:0]
	m.asleep = len(now.events) == 0
	signal(m.room)
	return now
}

func (m *merged) wakeLocked() {
	if m.asleep {
		m.asleep = false
		signal(m.ready)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
