// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/drover-agents/drover/claude/transcript"
)

// A lockedStore is Options.Store with the lock of the session that the CLI is in, if the store is a [transcript.Locker]. A
// CLI can begin another session, as after /clear: its first line takes the lock of that one, and the lock of the session
// before is released at the end of the turn. Lines that the CLI adds to it later need no lock: they belong to no turn.
type lockedStore struct {
	transcript.Store
	mu      sync.Mutex
	session string                  // the one that was begun last
	unlock  map[string]func() error // of all sessions so far; nil for those that were left
}

// Append implements [transcript.Store].
func (s *lockedStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	if err := s.lock(ctx, key); err != nil {
		return err
	}
	return s.Store.Append(ctx, key, entries)
}

// lock takes the lock of a session that is new here.
func (s *lockedStore) lock(ctx context.Context, key transcript.Key) error {
	locker, ok := s.Store.(transcript.Locker)
	if !ok || s.knows(key.SessionID) {
		return nil
	}
	unlock, err := locker.Lock(ctx, transcript.Key{ProjectKey: key.ProjectKey, SessionID: key.SessionID})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.unlock[key.SessionID] = key.SessionID, unlock
	return nil
}

func (s *lockedStore) knows(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.unlock[session]
	return known
}

// release releases the locks of all sessions, or of all but the last.
func (s *lockedStore) release(all bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for session, unlock := range s.unlock {
		if unlock != nil && (all || session != s.session) {
			s.unlock[session] = nil
			errs = append(errs, unlock())
		}
	}
	return errors.Join(errs...)
}

// lockStore keeps other clients from continuing the same conversation, if the store has locks.
func (c *Client) lockStore(ctx context.Context) error {
	o := c.opts
	if o.Store == nil {
		return nil
	}
	c.store = &lockedStore{Store: o.Store, unlock: map[string]func() error{}}
	id := o.SessionID
	if id == "" && !o.Fork {
		id = o.Resume
	}
	if id == "" {
		return nil
	}
	err := c.store.lock(ctx, transcript.Key{ProjectKey: o.projectKey(), SessionID: id})
	if err != nil && (o.Resume != "" || errors.Is(err, transcript.ErrInUse)) {
		return fmt.Errorf("claude: the conversation in Options.Store: %w", err)
	}
	return nil // no other client knows a new one yet: its first line takes the lock, or is not stored either
}
