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

// Snapshot remembers the state. It takes constant time and copies nothing.
func (s *Session) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.frozen = true
	return &Snapshot{s, s.state, s.last}
}

// ErrForeignSnapshot means that the snapshot is of another session.
var ErrForeignSnapshot = errors.New("session: the snapshot is of another session")

// Restore puts the slices of policy State back to a snapshot of this session, in constant time. A
// session can be restored to the same snapshot any number of times, and forward to a later one. The log
// keeps everything. It goes over transactions: what they did since is gone too, and what the snapshot has
// of them is there again, also if they were rolled back meanwhile.
func (s *Session) Restore(ctx context.Context, snap *Snapshot) error {
	if snap == nil || snap.of != s {
		return ErrForeignSnapshot
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.order.Lock()
	defer s.order.Unlock()
	if err := s.turnLocked(Restored{To: snap.pos}, callOf(ctx), snap.state); err != nil {
		return err
	}
	for _, tx := range s.open {
		tx.stale = true
	}
	return nil
}
