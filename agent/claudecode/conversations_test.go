// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude/transcript"
)

// A program that runs for months must not keep every conversation that it ever had.
func TestConversations_LeastRecentlyUsedIsForgotten(t *testing.T) {
	const limit = 10_000
	kept := newConversations(limit)
	entry := json.RawMessage(fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 4000)))
	key := func(n int, sub string) transcript.Key {
		return transcript.Key{ProjectKey: "p", SessionID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Subpath: sub}
	}
	for _, k := range []transcript.Key{key(1, ""), key(2, ""), key(1, "subagents/a"), key(3, "")} { // 1 was used after 2
		if err := kept.Append(t.Context(), k, []json.RawMessage{entry}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		key  transcript.Key
		want int
	}{{key(1, ""), 0}, {key(1, "subagents/a"), 0}, {key(2, ""), 0}, {key(3, ""), 1}} {
		got, err := kept.Load(t.Context(), c.key)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != c.want {
			t.Errorf("%v: got %d entries, want %d", c.key, len(got), c.want)
		}
	}
	if kept.total > limit {
		t.Errorf("%d bytes are kept, want at most %d", kept.total, limit)
	}
}

func TestConversations_SingleOversizedOneIsKept(t *testing.T) {
	kept := newConversations(10)
	k := transcript.Key{ProjectKey: "p", SessionID: "00000000-0000-4000-8000-000000000001"}
	for range 3 {
		if err := kept.Append(t.Context(), k, []json.RawMessage{json.RawMessage(`{"text":"longer than the limit"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := kept.Load(t.Context(), k)
	if err != nil || len(got) != 3 {
		t.Errorf("got %d entries and %v, want 3", len(got), err)
	}
}

func TestConversations_AnotherFolderIsTheSameConversation(t *testing.T) {
	const id = "00000000-0000-4000-8000-000000000001"
	c := newConversations(1000)
	one, elsewhere := transcript.Key{ProjectKey: "a", SessionID: id}, transcript.Key{ProjectKey: "b", SessionID: id}
	for _, key := range []transcript.Key{one, elsewhere} {
		if err := c.Append(t.Context(), key, []json.RawMessage{json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []transcript.Key{one, elsewhere} {
		if all, err := c.Load(t.Context(), key); err != nil || len(all) != 2 {
			t.Errorf("%s has %d entries (%v), want both", key, len(all), err)
		}
	}
	if _, err := c.Lock(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	_, err := c.Lock(t.Context(), elsewhere)
	if !errors.Is(err, transcript.ErrInUse) {
		t.Errorf("a run in another folder goes on with the conversation beside the first: %v, want ErrInUse", err)
	}
	if got := New(nil).Classify(err).Kind; got != agent.FailureRequest {
		t.Errorf("a conversation that is in use is a failure of kind %q, want %q", got, agent.FailureRequest)
	}
}
