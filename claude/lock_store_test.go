// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/transcript"
)

// Two clients do not go on with one conversation at once: the turns of one would be lost. A fork may.
func TestResume_ConversationInUseIsRefused(t *testing.T) {
	store, err := transcript.NewFileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	dir := t.TempDir()
	if err := store.Append(t.Context(), transcript.Key{ProjectKey: transcript.ProjectKey(dir), SessionID: someUUID}, []json.RawMessage{json.RawMessage(`{"type":"user"}`)}); err != nil {
		t.Fatal(err)
	}
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.UntilEOF()
	})
	options := func(set func(*claude.Options)) *claude.Options {
		o := cli.Options()
		o.Dir, o.Store, o.Resume = dir, store, someUUID
		o.Env = claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": t.TempDir()})
		set(o)
		return o
	}
	newest := func(o *claude.Options) { o.Resume, o.Continue = "", true }
	first := claudetest.Connect(t, options(func(*claude.Options) {}))
	for name, set := range map[string]func(*claude.Options){"Resume": func(*claude.Options) {}, "Continue": newest} {
		if c, err := claude.Connect(t.Context(), options(set)); !errors.Is(err, transcript.ErrInUse) {
			t.Errorf("a second client with %s: %v, want ErrInUse", name, err)
			_ = c.Close()
		}
	}
	fork := claudetest.Connect(t, options(func(o *claude.Options) { o.Fork, o.SessionID = true, otherUUID }))
	if err := errors.Join(first.Close(), fork.Close()); err != nil {
		t.Fatal(err)
	}
	claudetest.Connect(t, options(newest))
	if c, err := claude.Connect(t.Context(), options(newest)); !errors.Is(err, transcript.ErrInUse) {
		t.Errorf("a second client beside one with Continue: %v, want ErrInUse", err)
		_ = c.Close()
	}
}

// The lock follows a CLI that begins another session, as it does after /clear: others may go on with the session
// that it has left, and not with the one that it is in. A late line of the first session is stored all the same.
func TestLock_FollowsTheSession(t *testing.T) {
	store, err := transcript.NewFileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	dir, config := t.TempDir(), t.TempDir()
	key := func(session string) transcript.Key {
		return transcript.Key{ProjectKey: transcript.ProjectKey(dir), SessionID: session}
	}
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		for _, sessions := range [][]string{{someUUID}, {otherUUID, someUUID}, {someUUID}} {
			s.Await("user")
			s.State("running")
			for _, session := range sessions {
				file := filepath.Join(config, "projects", key(session).ProjectKey, session+".jsonl")
				s.JSON(map[string]any{"type": "transcript_mirror", "filePath": file, "entries": []any{map[string]string{"type": "user"}}})
			}
			s.Result("done")
			s.State("idle")
		}
		s.UntilEOF()
	})
	o := cli.Options()
	o.Dir, o.Store = dir, store // the id is not known before the first line
	o.Env = claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": config})
	c := claudetest.Connect(t, o)
	locked := func() (sessions []string) {
		for _, session := range []string{someUUID, otherUUID} {
			unlock, err := store.Lock(t.Context(), key(session))
			if err == nil {
				err = unlock()
			} else if errors.Is(err, transcript.ErrInUse) {
				sessions, err = append(sessions, session), nil
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return sessions
	}
	for i, want := range [][]string{{someUUID}, {otherUUID}, {otherUUID}} {
		turn(t, c, "go")
		if err := c.Stored(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := locked(); !slices.Equal(got, want) {
			t.Errorf("after turn %d these are locked: %q, want %q", i+1, got, want)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := locked(); len(got) > 0 {
		t.Errorf("after Close these are locked: %q", got)
	}
	if entries, err := store.Load(t.Context(), key(someUUID)); err != nil || len(entries) != 3 {
		t.Errorf("the first session has %d lines, %v; want 3", len(entries), err)
	}
}
