// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/transcript"
)

// conversationBytes is how much of past conversations an adapter keeps. One of a few turns has some hundred kilobytes.
const conversationBytes = 64 << 20

// conversations keep what can be continued. The home of a run is gone with the run, so the adapter keeps the transcripts
// itself, in memory, and forgets the ones that were longest at rest. A conversation belongs to the folder that it began in,
// wherever it goes on: an agent whose folder was made for it has another one each time.
type conversations struct {
	*transcript.MemoryStore
	limit int

	mu    sync.Mutex
	held  map[transcript.Key]int // bytes of each session; the keys have no Subpath
	began map[string]string      // the project of each session
	order []transcript.Key       // the one that was used last is last
	total int
}

func newConversations(limit int) *conversations {
	return &conversations{MemoryStore: transcript.NewMemoryStore(), limit: limit, held: map[transcript.Key]int{}, began: map[string]string{}}
}

// Append implements [transcript.Store].
func (c *conversations) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	key = c.home(key)
	if err := c.MemoryStore.Append(ctx, key, entries); err != nil {
		return err
	}
	size := 0
	for _, entry := range entries {
		size += len(entry)
	}
	key.Subpath = ""
	for _, old := range c.grow(key, size) {
		if err := c.Delete(ctx, old); err != nil {
			return err
		}
	}
	return nil
}

// Load implements [transcript.Store].
func (c *conversations) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	return c.MemoryStore.Load(ctx, c.home(key))
}

// ListSubkeys implements [transcript.SubkeyLister].
func (c *conversations) ListSubkeys(ctx context.Context, key transcript.Key) ([]string, error) {
	return c.MemoryStore.ListSubkeys(ctx, c.home(key))
}

// Lock implements [transcript.Locker]. A session has one lock, wherever it goes on.
func (c *conversations) Lock(ctx context.Context, key transcript.Key) (unlock func() error, err error) {
	return c.MemoryStore.Lock(ctx, transcript.Key{ProjectKey: "any", SessionID: key.SessionID})
}

// home is the key of a conversation where it began.
func (c *conversations) home(key transcript.Key) transcript.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	if project, known := c.began[key.SessionID]; known {
		key.ProjectKey = project
	}
	return key
}

// grow counts what a session has got, and returns the sessions that no longer fit, never the one that grows.
func (c *conversations) grow(key transcript.Key, size int) (over []transcript.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[key] += size
	c.began[key.SessionID] = key.ProjectKey
	c.total += size
	c.order = append(slices.DeleteFunc(c.order, func(other transcript.Key) bool { return other == key }), key)
	for c.total > c.limit && len(c.order) > 1 {
		oldest := c.order[0]
		c.order = c.order[1:]
		c.total -= c.held[oldest]
		delete(c.held, oldest)
		delete(c.began, oldest.SessionID)
		over = append(over, oldest)
	}
	return over
}

func (a *Adapter) keep(o *claude.Options) {
	if o.Store != nil || o.NoPersistence {
		return
	}
	o.Store, o.StoreEager = a.kept, true // eager: a run that breaks off can be continued too
}
