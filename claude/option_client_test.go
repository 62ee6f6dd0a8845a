// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/launch"
)

// Options that stay in this program: what they do, on a scripted CLI.

func TestOptionRuntime_StartsTheScript(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell: run on Linux or macOS")
	}
	script := filepath.Join(t.TempDir(), "cli.js")
	if err := os.WriteFile(script, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	spawned := errors.New("spawned")
	var cmd claude.Command
	o := &claude.Options{CLIPath: script, Runtime: []string{"sh", "-x"}, Spawner: launch.SpawnerFunc(func(_ context.Context, c claude.Command) (claude.Process, error) {
		cmd = c
		return nil, spawned
	})}
	if err := connectError(t, o); !errors.Is(err, spawned) {
		t.Errorf("got %v, want the spawner's error", err)
	}
	if filepath.Base(cmd.Path) != "sh" || len(cmd.Args) < 3 || cmd.Args[0] != "-x" || cmd.Args[1] != script || !strings.HasPrefix(cmd.Args[2], "--") {
		t.Errorf("started %s %q, want the runtime, its arguments, the script, the flags", cmd.Path, cmd.Args)
	}
	o.Runtime = []string{"no-such-runtime"}
	if err := connectError(t, o); !errors.Is(err, claude.ErrCLINotFound) || !strings.Contains(advice.Text(err), "Options.Runtime") {
		t.Errorf("got %v, want ErrCLINotFound that names the option", err)
	}
}

func TestOptionMaxLineBytes_LongerLineIsAnError(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		s.SendText(strings.Repeat("x", 5000))
		s.UntilEOF()
	})
	o := cli.Options()
	o.MaxLineBytes = 4000
	_, _, err := collect(claude.Query(t.Context(), "hi", o))
	if e, ok := errors.AsType[*claude.MessageTooLargeError](err); !ok || e.Limit != 4000 {
		t.Errorf("got %v, want a MessageTooLargeError of 4000", err)
	}
}

func TestOptionMaxBufferedBytes_RestIsKeptOnDisk(t *testing.T) {
	const messages = 200
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		for range messages {
			s.SendText(strings.Repeat("x", 1000))
		}
		s.Result("done")
		s.State("idle")
		s.UntilEOF()
	})
	o := cli.Options()
	o.MaxBufferedBytes = 10_000
	_, got, err := collect(claude.Query(t.Context(), "hi", o))
	if n := len(of[*claude.AssistantMessage](got)); err != nil || n != messages {
		t.Errorf("%d messages (%v), want %d: what does not fit in memory waits on disk", n, err, messages)
	}
}

func TestOptionStderr_ReceivesEachLine(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Stderr("one")
		s.Stderr("two")
		s.Initialize("")
		s.UntilEOF()
	})
	o := cli.Options()
	lines := make(chan string, 2)
	o.Stderr = func(line string) { lines <- line }
	claudetest.Connect(t, o)
	if got := <-lines + " " + <-lines; got != "one two" {
		t.Errorf("got %q, want both lines", got)
	}
}

func TestOptionLogger_ReceivesWarnings(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.UntilEOF()
	})
	var log bytes.Buffer
	o := cli.Options()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.CanUseTool, o.PermissionMode = allowAll, claude.ModeBypassPermissions
	c := claudetest.Connect(t, o)
	_ = c.Close() // nothing writes to the log any more
	if !strings.Contains(log.String(), "CanUseTool is never asked") {
		t.Errorf("the log has no warning: %s", log.String())
	}
}

func TestOptionInitializeTimeout_EndsConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			for ok := true; ok; {
				_, ok = s.Read()
			}
		})
		o := cli.Options()
		o.InitializeTimeout = 7 * time.Second
		began := time.Now()
		err := connectError(t, o)
		if e, ok := errors.AsType[*claude.ControlTimeoutError](err); !ok || e.After != 7*time.Second || time.Since(began) < 7*time.Second {
			t.Errorf("got %v after %s, want a ControlTimeoutError after 7s", err, time.Since(began))
		}
	})
}

func TestOptionBackgroundCeiling_EndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Await("user")
			s.State("running")
			s.SendText("ok")
			s.Result("ok") // and never idle
			s.UntilEOF()
		})
		o := cli.Options()
		o.BackgroundCeiling = 3 * time.Minute
		began := time.Now()
		end, _, err := collect(claude.Query(t.Context(), "hi", o))
		if err != nil || !end.Forced || time.Since(began) < 3*time.Minute || time.Since(began) > 4*time.Minute {
			t.Errorf("end %+v after %s (%v), want a forced one after 3 minutes", end, time.Since(began), err)
		}
	})
}

// A slowStore counts and reports appends; with hang its reads last until their context ends.
type slowStore struct {
	*transcript.MemoryStore
	appends atomic.Int32
	stored  chan struct{}
	hang    bool
}

func (s *slowStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	s.appends.Add(1)
	s.stored <- struct{}{}
	return s.MemoryStore.Append(ctx, key, entries)
}

func (s *slowStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	if s.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.MemoryStore.Load(ctx, key)
}

func TestOptionStoreEager_AppendsDuringTheTurn(t *testing.T) {
	for _, eager := range []bool{true, false} {
		dir := t.TempDir()
		store := &slowStore{MemoryStore: transcript.NewMemoryStore(), stored: make(chan struct{}, 16)}
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Await("user")
			s.JSON(map[string]any{"type": "transcript_mirror", "filePath": filepath.Join(dir, "projects", "p", someUUID+".jsonl"), "entries": []any{map[string]string{"type": "user", "uuid": otherUUID}}})
			if eager {
				<-store.stored // before there is a result
			}
			s.Result("ok")
			s.State("idle")
			s.UntilEOF()
		})
		o := cli.Options()
		o.Store, o.StoreEager, o.Env = store, eager, claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": dir})
		if _, _, err := collect(claude.Query(t.Context(), "hi", o)); err != nil {
			t.Fatal(err)
		}
		if n := store.appends.Load(); n != 1 {
			t.Errorf("eager %v: %d appends, want 1", eager, n)
		}
	}
}

func TestOptionStoreDir_HoldsTheResumedFiles(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) { s.Initialize(""); s.UntilEOF() })
	o := cli.Options()
	o.Dir, o.StoreDir = t.TempDir(), t.TempDir()
	o.Store, o.Resume = filledStore(t, o.Dir), unknownSession
	client, err := claude.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	made, _ := filepath.Glob(filepath.Join(o.StoreDir, "drover-resume-*"))
	if err := client.Close(); err != nil || len(made) != 1 {
		t.Errorf("while the CLI runs there is %v in it (%v), want the config directory", made, err)
	}
	if left, err := os.ReadDir(o.StoreDir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestOptionStoreLoadTimeout_EndsConnect(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) { s.UntilEOF() })
	o := cli.Options()
	o.Store, o.StoreLoadTimeout, o.Resume = &slowStore{MemoryStore: transcript.NewMemoryStore(), hang: true}, time.Millisecond, someUUID
	err := connectError(t, o)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(advice.Text(err), "Options.Store") {
		t.Errorf("got %v, want that the store took too long", err)
	}
	if n := len(cli.Commands()); n != 0 {
		t.Errorf("%d processes were started, want none", n)
	}
}
