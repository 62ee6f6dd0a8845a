// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// A MemoryStore is a [Store] in the memory of its process. It has all optional methods.
type MemoryStore struct {
	mu        sync.Mutex
	entries   map[Key][]json.RawMessage
	summaries map[Key]Summary
	locked    map[Key]bool
	now       func() time.Time
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{entries: map[Key][]json.RawMessage{}, summaries: map[Key]Summary{}, locked: map[Key]bool{}, now: time.Now}
}

// Append implements [Store].
func (s *MemoryStore) Append(ctx context.Context, key Key, entries []json.RawMessage) error {
	if err := checkEntries(key, entries); err != nil || len(entries) == 0 {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		s.entries[key] = append(s.entries[key], bytes.Clone(e))
	}
	if key.Subpath == "" {
		sum := s.summaries[key].Fold(entries)
		sum.SessionID, sum.Modified = key.SessionID, s.now()
		s.summaries[key] = sum
	}
	return nil
}

// Load implements [Store].
func (s *MemoryStore) Load(ctx context.Context, key Key) ([]json.RawMessage, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []json.RawMessage
	for _, e := range s.entries[key] {
		entries = append(entries, bytes.Clone(e))
	}
	return entries, nil
}

// Lock implements [Locker].
func (s *MemoryStore) Lock(ctx context.Context, key Key) (unlock func() error, err error) {
	key.Subpath = ""
	if err := cmp.Or(key.Validate(), ctx.Err()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked[key] {
		return nil, fmt.Errorf("transcript: locking %s: %w", key, ErrInUse)
	}
	s.locked[key] = true
	return sync.OnceValue(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.locked, key)
		return nil
	}), nil
}

// ListSessions implements [SessionLister].
func (s *MemoryStore) ListSessions(ctx context.Context, projectKey string) ([]StoredSession, error) {
	sums, err := s.ListSummaries(ctx, projectKey)
	return storedSessions(sums), err
}

func storedSessions(sums []Summary) []StoredSession {
	var list []StoredSession
	for _, sum := range sums {
		list = append(list, StoredSession{sum.SessionID, sum.Modified})
	}
	return list
}

// ListSummaries implements [SummaryLister].
func (s *MemoryStore) ListSummaries(ctx context.Context, projectKey string) ([]Summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Summary
	for key, sum := range s.summaries {
		if key.ProjectKey == projectKey {
			list = append(list, sum)
		}
	}
	return list, ctx.Err()
}

// Delete implements [Deleter].
func (s *MemoryStore) Delete(ctx context.Context, key Key) error {
	if err := key.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.entries {
		if k == key || key.Subpath == "" && k.ProjectKey == key.ProjectKey && k.SessionID == key.SessionID {
			delete(s.entries, k)
			delete(s.summaries, k)
		}
	}
	return ctx.Err()
}

// ListSubkeys implements [SubkeyLister].
func (s *MemoryStore) ListSubkeys(ctx context.Context, key Key) ([]string, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for k := range s.entries {
		if k.Subpath != "" && k.ProjectKey == key.ProjectKey && k.SessionID == key.SessionID {
			list = append(list, k.Subpath)
		}
	}
	return list, ctx.Err()
}
