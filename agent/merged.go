// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/event"
)

// readAhead is how many events may wait for a reader before the adapter is held up.
const readAhead = 256

// merged is the one line in which the events of an adapter and those of its host wait for the reader.
// The adapter puts events and is held up when too many wait; the host tells events and never waits.
//
// It also knows when the line is over: with the first done event, when the adapter has returned, or
// when its owner closes it. Events that come later are counted and dropped.
type merged struct {
	mu      sync.Mutex
	waiting []event.Event
	held    map[string][]event.Event // what the host told of calls whose tool_use is still to come
	calls   map[string]event.Event   // the tool_use of each call, without its payload

	done      *event.Event // the adapter's
	returned  bool         // the adapter has returned
	err       error        // why it did, if it did not say done
	draining  atomic.Bool  // only a done is still wanted; written under mu
	drainedAt time.Time    // since when
	closed    bool         // nothing is
	dropped   int

	ready chan struct{} // has an entry when there is something new for the reader
	room  chan struct{} // has one when the adapter need not wait
}

func newMerged() *merged {
	return &merged{
		held: map[string][]event.Event{}, calls: map[string]event.Event{},
		ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put takes an event of the adapter. It reports false when no more events are wanted.
func (m *merged) put(ctx context.Context, e event.Event) bool {
	for {
		taken, more := m.tryPut(e)
		if taken {
			return more
		}
		select {
		case <-m.room:
		case <-ctx.Done(): // draining begins about now; whichever comes first, nothing waits any longer
			m.drain()
		}
	}
}

// tryPut reports false for taken if there is no room.
func (m *merged) tryPut(e event.Event) (taken, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, isDone := e.Payload.(event.Done)
	switch {
	case m.done != nil || m.returned:
		m.dropped++
		return true, false
	case isDone:
		m.flushLocked()
		m.done = &e
		signal(m.ready)
		return true, false
	case m.closed || m.draining.Load():
		m.dropped++
		return true, !m.closed
	case len(m.waiting) >= readAhead:
		return false, true
	}
	m.addLocked(e)
	return true, true
}

// addLocked appends an event of the adapter, with what was told about its call.
func (m *merged) addLocked(e event.Event) {
	id := e.CallID()
	held := m.held[id]
	_, isCall := e.Payload.(event.ToolCall)
	if isCall {
		m.waiting = append(m.waiting, e)
		call := e
		call.Payload = nil
		m.calls[id] = call
	}
	if id != "" && len(held) > 0 {
		delete(m.held, id)
		for _, told := range held {
			m.waiting = append(m.waiting, m.placedLocked(told))
		}
	}
	if !isCall {
		m.waiting = append(m.waiting, e)
	}
	signal(m.ready)
}

// tell takes an event of the host. It stands behind the tool_use of its call, for which it waits.
func (m *merged) tell(e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done != nil || m.returned || m.draining.Load() || m.closed {
		m.dropped++
		return
	}
	id := e.CallID()
	if _, known := m.calls[id]; id != "" && !known {
		m.held[id] = append(m.held[id], e)
		return
	}
	m.waiting = append(m.waiting, m.placedLocked(e))
	signal(m.ready)
}

// placedLocked gives what was told about a call the place of the call.
func (m *merged) placedLocked(e event.Event) event.Event {
	call := m.calls[e.CallID()]
	e.SessionID, e.Turn, e.ParentToolUseID, e.AgentID = call.SessionID, call.Turn, call.ParentToolUseID, call.AgentID
	return e
}

// flushLocked lets go what waits for calls that will not come.
func (m *merged) flushLocked() {
	for id, held := range m.held {
		m.waiting = append(m.waiting, held...)
		delete(m.held, id)
	}
}

// end says that the adapter has returned.
func (m *merged) end(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushLocked()
	m.returned, m.err = true, err
	signal(m.ready)
}

// drain says that only a done is still wanted.
func (m *merged) drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.draining.Load() || m.returned && m.done == nil {
		return // it failed before
	}
	m.draining.Store(true)
	m.drainedAt = time.Now()
	m.dropped += len(m.waiting)
	m.waiting = nil
	clear(m.held)
	signal(m.ready)
	signal(m.room)
}

// close says that nothing is wanted any longer but the token of a done.
func (m *merged) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.waiting = true, nil
	signal(m.room)
}

// A situation is what a reader finds.
type situation struct {
	events    []event.Event
	done      *event.Event
	returned  bool
	err       error
	drainedAt time.Time
	dropped   int
	calls     int
}

// take takes all that waits. into is where the last events were, to be used again.
func (m *merged) take(into []event.Event) situation {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := situation{m.waiting, m.done, m.returned, m.err, m.drainedAt, m.dropped, len(m.calls)}
	clear(into)
	m.waiting = into[:0]
	signal(m.room)
	return s
}
