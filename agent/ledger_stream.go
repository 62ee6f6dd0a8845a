// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"time"

	"github.com/drover-agents/drover/event"
)

// A Reading is what the stream of an agent has reported of a call.
type Reading struct {
	Name      string // empty while only the end of the call was reported
	Message   string // the answer of the model that has the call
	Turn      int
	Started   time.Time // when the call was read
	Stamped   time.Time // when it began, by the agent's clock; zero if the agent does not report it
	Over      bool      // its result was reported
	Denied    bool      // the agent reported that it denied the call
	Succeeded bool
}

// AddReported records a call that the stream reports, and returns its record: the next one under the id
// that the stream has not reported. Its Reading is empty.
func (l *Ledger) AddReported(call event.ToolCall) *Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.calls[call.ID], func(r *Record) bool { return !r.streamed && r.isNamed(call.Name) })
	if at < 0 {
		return l.streamedLocked(l.addLocked(call))
	}
	return l.streamedLocked(l.calls[call.ID][at])
}

// AddReportedEnd is AddReported for a call of which the stream reports the end alone: it belongs to an earlier run, or the report
// is forged. Its record is for the reader of the stream only.
func (l *Ledger) AddReportedEnd(id event.CallID) *Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streamedLocked(&Record{ToolCall: event.ToolCall{ID: id}})
}

func (l *Ledger) streamedLocked(r *Record) *Record {
	r.streamed, r.Reading, r.prompt = true, new(Reading), l.prompt
	l.read.Put(r.ID, r)
	return r
}

// Read is the record of the call that the stream has reported last under an id, or nil. Of an earlier prompt only the
// calls without a result are known, as calls that are over: a result that comes now is not reported.
func (l *Ledger) Read(id event.CallID) *Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, known := l.read.Get(id)
	switch {
	case !known || l.prompt > r.prompt+1 || l.prompt > r.prompt && r.Reading.Over:
		return nil
	case l.prompt > r.prompt:
		r.Reading, r.prompt = &Reading{Name: r.Reading.Name, Over: true}, l.prompt
	}
	return r
}

// NextPrompt has the ledger know that what the stream reports belongs to another prompt.
func (l *Ledger) NextPrompt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prompt++
}

// Last is the record of the last call with an id, or nil.
func (l *Ledger) Last(id event.CallID) *Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastLocked(id, func(*Record) bool { return true })
}

// Denied reports whether the call was denied. It is false for nil.
func (l *Ledger) Denied(r *Record) bool {
	if r == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.denied
}

// Failed has the ledger know how a call of a tool of this program failed: agents report only that it did.
func (l *Ledger) Failed(result event.ToolResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.lastLocked(result.ID, func(r *Record) bool { return !r.over })
	if r == nil { // the stream will report it
		r = l.addLocked(event.ToolCall{ID: result.ID, Name: result.Name})
		r.own = true
	}
	r.failure = &result
}

// Complete puts status and failure of a tool of this program into a result that the agent reports as an error.
func (l *Ledger) Complete(r *Record, result *event.ToolResult) {
	if r == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := r.failure; own != nil && own.Failure != nil && result.Status == event.ToolError {
		result.Status, result.Failure = own.Status, own.Failure
	}
}
