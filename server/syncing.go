// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"time"
)

// syncShare is how many times as long as it took the index stays as it is while no run begins or ends: the logs of runs under way
// are read from their beginning.
const syncShare = 9

// A syncing is when the index was brought up to date.
type syncing struct {
	mu     sync.Mutex
	offset int64 // in the journal of the store
	until  time.Time
}

// sync brings the index up to date, but for what runs under way have done in the last moments.
func (s *Server) sync(ctx context.Context) error {
	s.syncing.mu.Lock()
	defer s.syncing.mu.Unlock()
	changes, offset, replaced, err := s.o.Store.Changes(s.syncing.offset)
	if err == nil && !replaced && len(changes) == 0 && time.Now().Before(s.syncing.until) {
		return nil
	}
	began := time.Now()
	if err := s.index.Sync(ctx); err != nil {
		return err
	}
	s.syncing.offset, s.syncing.until = offset, time.Now().Add(syncShare*time.Since(began))
	return nil
}
