// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
)

// A Snapshot is the state of a session at one moment.
type Snapshot struct {
	of    *Session
	state *state
	pos   int64
}

// Pos is the number of the last entry that the snapshot has seen.
func (snap *Snapshot) Pos() int64 { return snap.pos }

// Snapshot remembers the state. It takes constant time and copies nothing.
func (s *Session) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.frozen = true
	return &Snapshot{s, s.state, s.last}
}

// ErrForeignSnapshot: the snapshot is of another session.
var ErrForeignSnapshot = errors.New("session: the snapshot is of another session")

// Restore puts the slices of policy State back to a snapshot of this session, in constant time. A
// session can be restored to the same snapshot any number of times, and forward to a later one. The log
// keeps everything. It goes over transactions that are under way: what they did since is gone too.
func (s *Session) Restore(ctx context.Context, snap *Snapshot) error {
	if snap == nil || snap.of != s {
		return ErrForeignSnapshot
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.order.Lock()
	defer s.order.Unlock()
	for _, tx := range s.open {
		tx.stale = true
	}
	return s.turnLocked(Restored{To: snap.pos}, "", snap.state)
}

// turnLocked appends an entry that is no part of the state but replaces it. A nil state leaves it as it
// is.
func (s *Session) turnLocked(what any, cause string, to *state) error {
	e, err := s.envelope(what)
	if err != nil {
		return err
	}
	entry := &Entry{Cause: cause, Event: e}
	if err := s.keepLocked(entry); err != nil {
		return err
	}
	changed, failed := s.foldLocked(entry, Log)
	s.publishLocked(entry, func() {
		if to != nil {
			s.state = to
		}
		for _, f := range changed {
			s.setItemsLocked(f)
		}
	})
	s.reportLocked(entry, failed)
	return nil
}
