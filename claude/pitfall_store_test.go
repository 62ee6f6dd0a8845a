// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
)

// transcriptLines are the lines of the one transcript below a config directory.
func transcriptLines(t testing.TB, config string) []string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(config, "projects", "*", "*.jsonl"))
	if len(files) != 1 {
		t.Fatalf("transcripts %v, want one", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// The copy of a transcript must be complete and in order, without appends of nothing; an append that
// fails once is repeated; and one that keeps failing is reported, while the conversation goes on.
func TestPitfall66_MirrorIsCompleteAndInOrder(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) {
			cli := get(t)
			model := claudetest.NewModel(t, bash("echo mirrored"), script.Text("One."), script.Text("Two."))
			store := &watchedStore{MemoryStore: transcript.NewMemoryStore(), fail: func(_ transcript.Key, attempt int) error {
				if attempt == 1 {
					return errors.New("try again")
				}
				return nil
			}}
			opts := cli.Options(model)
			opts.Tools, opts.SessionID, opts.Store = []string{"Bash"}, unknownSession, store
			c := claudetest.Connect(t, opts)
			turn(t, c, "one")
			turn(t, c, "two")
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			entries, err := store.Load(t.Context(), transcript.Key{ProjectKey: transcript.ProjectKey(cli.Work), SessionID: unknownSession})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				got = append(got, string(e))
			}
			if want := transcriptLines(t, cli.Config); !slices.Equal(conversation(got), conversation(want)) {
				t.Errorf("the copy has %d entries of the conversation, the transcript %d, or in another order", len(conversation(got)), len(conversation(want)))
			}
			if slices.Contains(store.appends, 0) || store.tried != len(store.appends)+1 {
				t.Errorf("appends of %v entries in %d tries, want none empty and one repeated", store.appends, store.tried)
			}
		})
	}
}

// conversation are the uuids of the lines that have one.
func conversation(lines []string) []string {
	var ids []string
	for _, line := range lines {
		if e, err := transcript.ParseEntry([]byte(line)); err == nil && e.UUID != "" {
			ids = append(ids, e.UUID)
		}
	}
	return ids
}

// What a CLI wrote before it died belongs into the store too; and a store that refuses everything is
// reported without ending the conversation.
func TestPitfall66_MirrorAndFailures(t *testing.T) {
	frame := func(s *claudetest.ScriptSession, config string) {
		s.JSON(map[string]any{
			"type": "transcript_mirror", "filePath": filepath.Join(config, "projects", "p", unknownSession+".jsonl"),
			"entries": []any{map[string]string{"type": "user", "uuid": "u1"}},
		})
		s.JSON(map[string]any{"type": "transcript_mirror", "filePath": filepath.Join(config, "elsewhere.jsonl"), "entries": []any{map[string]string{"type": "user"}}})
	}
	t.Run("early end", func(t *testing.T) {
		config := t.TempDir()
		store := transcript.NewMemoryStore()
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Await("user")
			frame(s, config)
			s.Exit(1)
		})
		opts := cli.Options()
		opts.Env, opts.Store = claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": config}), store
		c := claudetest.Connect(t, opts)
		_, _, err := collect(c.Turn(t.Context(), claude.Text("hi")))
		if _, ok := errors.AsType[*claude.ProcessError](err); !ok {
			t.Errorf("the turn ended with %v, want a ProcessError", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if entries, err := store.Load(t.Context(), transcript.Key{ProjectKey: "p", SessionID: unknownSession}); err != nil || len(entries) != 1 {
			t.Errorf("the store has %d entries (%v), want the one that came before the end", len(entries), err)
		}
	})
	t.Run("refusing store", func(t *testing.T) {
		config := t.TempDir()
		store := &watchedStore{MemoryStore: transcript.NewMemoryStore(), fail: func(transcript.Key, int) error {
			return context.DeadlineExceeded // which is not tried again: it might have arrived
		}}
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Await("user")
			frame(s, config)
			s.SendText("on")
			s.Result("one")
			s.State("idle")
			s.Turn("two")
			s.UntilEOF()
		})
		opts := cli.Options()
		opts.Env, opts.Store = claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": config}), store
		c := claudetest.Connect(t, opts)
		_, one := turn(t, c, "one")
		end, two := turn(t, c, "two")
		if end.Answer.Result != "two" {
			t.Errorf("the conversation went on with %q", end.Answer.Result)
		}
		reports := of[*claude.MirrorError](append(one, two...))
		next, stop := iter.Pull2(c.Messages())
		defer stop()
		for len(reports) < 2 { // the store is asked beside the conversation
			m, err, ok := next()
			if err != nil || !ok {
				t.Fatalf("the messages ended: %v", err)
			}
			reports = append(reports, of[*claude.MirrorError]([]claude.Message{m})...)
		}
		if !strings.Contains(reports[0].Error, "outside") || !strings.Contains(reports[1].Error, "1 entries") {
			t.Errorf("reported %q and %q, want the frame that was dropped and the entries that were refused", reports[0].Error, reports[1].Error)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if store.tried != 1 {
			t.Errorf("%d tries, want one: an append that timed out may have arrived", store.tried)
		}
	})
}

// A session in a store goes on where nothing else of it is left: the model has the whole history,
// and what comes is copied behind what was.
func TestPitfall67_ResumeElsewhere(t *testing.T) {
	files, err := transcript.NewFileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = files.Close() }()
	for name, store := range map[string]transcript.Store{"memory": transcript.NewMemoryStore(), "files": files} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t, script.Text("I shall remember."), script.Text("A walrus."), script.Text("Still a walrus."))
			opts := cli.Options(model)
			opts.SessionID, opts.Store = unknownSession, store
			runTo(t, opts, "remember the walrus", "I shall remember.")
			if err := os.RemoveAll(cli.Config); err != nil { // another machine
				t.Fatal(err)
			}
			if err := os.Mkdir(cli.Config, 0o700); err != nil {
				t.Fatal(err)
			}
			key := transcript.Key{ProjectKey: transcript.ProjectKey(cli.Work), SessionID: unknownSession}
			before, _ := store.Load(t.Context(), key)

			opts = cli.Options(model)
			opts.Resume, opts.Store = unknownSession, store
			runTo(t, opts, "what was it?", "A walrus.")
			if !model.LastRequest().SawText("remember the walrus") || !model.LastRequest().SawText("I shall remember.") {
				t.Errorf("the resumed conversation has no history")
			}
			opts = cli.Options(model)
			opts.Continue, opts.Store = true, store
			runTo(t, opts, "and now?", "Still a walrus.")
			if !model.LastRequest().SawText("what was it?") {
				t.Errorf("the continued conversation lacks the resumed turn")
			}
			after, err := store.Load(t.Context(), key)
			if err != nil || len(after) <= len(before) || !slices.EqualFunc(before, after[:len(before)], func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
				t.Errorf("%d entries became %d (%v), want the old ones with new ones behind them", len(before), len(after), err)
			}
			if left := leftovers(t); len(left) != 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// runTo runs one prompt to its expected answer.
func runTo(t testing.TB, opts *claude.Options, prompt, want string) {
	t.Helper()
	end, _, err := collect(claude.Query(t.Context(), prompt, opts))
	if err != nil {
		t.Fatalf("%s: %v", prompt, err)
	}
	if end.Answer.Result != want {
		t.Errorf("%s: %q, want %q", prompt, end.Answer.Result, want)
	}
}

// The copy that the CLI resumes from holds a login. It must not stay behind when the start fails or
// is given up, must not hold the token whose use would end the user's own login, and must hold the
// user's settings, wherever these are.
func TestPitfall67_CopyOfTheLogin(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"access","refreshToken":"refresh"}}`,
		".claude/settings.json":     `{"model":"opus","enabledPlugins":{"p":true}}`,
		".claude.json":              `{"hasCompletedOnboarding":true}`,
	} {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	resume := func(cli *claudetest.ScriptedCLI) *claude.Options {
		opts := cli.Options()
		opts.Dir, opts.Store, opts.Resume = dir, filledStore(t, dir), unknownSession
		opts.Env = claude.ExactEnv(map[string]string{"HOME": home})
		return opts
	}
	t.Run("content", func(t *testing.T) {
		copied := make(chan map[string]string, 1)
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			config, _ := variable(s.Command(), "CLAUDE_CONFIG_DIR")
			files := map[string]string{}
			for _, name := range []string{".credentials.json", "settings.json", ".claude.json"} {
				text, _ := os.ReadFile(filepath.Join(config, name))
				files[name] = string(text)
			}
			copied <- files
			s.Initialize("")
			s.UntilEOF()
		})
		claudetest.Connect(t, resume(cli))
		files := <-copied
		if got := files[".credentials.json"]; !strings.Contains(got, "access") || strings.Contains(got, "refresh") {
			t.Errorf("login %s, want it without the refresh token", got)
		}
		if got := files["settings.json"]; !strings.Contains(got, "opus") || strings.Contains(got, "enabledPlugins") {
			t.Errorf("settings %s, want the user's without plugins", got)
		}
		if !strings.Contains(files[".claude.json"], "hasCompletedOnboarding") {
			t.Errorf("state %q, want the user's", files[".claude.json"])
		}
	})
	t.Run("failed start", func(t *testing.T) {
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) { s.Exit(1) })
		if _, err := claude.Connect(t.Context(), resume(cli)); err == nil {
			t.Errorf("Connect succeeded with a CLI that ended")
		}
	})
	t.Run("no CLI", func(t *testing.T) {
		opts := resume(claudetest.ScriptCLI(t, nil))
		opts.CLIPath = filepath.Join(dir, "gone")
		if _, err := claude.Connect(t.Context(), opts); !errors.Is(err, claude.ErrCLINotFound) {
			t.Errorf("Connect: %v", err)
		}
	})
	t.Run("cancelled start", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Await("control_request")
			cancel()
			s.UntilEOF()
		})
		if _, err := claude.Connect(ctx, resume(cli)); !errors.Is(err, context.Canceled) {
			t.Errorf("Connect: %v, want context.Canceled", err)
		}
	})
	t.Run("store that does not answer", func(t *testing.T) {
		opts := resume(claudetest.ScriptCLI(t, nil))
		opts.Store, opts.StoreLoadTimeout = silentStore{}, 20*time.Millisecond
		if _, err := claude.Connect(t.Context(), opts); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Connect: %v, want context.DeadlineExceeded", err)
		}
	})
	if left := leftovers(t); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// The first line of a transcript has no time. A session must have the time of its beginning all the
// same, on disk and in the store.
func TestPitfall68_SessionsKnowWhenTheyBegan(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) {
			cli := get(t)
			store := transcript.NewMemoryStore()
			opts := cli.Options(claudetest.NewModel(t, script.Text("ok")))
			opts.Store = store
			began := time.Now().Add(-time.Second)
			runTo(t, opts, "hi", "ok")
			sessions, err := transcript.List(t.Context(), transcript.ListOptions{Options: transcript.Options{Dir: cli.Config}})
			if err != nil || len(sessions) != 1 || sessions[0].CreatedAt.Before(began) || sessions[0].CreatedAt.After(time.Now()) {
				t.Errorf("on disk: %+v, %v; want one that began now", sessions, err)
			}
			stored, err := store.ListSummaries(t.Context(), transcript.ProjectKey(cli.Work))
			if err != nil || len(stored) != 1 || stored[0].CreatedAt.Before(began) {
				t.Errorf("in the store: %+v, %v; want one that began now", stored, err)
			}
		})
	}
}

// An id that is used as the name of a file must be one: anything else leads out of its folder.
func TestPitfall69_SessionIDsAreNotPaths(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"../../evil", "/etc/passwd", unknownSession + "/..", "..", unknownSession + "\x00"} {
		opts := &claude.Options{SessionID: id, Spawner: refusingSpawner{t}}
		_, err := claude.Connect(t.Context(), opts)
		if o, ok := errors.AsType[*claude.OptionError](err); !ok || o.Option != "SessionID" {
			t.Errorf("session id %q: %v, want an OptionError", id, err)
		}
		opts = &claude.Options{Resume: id, Store: filledStore(t, dir), Dir: dir, Env: claude.ExactEnv(nil), Spawner: refusingSpawner{t}}
		if _, err := claude.Connect(t.Context(), opts); err == nil {
			t.Errorf("resuming %q from a store was accepted", id)
		}
	}
	if left := leftovers(t); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// A store that others can write to may name files outside the session. Such a name is refused, and
// nothing of the session is laid out.
func TestPitfall70_HostileSubpathsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"../../../evil", "/tmp/evil", "subagents/../../../evil", "", ".", `..\evil`, "C:evil", "a\x00b"} {
		opts := &claude.Options{Resume: unknownSession, Store: hostileStore{filledStore(t, dir), sub}, Dir: dir, Env: claude.ExactEnv(nil), Spawner: refusingSpawner{t}}
		if _, err := claude.Connect(t.Context(), opts); !errors.Is(err, transcript.ErrBadKey) {
			t.Errorf("subpath %q: %v, want ErrBadKey", sub, err)
		}
	}
	if left := leftovers(t); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	if evil, _ := filepath.Glob(filepath.Join(os.TempDir(), "*evil*")); len(evil) != 0 {
		t.Errorf("%v was written", evil)
	}
}
