// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"iter"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/persist"
)

// After yields every entry above a position and then follows the log, until the context ends or the
// session is closed. An error is the last pair; it means that the store could not be read. A caller
// that continues later passes the last position that it has seen.
func (s *Session) After(ctx context.Context, pos int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		pos := max(pos, 0)
		for {
			log, base, grown := s.follow(pos)
			for entry, err := range s.entries(pos, base, log) {
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					yield(Entry{}, err)
					return
				}
				pos = entry.Pos
				if !yield(*s.resolved(entry), nil) {
					return
				}
			}
			if grown == nil {
				return
			}
			select {
			case <-grown:
			case <-ctx.Done():
				return
			}
		}
	}
}

// follow returns the log, and a channel that is closed when there is more, or nil if there never will be.
func (s *Session) follow(pos int64) (log persist.Vector[*Entry], base int64, grown <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.log, s.base, nil
	}
	if pos < s.last {
		return s.log, s.base, alreadyGrown
	}
	if s.grown == nil {
		s.grown = make(chan struct{})
	}
	return s.log, s.base, s.grown
}

var alreadyGrown = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Events yields the events that are in the log now, in order. It ends early if a store cannot be read any more;
// [Session.After] returns that error.
func (s *Session) Events() iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		s.mu.RLock()
		log, base := s.log, s.base
		s.mu.RUnlock()
		for entry, err := range s.entries(0, base, log) {
			if err != nil || !yield(s.resolved(entry).Event) {
				return
			}
		}
	}
}

// resolved is an entry with its payload decoded, if its type is known.
func (s *Session) resolved(entry *Entry) *Entry {
	if _, raw := entry.Event.Payload.(event.Extension); !raw {
		return entry
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	known, err := resolve(entry, s.types)
	if err != nil {
		return entry
	}
	return known
}

func (s *Session) entriesLocked(after int64) iter.Seq2[*Entry, error] {
	return s.entries(after, s.base, s.log)
}

// entries yields the entries above a position: those up to base from the store, the others from log.
func (s *Session) entries(after, base int64, log persist.Vector[*Entry]) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		after := max(after, 0)
		if after < base {
			for entry, err := range s.kept(after, base) {
				if !yield(entry, err) || err != nil {
					return
				}
			}
			after = base
		}
		for _, entry := range log.From(int(after - base)) {
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// kept yields the entries above a position and up to another from the store: all of them, or an error.
func (s *Session) kept(after, last int64) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for record, err := range s.store.Records(after) {
			if err == nil && record.Pos > last {
				break
			}
			var entry *Entry
			if err == nil {
				entry, err = decodeNext(record, after)
			}
			if err != nil {
				yield(nil, fmt.Errorf("session: reading the log: %w", err))
				return
			}
			if after = entry.Pos; !yield(entry, nil) {
				return
			}
		}
		if after < last {
			yield(nil, fmt.Errorf("session: reading the log: %w: it ends at entry %d of %d", ErrCorrupt, after, last))
		}
	}
}
