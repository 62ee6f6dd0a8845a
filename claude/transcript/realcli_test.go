// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
)

// eachCLI runs a test with both CLIs, each answered by a model that answers "reply" and, when a prompt
// asks it to delegate, starts a subagent.
func eachCLI(t *testing.T, test func(t *testing.T, run runCLI, model *claudetest.Model)) {
	for name, find := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(name, func(t *testing.T) {
			cli := find(t)
			child := script.Input{"description": "child", "prompt": "child task", "subagent_type": "general-purpose", "run_in_background": false}
			model := claudetest.NewModel(t,
				script.Call("Agent", child).When(script.LastUserText("please delegate")),
				script.Text("reply").Always())
			test(t, func(t *testing.T, cwd, config string, args ...string) []byte {
				t.Helper()
				return oneTurn(t, cli, model, cwd, config, args)
			}, model)
		})
	}
}

// A runCLI makes one turn with the real CLI and returns its standard output.
type runCLI func(t *testing.T, cwd, config string, args ...string) []byte

func oneTurn(t *testing.T, cli *claudetest.RealCLI, model *claudetest.Model, cwd, config string, args []string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{
		"-p", "--output-format=stream-json", "--verbose", "--setting-sources=",
		"--strict-mcp-config", "--model=claude-sonnet-4-5", "--session-mirror",
	}, args...)
	cmd := exec.CommandContext(ctx, cli.Path, args...)
	cmd.Dir = cwd
	env := cli.Env(model.BaseURL())
	maps.Copy(env, map[string]string{"CLAUDE_CONFIG_DIR": config, "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"})
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("claude %v in %s: %v\nstdout: %.2000s\nstderr: %.2000s", args, filepath.Base(cwd), err, out, stderr.Bytes())
	}
	return out
}

// A session made by the real CLI is mirrored into a store, laid out elsewhere from it, and resumed
// there with the whole history: the model sees the first turn.
func TestRealCLI_ResumesFromAStore(t *testing.T) { eachCLI(t, resumeFromAStore) }

func resumeFromAStore(t *testing.T, run runCLI, model *claudetest.Model) {
	config, cwd := t.TempDir(), t.TempDir()
	const id = "5ca1ab1e-0000-4000-8000-000000000001"
	out := run(t, cwd, config, "--session-id="+id, "--tools=Agent", "--permission-mode=bypassPermissions", "please delegate the word xylophone")
	mirrored := transcript.NewMemoryStore()
	mirror(t, mirrored, transcript.MirrorOptions{Dir: config}, out)

	imported := newFileStore(t, t.TempDir())
	key, err := transcript.Import(t.Context(), imported, id, transcript.Options{Dir: config})
	if err != nil || key.ProjectKey != transcript.ProjectKey(cwd) {
		t.Fatalf("Import = %+v, %v, want project %s", key, err, transcript.ProjectKey(cwd))
	}
	for name, store := range map[string]transcript.Store{"mirrored": mirrored, "imported": imported} {
		t.Run(name, func(t *testing.T) {
			elsewhere := t.TempDir()
			r, err := transcript.Materialise(t.Context(), store, key, transcript.ResumeOptions{TempDir: t.TempDir(), WorkDir: elsewhere})
			if err != nil {
				t.Fatal(err)
			}
			agents, err := transcript.Subagents(t.Context(), id, transcript.Options{Dir: r.Dir})
			if err != nil || len(agents) != 1 || agents[0].Description != "child" {
				t.Errorf("Subagents = %+v, %v, want the child", agents, err)
			}
			more := run(t, elsewhere, r.Dir, "--resume="+id, "--tools=Agent", "and what was the word in "+name)
			for _, want := range []string{"xylophone", "reply", "and what was the word in " + name} {
				if !model.LastRequest().SawText(want) {
					t.Errorf("the model did not see %q", want)
				}
			}
			mirror(t, store, transcript.MirrorOptions{Dir: r.Dir, ProjectKey: key.ProjectKey}, more)
			if err := r.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
			entries, err := store.Load(t.Context(), key)
			if got := transcript.Conversation(entries); err != nil || len(got) != 6 {
				t.Errorf("the store has %d messages, %v, want the four old and the two new", len(got), err)
			}
		})
	}
}

// mirror puts the mirror frames of a CLI's output into a store.
func mirror(t *testing.T, store transcript.Store, opts transcript.MirrorOptions, output []byte) {
	t.Helper()
	opts.OnError = func(key transcript.Key, err error) { t.Errorf("mirroring %s: %v", key, err) }
	m, err := transcript.NewMirror(store, opts)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(output) {
		var frame struct {
			Type, FilePath string
			Entries        []json.RawMessage
		}
		if json.Unmarshal(line, &frame); frame.Type == "transcript_mirror" {
			m.Add(frame.FilePath, frame.Entries)
		}
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The CLI accepts what we write: a renamed and tagged session, and a fork of it.
func TestRealCLI_ResumesAFork(t *testing.T) { eachCLI(t, resumeAFork) }

func resumeAFork(t *testing.T, run runCLI, model *claudetest.Model) {
	config, cwd := t.TempDir(), t.TempDir()
	const id = "5ca1ab1e-0000-4000-8000-000000000002"
	run(t, cwd, config, "--session-id="+id, "--tools=", "remember marimba")
	opts := transcript.Options{Dir: config, Project: cwd}
	if err := errors.Join(transcript.Rename(t.Context(), id, "Instruments", opts), transcript.Tag(t.Context(), id, "music", opts)); err != nil {
		t.Fatal(err)
	}
	fork, err := transcript.Fork(t.Context(), id, transcript.ForkOptions{Options: opts})
	if err != nil {
		t.Fatal(err)
	}
	run(t, cwd, config, "--resume="+fork, "--tools=", "go on")
	if last := model.LastRequest(); !last.SawText("remember marimba") || !last.SawText("reply") {
		t.Error("the model did not see the forked history")
	}
	run(t, cwd, config, "--resume="+id, "--tools=", "go on too")
	for id, want := range map[string]string{id: "Instruments", fork: "Instruments (fork)"} {
		if info, err := transcript.Get(t.Context(), id, opts); err != nil || info.Title != want {
			t.Errorf("title of %s = %q, %v, want %q", id, info.Title, err, want)
		}
		got, err := transcript.Messages(t.Context(), id, transcript.MessagesOptions{Options: opts})
		if err != nil || len(got) != 4 {
			t.Errorf("%s has %d messages, %v, want 4", id, len(got), err)
		}
	}
}

// The CLI and we name the directory of a project alike.
func TestRealCLI_NamesProjectDirectoriesAlike(t *testing.T) { eachCLI(t, projectDirectories) }

func projectDirectories(t *testing.T, run runCLI, _ *claudetest.Model) {
	config, base := t.TempDir(), t.TempDir()
	for i, name := range []string{"uni-😀-e\u0301 x_y", strings.Repeat("a", 120) + "/" + strings.Repeat("bé", 60)} {
		cwd := filepath.Join(base, name)
		if err := os.MkdirAll(cwd, 0o700); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("5ca1ab1e-0000-4000-8000-00000000001%d", i)
		run(t, cwd, config, "--session-id="+id, "--tools=", "hello")
		info, err := transcript.Get(t.Context(), id, transcript.Options{Dir: config})
		if err != nil || info.ProjectKey != transcript.ProjectKey(cwd) {
			t.Errorf("the CLI chose %q, %v, we %q", info.ProjectKey, err, transcript.ProjectKey(cwd))
		}
	}
}
