// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/ident"
)

const conversationID = "6f9619ff-8b86-4d11-b42d-00c04fc964ff"

func stored(t *testing.T, s transcript.Store) int {
	t.Helper()
	entries, err := s.Load(t.Context(), transcript.Key{ProjectKey: "any", SessionID: conversationID})
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Folders whose names the CLI cannot distinguish do not share conversations. One that was stored under the CLI's
// name for both goes on in its own folder, and in the same file.
func TestConversations_FoldersDoNotShareKeys(t *testing.T) {
	base := t.TempDir()
	files, err := transcript.NewFileStore(filepath.Join(base, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	one, other := filepath.Join(base, "a", "b"), filepath.Join(base, "a-b")
	if transcript.ProjectKey(one) != transcript.ProjectKey(other) {
		t.Fatal("the CLI distinguishes the folders: the trap of this test is gone")
	}
	line := func(dir string) []json.RawMessage {
		text, _ := json.Marshal(map[string]string{"type": "user", "cwd": dir})
		return []json.RawMessage{json.RawMessage(`{"type":"mode"}`), text}
	}
	key := transcript.Key{ProjectKey: "any", SessionID: conversationID}
	if err := newProjectStore(files, one).Append(t.Context(), key, line(one)); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, newProjectStore(files, one)); got != 2 {
		t.Errorf("its own folder has %d lines, want 2", got)
	}
	if got := stored(t, newProjectStore(files, other)); got != 0 {
		t.Errorf("the other folder has %d lines, want none", got)
	}
	if err := newProjectStore(files, one).Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	old := transcript.Key{ProjectKey: transcript.ProjectKey(one), SessionID: conversationID}
	if err := files.Append(t.Context(), old, line(one)); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, newProjectStore(files, one)); got != 2 {
		t.Errorf("under the old key its own folder has %d lines, want 2", got)
	}
	if got := stored(t, newProjectStore(files, other)); got != 0 {
		t.Errorf("under the old key the other folder has %d lines, want none", got)
	}
	if err := newProjectStore(files, one).Append(t.Context(), key, line(one)); err != nil {
		t.Fatal(err)
	}
	if got, err := files.Load(t.Context(), old); err != nil || len(got) != 4 {
		t.Errorf("the old file has %d lines, %v; want 4", len(got), err)
	}
}

// A conversation under an old key that was held in a workspace does not name its folder. It goes on in the only folder
// that has the key; where there are two, it is refused until its file is moved.
func TestConversations_OldKeyOfTwoFoldersIsRefused(t *testing.T) {
	base := t.TempDir()
	if real, err := filepath.EvalSymlinks(base); err == nil {
		base = real
	}
	state := filepath.Join(base, "store")
	files, err := transcript.NewFileStore(state)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	one, other := filepath.Join(base, "a", "b"), filepath.Join(base, "a-b")
	mkdir := func(dir string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mkdir(one)
	key := transcript.Key{ProjectKey: "any", SessionID: conversationID}
	old := transcript.Key{ProjectKey: transcript.ProjectKey(one), SessionID: conversationID}
	for _, text := range []string{`{"type":"mode"}`, `{"type":"user","cwd":"/tmp/wink-sdk-1"}`} {
		if err := files.Append(t.Context(), old, []json.RawMessage{json.RawMessage(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := stored(t, newProjectStore(files, one)); got != 2 {
		t.Errorf("the only folder has %d lines, want 2", got)
	}
	mkdir(other)
	for _, dir := range []string{one, other} {
		s := newProjectStore(files, dir)
		_, lockErr := s.Lock(t.Context(), key)
		_, loadErr := s.Load(t.Context(), key)
		for _, err := range []error{lockErr, loadErr, s.Append(t.Context(), key, []json.RawMessage{json.RawMessage(`{}`)})} {
			if !errors.Is(err, transcript.ErrNotFound) || !strings.Contains(advice.Text(err), "\n  next: ") || !strings.Contains(advice.Text(err), s.project) {
				t.Errorf("in %s: %v, want an error that says what to do", dir, err)
			}
		}
	}
	mine := newProjectStore(files, one)
	mkdir(filepath.Join(state, mine.project))
	if err := os.Rename(filepath.Join(state, mine.old, conversationID+".jsonl"), filepath.Join(state, mine.project, conversationID+".jsonl")); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, mine); got != 2 {
		t.Errorf("the folder that it was moved to has %d lines, want 2", got)
	}
	if got := stored(t, newProjectStore(files, other)); got != 0 {
		t.Errorf("the other folder has %d lines, want none", got)
	}
}

// countedStore counts the conversations that are loaded.
type countedStore struct {
	*transcript.FileStore
	loads int
}

func (s *countedStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	s.loads++
	return s.FileStore.Load(ctx, key)
}

// The key of a conversation is chosen once, not with each line.
func TestConversations_LinesAreAppendedWithoutLoading(t *testing.T) {
	files, err := transcript.NewFileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	folder := t.TempDir()
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	line, err := json.Marshal(map[string]string{"type": "user", "cwd": folder})
	if err != nil {
		t.Fatal(err)
	}
	for name, project := range map[string]string{"old key": transcript.ProjectKey(folder), "new key": newProjectStore(files, folder).project} {
		t.Run(name, func(t *testing.T) {
			counted := &countedStore{FileStore: files}
			s := newProjectStore(counted, folder)
			in := transcript.Key{ProjectKey: project, SessionID: ident.NewUUID()}
			if err := files.Append(t.Context(), in, []json.RawMessage{line}); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if err := s.Append(t.Context(), transcript.Key{ProjectKey: "any", SessionID: in.SessionID}, []json.RawMessage{line}); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := files.Load(t.Context(), in); err != nil || len(got) != 21 {
				t.Errorf("the file has %d lines, %v; want 21", len(got), err)
			}
			if counted.loads != 1 {
				t.Errorf("20 appends loaded the conversation %d times, want once", counted.loads)
			}
		})
	}
}

// A listing has the conversations of the folder under both keys, each once, and none of another folder.
func TestConversations_OldKeysAreListed(t *testing.T) {
	base := t.TempDir()
	if real, err := filepath.EvalSymlinks(base); err == nil {
		base = real
	}
	files, err := transcript.NewFileStore(filepath.Join(base, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	one, other := filepath.Join(base, "a", "b"), filepath.Join(base, "a-b")
	s := newProjectStore(files, one)
	ids := map[string]string{} // what each conversation is
	for _, c := range []struct{ name, project, cwd string }{
		{"new", s.project, one}, {"old", s.old, one}, {"old, of the other folder", s.old, other}, {"new, of the other folder", newProjectStore(files, other).project, other},
	} {
		id := ident.NewUUID()
		ids[id] = c.name
		line, err := json.Marshal(map[string]string{"type": "user", "cwd": c.cwd})
		if err == nil {
			err = files.Append(t.Context(), transcript.Key{ProjectKey: c.project, SessionID: id}, []json.RawMessage{line})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sessions, err := s.ListSessions(t.Context(), "any")
	if err != nil {
		t.Fatal(err)
	}
	summaries, err := s.ListSummaries(t.Context(), "any")
	if err != nil {
		t.Fatal(err)
	}
	var inSessions, inSummaries []string
	for _, l := range sessions {
		inSessions = append(inSessions, ids[l.SessionID])
	}
	for _, l := range summaries {
		inSummaries = append(inSummaries, ids[l.SessionID])
	}
	for name, got := range map[string][]string{"ListSessions": inSessions, "ListSummaries": inSummaries} {
		if want := []string{"new", "old"}; !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

// A conversation goes on in one run at a time.
func TestConversations_InUseIsAnError(t *testing.T) {
	files, err := transcript.NewFileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	s, key := newProjectStore(files, t.TempDir()), transcript.Key{ProjectKey: "any", SessionID: conversationID}
	for range 2 {
		unlock, err := s.Lock(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Lock(t.Context(), key); !errors.Is(err, transcript.ErrInUse) {
			t.Errorf("a second lock: %v, want ErrInUse", err)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
	}
}
