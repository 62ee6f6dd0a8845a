// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/transcript"
)

// optional returns the store as the optional interface I, or skips the contract.
func optional[I any](t *testing.T, s transcript.Store) I {
	t.Helper()
	i, ok := s.(I)
	if !ok {
		t.Skipf("%T is not a %T", s, (*I)(nil))
	}
	return i
}

func sessionsOf(t *testing.T, l transcript.SessionLister, project string) map[string]time.Time {
	t.Helper()
	list, err := l.ListSessions(t.Context(), project)
	if err != nil {
		t.Fatalf("ListSessions(%q) = %v", project, err)
	}
	found := map[string]time.Time{}
	for _, s := range list {
		found[s.SessionID] = s.Modified
	}
	if len(found) != len(list) {
		t.Errorf("ListSessions(%q) repeats a session: %v", project, list)
	}
	return found
}

func listSessions(t *testing.T, s transcript.Store) {
	l := optional[transcript.SessionLister](t, s)
	add(t, s, keyA, numbered("a", 1)...)
	add(t, s, subA, numbered("sub", 1)...)
	add(t, s, transcript.Key{ProjectKey: project, SessionID: idB, Subpath: "subagents/agent-b1"}, numbered("sub", 1)...)
	add(t, s, transcript.Key{ProjectKey: "-other", SessionID: idB}, numbered("b", 1)...)
	got := sessionsOf(t, l, project)
	if _, ok := got[idA]; !ok || len(got) != 1 {
		t.Errorf("sessions = %v, want only %s: it alone has a main conversation in this project", got, idA)
	}
	if got := sessionsOf(t, l, "-none"); len(got) != 0 {
		t.Errorf("sessions of an unknown project = %v, want none", got)
	}
}

func modified(t *testing.T, s transcript.Store) {
	l := optional[transcript.SessionLister](t, s)
	add(t, s, keyA, numbered("a", 1)...)
	before := sessionsOf(t, l, project)[idA]
	if before.IsZero() {
		t.Fatal("modification time is zero")
	}
	// Clocks of stores are coarse: append until the time has moved.
	deadline := time.Now().Add(10 * time.Second)
	for !sessionsOf(t, l, project)[idA].After(before) {
		if time.Now().After(deadline) {
			t.Fatalf("modification time stayed at %v", before)
		}
		add(t, s, keyA, numbered("b", 1)...)
	}
}

func listSummaries(t *testing.T, s transcript.Store) {
	l := optional[transcript.SummaryLister](t, s)
	lines := []json.RawMessage{
		json.RawMessage(`{"type":"user","uuid":"u1","isSidechain":false,"timestamp":"2026-01-02T03:04:05Z","cwd":"/w","entrypoint":"cli","message":{"role":"user","content":"first words"}}`),
		json.RawMessage(`{"type":"tag","tag":"red","sessionId":"` + idA + `"}`),
		json.RawMessage(`{"type":"custom-title","customTitle":"Old","sessionId":"` + idA + `"}`),
		json.RawMessage(`{"type":"custom-title","customTitle":"New","sessionId":"` + idA + `"}`),
		json.RawMessage(`{"type":"tag","tag":"","sessionId":"` + idA + `"}`),
	}
	for _, line := range lines {
		add(t, s, keyA, line)
	}
	add(t, s, keyB, json.RawMessage(`{"type":"user","isSidechain":true}`))
	list, err := l.ListSummaries(t.Context(), project)
	if err != nil {
		t.Fatalf("ListSummaries = %v", err)
	}
	slices.SortFunc(list, func(a, b transcript.Summary) int { return len(b.FirstPrompt) - len(a.FirstPrompt) })
	for i := range list {
		if list[i].Modified.IsZero() {
			t.Errorf("summary of %s has no modification time", list[i].SessionID)
		}
		list[i].Modified = time.Time{}
	}
	a := transcript.Summary{SessionID: idA}.Fold(lines)
	if a.CustomTitle != "New" || a.Tag != "" || a.FirstPrompt != "first words" {
		t.Fatalf("Fold = %+v", a)
	}
	b := transcript.Summary{SessionID: idB, Started: true, IsSidechain: true}
	if diff := cmp.Diff([]transcript.Summary{a, b}, list); diff != "" {
		t.Errorf("ListSummaries (-want +got):\n%s", diff)
	}
}

func deleteCascades(t *testing.T, s transcript.Store) {
	d := optional[transcript.Deleter](t, s)
	for _, key := range []transcript.Key{keyA, subA, deep, keyB} {
		add(t, s, key, numbered("x", 1)...)
	}
	if err := d.Delete(t.Context(), keyA); err != nil {
		t.Fatalf("Delete = %v", err)
	}
	for _, key := range []transcript.Key{keyA, subA, deep} {
		want(t, s, key)
	}
	want(t, s, keyB, numbered("x", 1)...)
	if l, ok := s.(transcript.SessionLister); ok {
		if got := sessionsOf(t, l, project); len(got) != 1 {
			t.Errorf("sessions after Delete = %v, want one", got)
		}
	}
}

func deleteSubkey(t *testing.T, s transcript.Store) {
	d := optional[transcript.Deleter](t, s)
	for _, key := range []transcript.Key{keyA, subA, deep} {
		add(t, s, key, numbered("x", 1)...)
	}
	if err := d.Delete(t.Context(), subA); err != nil {
		t.Fatalf("Delete = %v", err)
	}
	want(t, s, subA)
	want(t, s, keyA, numbered("x", 1)...)
	want(t, s, deep, numbered("x", 1)...)
}

func deleteNothing(t *testing.T, s transcript.Store) {
	d := optional[transcript.Deleter](t, s)
	for _, key := range []transcript.Key{keyA, subA} {
		if err := d.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete(%s) = %v, want nil", key, err)
		}
	}
}

func appendAfterDelete(t *testing.T, s transcript.Store) {
	d := optional[transcript.Deleter](t, s)
	add(t, s, keyA, numbered("old", 3)...)
	if err := d.Delete(t.Context(), keyA); err != nil {
		t.Fatalf("Delete = %v", err)
	}
	add(t, s, keyA, numbered("new", 1)...)
	want(t, s, keyA, numbered("new", 1)...)
}

func listSubkeys(t *testing.T, s transcript.Store) {
	l := optional[transcript.SubkeyLister](t, s)
	for _, key := range []transcript.Key{keyA, subA, deep, keyB} {
		add(t, s, key, numbered("x", 1)...)
	}
	for key, wanted := range map[transcript.Key][]string{keyA: {subA.Subpath, deep.Subpath}, keyB: nil} {
		got, err := l.ListSubkeys(t.Context(), key)
		if err != nil {
			t.Fatalf("ListSubkeys(%s) = %v", key, err)
		}
		slices.Sort(got)
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("ListSubkeys(%s) (-want +got):\n%s", key, diff)
		}
	}
}

func mustLock(t *testing.T, l transcript.Locker, key transcript.Key) (unlock func()) {
	t.Helper()
	release, err := l.Lock(t.Context(), key)
	if err != nil {
		t.Fatalf("Lock(%s) = %v", key, err)
	}
	return func() {
		t.Helper()
		if err := release(); err != nil {
			t.Errorf("unlocking %s: %v", key, err)
		}
	}
}

func wantInUse(t *testing.T, l transcript.Locker, key transcript.Key) {
	t.Helper()
	if _, err := l.Lock(t.Context(), key); !errors.Is(err, transcript.ErrInUse) {
		t.Errorf("Lock(%s) while another user has the lock = %v, want ErrInUse", key, err)
	}
}

func lock(t *testing.T, s transcript.Store) {
	l := optional[transcript.Locker](t, s)
	first := mustLock(t, l, keyA)
	wantInUse(t, l, keyA)
	wantInUse(t, l, subA)
	add(t, s, keyA, numbered("a", 1)...) // entries need no lock
	want(t, s, keyA, numbered("a", 1)...)
	first()
	second := mustLock(t, l, keyA)
	first() // once more: it is the lock of the second user now
	wantInUse(t, l, keyA)
	second()

	var got atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			switch _, err := l.Lock(t.Context(), keyA); {
			case err == nil:
				got.Add(1)
			case !errors.Is(err, transcript.ErrInUse):
				t.Errorf("Lock = %v, want ErrInUse", err)
			}
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Errorf("%d of 16 users have the lock, want one", got.Load())
	}
}

func separateLocks(t *testing.T, s transcript.Store) {
	l := optional[transcript.Locker](t, s)
	for _, key := range []transcript.Key{keyA, keyB, {ProjectKey: "-other", SessionID: idA}} {
		defer mustLock(t, l, key)()
	}
	for _, key := range HostileKeys() {
		if key.Subpath != "" {
			continue
		}
		if _, err := l.Lock(t.Context(), key); err == nil {
			t.Errorf("Lock(%q) = nil, want an error", key)
		}
	}
	if lister, ok := s.(transcript.SessionLister); ok {
		if got := sessionsOf(t, lister, project); len(got) != 0 {
			t.Errorf("sessions after Lock = %v, want none", got)
		}
	}
}
