// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/drover-agents/drover/claude/transcript"
)

// watchedStore notes what is appended, and fails where the test says so.
type watchedStore struct {
	*transcript.MemoryStore
	fail func(key transcript.Key, attempt int) error

	mu      sync.Mutex
	appends []int // entries of each append that went through
	tried   int
}

func (s *watchedStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	if s.fail != nil {
		if err := s.fail(key, s.tried); err != nil {
			return err
		}
	}
	s.appends = append(s.appends, len(entries))
	return s.MemoryStore.Append(ctx, key, entries)
}

// leftovers are the folders of resumed sessions in the temporary directory.
func leftovers(t testing.TB) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "drover-resume-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// filledStore has one session of the project of dir.
func filledStore(t testing.TB, dir string) *transcript.MemoryStore {
	t.Helper()
	store := transcript.NewMemoryStore()
	entry := json.RawMessage(`{"type":"user","uuid":"u1","sessionId":"` + unknownSession + `","message":{"role":"user","content":"hi"}}`)
	if err := store.Append(t.Context(), transcript.Key{ProjectKey: transcript.ProjectKey(dir), SessionID: unknownSession}, []json.RawMessage{entry}); err != nil {
		t.Fatal(err)
	}
	return store
}

// silentStore answers when its context ends.
type silentStore struct{}

func (silentStore) Append(context.Context, transcript.Key, []json.RawMessage) error { return nil }

func (silentStore) Load(ctx context.Context, _ transcript.Key) ([]json.RawMessage, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// hostileStore names a subpath of its own choice.
type hostileStore struct {
	*transcript.MemoryStore
	subpath string
}

func (s hostileStore) ListSubkeys(context.Context, transcript.Key) ([]string, error) {
	return []string{"subagents/agent-1", s.subpath}, nil
}

func (s hostileStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	key.Subpath = ""
	return s.MemoryStore.Load(ctx, key)
}
