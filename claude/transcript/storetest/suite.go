// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/transcript"
)

// RunStoreSuite checks every contract on a store of its own, which open makes empty. Open registers
// its clean-up with t.
func RunStoreSuite(t *testing.T, open func(t *testing.T) transcript.Store) {
	contracts := []struct {
		name  string
		check func(t *testing.T, s transcript.Store)
	}{
		{"unknown key has no entries", unknownKey},
		{"appended entries are loaded", appendLoad},
		{"order is kept across appends", order},
		{"entries stay equal as JSON", equalJSON},
		{"keys are separate", separateKeys},
		{"empty append leaves no trace", emptyAppend},
		{"hostile keys are refused", hostileKeys},
		{"ended context is an error", endedContext},
		{"concurrent appends to one key keep batches whole", concurrentSameKey},
		{"concurrent appends to many keys", concurrentManyKeys},
		{"caller may reuse its buffers", buffers},
		{"large entry", largeEntry},
		{"sessions are listed by project", listSessions},
		{"modification time moves with appends", modified},
		{"summaries follow the entries", listSummaries},
		{"delete removes subkeys too", deleteCascades},
		{"delete of a subkey leaves the rest", deleteSubkey},
		{"delete of a missing key is not an error", deleteNothing},
		{"key can be used again after delete", appendAfterDelete},
		{"subkeys are listed by session", listSubkeys},
		{"one user at a time has the lock", lock},
		{"locks are separate", separateLocks},
	}
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) { c.check(t, open(t)) })
	}
}

const (
	project = "-work-project"
	idA     = "aaaaaaaa-0000-4000-8000-000000000001"
	idB     = "bbbbbbbb-0000-4000-8000-000000000002"
)

var (
	keyA = transcript.Key{ProjectKey: project, SessionID: idA}
	keyB = transcript.Key{ProjectKey: project, SessionID: idB}
	subA = transcript.Key{ProjectKey: project, SessionID: idA, Subpath: "subagents/agent-a1"}
	deep = transcript.Key{ProjectKey: project, SessionID: idA, Subpath: "subagents/workflows/run-1/agent-a2"}
)

// numbered returns n different entries.
func numbered(label string, n int) []json.RawMessage {
	list := make([]json.RawMessage, n)
	for i := range list {
		list[i] = json.RawMessage(fmt.Sprintf(`{"type":"user","label":%q,"n":%d}`, label, i))
	}
	return list
}

func add(t *testing.T, s transcript.Store, key transcript.Key, entries ...json.RawMessage) {
	t.Helper()
	if err := s.Append(t.Context(), key, entries); err != nil {
		t.Fatalf("Append(%s, %d entries) = %v", key, len(entries), err)
	}
}

func load(t *testing.T, s transcript.Store, key transcript.Key) []json.RawMessage {
	t.Helper()
	got, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatalf("Load(%s) = %v", key, err)
	}
	return got
}

// want checks that key has exactly these entries, as JSON values.
func want(t *testing.T, s transcript.Store, key transcript.Key, entries ...json.RawMessage) {
	t.Helper()
	if diff := cmp.Diff(values(t, entries), values(t, load(t, s, key))); diff != "" {
		t.Errorf("Load(%s) (-want +got):\n%s", key, diff)
	}
}

func values(t *testing.T, entries []json.RawMessage) []any {
	t.Helper()
	list := make([]any, len(entries))
	for i, e := range entries {
		dec := json.NewDecoder(strings.NewReader(string(e)))
		dec.UseNumber()
		if err := dec.Decode(&list[i]); err != nil {
			t.Fatalf("entry %d is not JSON: %v: %.200q", i, err, e)
		}
	}
	return list
}

func unknownKey(t *testing.T, s transcript.Store) { want(t, s, keyA) }

func appendLoad(t *testing.T, s transcript.Store) {
	add(t, s, keyA, numbered("x", 3)...)
	want(t, s, keyA, numbered("x", 3)...)
}

func order(t *testing.T, s transcript.Store) {
	var all []json.RawMessage
	for i := range 20 {
		batch := numbered(fmt.Sprint("batch", i), i%4+1)
		add(t, s, keyA, batch...)
		all = append(all, batch...)
	}
	want(t, s, keyA, all...)
}

func equalJSON(t *testing.T, s transcript.Store) {
	entries := []json.RawMessage{
		json.RawMessage(`{"type":"unknown-kind","n":12345678901234567890,"f":1e-7,"null":null,"list":[1,[2,{"a":[]}]]}`),
		json.RawMessage(`{"text":"line\nbreak \u2028 \u0000 \"quoted\" <b>&amp;</b> héllo 😀"}`),
		json.RawMessage("{\n  \"indented\": [\n    1,\n    2\n  ]\n}"),
		json.RawMessage(`{}`),
	}
	add(t, s, keyA, entries...)
	want(t, s, keyA, entries...)
}

func separateKeys(t *testing.T, s transcript.Store) {
	other := transcript.Key{ProjectKey: "-other", SessionID: idA}
	for _, key := range []transcript.Key{keyA, keyB, subA, deep, other} {
		add(t, s, key, numbered(key.String(), 2)...)
	}
	for _, key := range []transcript.Key{keyA, keyB, subA, deep, other} {
		want(t, s, key, numbered(key.String(), 2)...)
	}
}

func emptyAppend(t *testing.T, s transcript.Store) {
	add(t, s, keyA)
	want(t, s, keyA)
	if l, ok := s.(transcript.SessionLister); ok {
		if got, err := l.ListSessions(t.Context(), project); err != nil || len(got) != 0 {
			t.Errorf("ListSessions after an empty append = %v, %v, want none", got, err)
		}
	}
}

func hostileKeys(t *testing.T, s transcript.Store) {
	for _, key := range HostileKeys() {
		if err := s.Append(t.Context(), key, numbered("x", 1)); err == nil {
			t.Errorf("Append(%q) = nil, want an error", key)
		}
		if _, err := s.Load(t.Context(), key); err == nil {
			t.Errorf("Load(%q) = nil, want an error", key)
		}
		if d, ok := s.(transcript.Deleter); ok && d.Delete(t.Context(), key) == nil {
			t.Errorf("Delete(%q) = nil, want an error", key)
		}
	}
}

// HostileKeys returns keys that no store and no resume may accept.
func HostileKeys() []transcript.Key {
	var keys []transcript.Key
	for _, sub := range []string{"/etc/passwd", "..", "../x", "a/../../x", "a/../b", "a//b", "a/", "./a", `a\b`, `..\x`, "a\x00b", "C:/x", "a\nb"} {
		keys = append(keys, transcript.Key{ProjectKey: project, SessionID: idA, Subpath: sub})
	}
	for _, p := range []string{"", ".", "..", "a/b", "/abs", `a\b`, "a\x00"} {
		keys = append(keys, transcript.Key{ProjectKey: p, SessionID: idA})
	}
	for _, id := range []string{"", "x", "../" + idA, idA + "/..", idA + "\n"} {
		keys = append(keys, transcript.Key{ProjectKey: project, SessionID: id})
	}
	return keys
}

func endedContext(t *testing.T, s transcript.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, keyA, numbered("x", 1)); err == nil {
		t.Error("Append with an ended context = nil, want an error")
	}
	if _, err := s.Load(ctx, keyA); err == nil {
		t.Error("Load with an ended context = nil, want an error")
	}
}

func concurrentSameKey(t *testing.T, s transcript.Store) {
	const writers, batches, size = 8, 5, 7
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for b := range batches {
				if err := s.Append(t.Context(), keyA, numbered(fmt.Sprintf("%d-%d", w, b), size)); err != nil {
					t.Errorf("Append by writer %d = %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	got := load(t, s, keyA)
	if len(got) != writers*batches*size {
		t.Fatalf("got %d entries, want %d", len(got), writers*batches*size)
	}
	for batch := range slices.Chunk(got, size) {
		var first struct{ Label string }
		if err := json.Unmarshal(batch[0], &first); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(values(t, numbered(first.Label, size)), values(t, batch)); diff != "" {
			t.Fatalf("batch %s is mixed with another (-want +got):\n%s", first.Label, diff)
		}
	}
}

func concurrentManyKeys(t *testing.T, s transcript.Store) {
	key := func(i int) transcript.Key {
		return transcript.Key{ProjectKey: project, SessionID: fmt.Sprintf("cccccccc-0000-4000-8000-%012d", i)}
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if err := s.Append(t.Context(), key(i), numbered(fmt.Sprint(i), 3)); err != nil {
				t.Errorf("Append to key %d = %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range 16 {
		want(t, s, key(i), numbered(fmt.Sprint(i), 3)...)
	}
}

func buffers(t *testing.T, s transcript.Store) {
	mine := numbered("x", 1)
	add(t, s, keyA, mine...)
	copy(mine[0], `{"overwritten":`)
	want(t, s, keyA, numbered("x", 1)...)
	copy(load(t, s, keyA)[0], `{"overwritten":`)
	want(t, s, keyA, numbered("x", 1)...)
}

func largeEntry(t *testing.T, s transcript.Store) {
	big := json.RawMessage(`{"type":"user","text":"` + strings.Repeat("0123456789abcdef", 2<<20/16) + `"}`)
	add(t, s, keyA, big, numbered("after", 1)[0])
	want(t, s, keyA, big, numbered("after", 1)[0])
}
