// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
)

// Dispatch appends an event to the log and returns its number. It takes an [event.Event], a payload, or a value of any
// other type, which becomes the payload; pointers count as what they point to. Do not change a value afterwards. A store
// keeps the JSON of a value: unexported fields, and bytes that are not UTF-8, are lost when the session is opened again.
//
// Give types that go to a store a method EventKind: it names them in the log. Other types have their Go name,
// "go:path/of/package.Name". That name is lost when the type is moved or renamed, and a type of package main has
// another name in the tests of its program.
//
// The context identifies the tool call that dispatches: the transaction in it, or else the call that a tool's
// handler is answering. An error means that nothing was kept and nothing has changed. The context does not
// interrupt: an entry is appended whole or, if the context has ended before, not at all.
//
// In a reducer it fails with [ErrInReducer].
//
// The events by which a session manages itself cannot be dispatched: [Seed], [Clear], [Session.Reset],
// [Session.Restore] and [Tx] do that.
func (s *Session) Dispatch(ctx context.Context, v any) (int64, error) {
	entry, err := s.newEntry(v)
	if err != nil {
		return 0, err
	}
	if kind := entry.Event.Kind; ownTypes[kind] != nil {
		return 0, advice.Wrap(fmt.Errorf("session: %s is recorded by the session alone", kind), "call the function that does it")
	}
	return s.dispatch(ctx, entry)
}

func (s *Session) dispatch(ctx context.Context, entry *Entry) (int64, error) {
	if ctx.Err() != nil {
		return 0, fmt.Errorf("session: dispatching %s: %w", entry.Event.Kind, context.Cause(ctx))
	}
	if err := s.order.acquire(); err != nil {
		s.opts.Logger.Error("a reducer dispatches", "session", s.ID(), "kind", entry.Event.Kind, "error", err)
		return 0, err
	}
	defer s.order.Unlock()
	_ = s.retryLocked() // then the store has no room for this one either
	if err := s.admitLocked(entry); err != nil {
		return 0, err
	}
	if err := s.causeLocked(ctx, entry); err != nil {
		return 0, err
	}
	if err := s.appendLocked(entry); err != nil {
		return 0, err
	}
	return entry.Pos, nil
}

// newEntry makes an entry of anything. It has no number yet.
func (s *Session) newEntry(v any) (*Entry, error) {
	entry := new(Entry)
	e := &entry.Event
	switch given := v.(type) {
	case event.Event:
		*e, v = given, given.Payload
	case *event.Event:
		if given != nil {
			*e, v = *given, given.Payload
		}
	}
	payload, err := payloadOf(v)
	if err != nil {
		return nil, err
	}
	e.Payload, e.Kind = payload, payload.EventKind()
	if e.Kind == "" {
		return nil, advice.Wrap(fmt.Errorf("session: %T has no kind and could not be found again", v), "let its EventKind return a name")
	}
	if e.Time.IsZero() {
		e.Time = s.opts.Now()
	}
	e.Time = e.Time.Truncate(time.Millisecond) // as a store keeps it
	return entry, nil
}

// admitLocked refuses an event that would be of another type when it is read again.
func (s *Session) admitLocked(entry *Entry) error {
	if err := s.admitRawLocked(entry); err != nil {
		return err
	}
	r, err := s.routeLocked(s.typeLocked(entry))
	if err != nil {
		return err
	}
	if _, raw := entry.Event.Payload.(event.Extension); !raw && r.kind != entry.Event.Kind {
		return advice.Wrap(fmt.Errorf("session: %T calls itself %q, but events of its type are %q", entry.Event.Payload, entry.Event.Kind, r.kind),
			"let EventKind always return the same")
	}
	return nil
}

// admitRawLocked sees to it that an event that was dispatched as JSON is what every reader makes of it.
func (s *Session) admitRawLocked(entry *Entry) error {
	raw, ok := entry.Event.Payload.(event.Extension)
	if !ok || s.types[raw.Kind] != nil {
		return nil
	}
	t := ownerOf(raw.Kind)
	if t == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimLocked(t)
}

// appendLocked numbers an entry, keeps it, and lets every reducer see it.
func (s *Session) appendLocked(entry *Entry) error {
	if err := s.keepLocked(entry); err != nil {
		return err
	}
	s.noteLocked(entry)
	failed := s.seeLocked(entry, false, nil)
	s.reportLocked(entry, failed)
	s.checkpointIfDueLocked()
	return nil
}

// turnLocked appends an entry that replaces the state. A nil state leaves it unchanged.
func (s *Session) turnLocked(what event.Payload, cause string, to *state) error {
	entry, err := s.newEntry(what)
	if err != nil {
		return err
	}
	entry.Cause = cause
	if err := s.keepLocked(entry); err != nil {
		return err
	}
	failed := s.seeLocked(entry, true, to)
	s.reportLocked(entry, failed)
	return nil
}

func (s *Session) keepLocked(entry *Entry) error {
	if s.closed {
		return ErrClosed
	}
	entry.Pos = s.last + 1
	if s.store == nil {
		return nil
	}
	s.warnOfMainLocked(entry.Event.Kind)
	record, err := encode(entry)
	if err != nil {
		return err
	}
	if err := s.store.Append([]Record{record}); err != nil {
		return fmt.Errorf("session: %s was not kept and has changed nothing: %w", entry.Event.Kind, err)
	}
	return nil
}

// warnOfMainLocked logs once that a name in the log is valid for this binary only.
func (s *Session) warnOfMainLocked(kind event.Kind) {
	if s.warnedOfMain || !strings.HasPrefix(string(kind), "go:main.") {
		return
	}
	s.warnedOfMain = true
	s.opts.Logger.Warn("a type of package main is called otherwise in another binary; give it a method EventKind", "session", s.ID(), "kind", kind)
}

// seeLocked passes a kept entry to the reducers. The entry is part of the log now, so it is published even if a
// reducer ends the goroutine, as a failing test does.
func (s *Session) seeLocked(entry *Entry, turn bool, to *state) []failure {
	s.changed = s.changed[:0]
	defer s.publishLocked(entry, turn, to)
	return s.foldLocked(entry, !turn)
}

// publishLocked makes an entry, and the state after it, visible.
func (s *Session) publishLocked(entry *Entry, turn bool, to *state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !turn:
		s.state = s.state.thaw()
		s.state.live = s.state.live.Append(entry.Pos)
	case to != nil:
		s.state = to
	}
	for _, f := range s.changed {
		s.setItemsLocked(f)
	}
	s.log, s.last = s.log.Append(entry), entry.Pos
	s.wakeLocked()
}

func (s *Session) wakeLocked() {
	if s.grown != nil {
		close(s.grown)
		s.grown = nil
	}
}
