// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
)

// An agingStore has a checkpoint of another version of this package, whose slices do not fit, and cannot
// be read any more once it is broken.
type agingStore struct {
	*session.MemoryStore
	broken bool
}

func (s *agingStore) Close() error { return nil }

func (s *agingStore) Checkpoint() (session.Checkpoint, error) {
	c, err := s.MemoryStore.Checkpoint()
	if err != nil || c.Data == nil {
		return c, err
	}
	var saved map[string]any
	if err := json.Unmarshal(c.Data, &saved); err != nil {
		return c, err
	}
	delete(saved, "slices")
	c.Data, err = json.Marshal(saved)
	return c, err
}

func (s *agingStore) Records(after int64) iter.Seq2[session.Record, error] {
	if s.broken {
		return func(yield func(session.Record, error) bool) { yield(session.Record{}, errors.New("the disk is gone")) }
	}
	return s.MemoryStore.Records(after)
}

func TestFacts_UnreadablePermissionsAllowNothing(t *testing.T) {
	store := &agingStore{MemoryStore: session.NewMemoryStore()}
	open := func() *session.Session {
		s, err := session.Open(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if _, err := s.Dispatch(t.Context(), session.ToolPermissions{Blocked: []string{"Bash"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []bool{true, false} {
		s, g := open(), gate.Must(gate.Blocked(), gate.Default(event.Allow))
		store.broken = broken
		facts := guard.Facts(guard.FactsOptions{Session: s})
		for tool, want := range map[string]event.Verdict{"Bash": event.Deny, "Read": event.Allow} {
			if broken {
				want = event.Deny
			}
			call := event.ToolCall{ID: "1", Name: tool}
			if got := g.Decide(call, facts(t.Context(), gate.Call{ToolCall: call})); got.Verdict != want {
				t.Errorf("broken %v: %s is %+v, want %s", broken, tool, got, want)
			}
		}
		store.broken = false
	}
}
