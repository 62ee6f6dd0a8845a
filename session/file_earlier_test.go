// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/json"
	"errors"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// earlierLog, its checkpoint and its state were written by the code of commit b8b86f1, by the first test of this
// file with -record-earlier, in the folder /srv/shop. The program was killed while a call was under way.
const earlierLog = "testdata/log.b8b86f1.jsonl"

var recordEarlier = flag.String("record-earlier", "", "write the log of this code to a new file, with the files in an empty folder /srv/shop")

// earlierAnswer is the answer that the prompt of the log asks for.
type earlierAnswer struct {
	Summary string `json:"summary"`
}

func earlierPrompt(t *testing.T) *prompt.Prompt[earlierAnswer] {
	t.Helper()
	p, err := prompt.NewPrompt[earlierAnswer]("demo", "shop",
		prompt.Markdown("task", "Task", "Write the cart.").With(noteTool()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openEarlier opens a log with the reducers of the program that wrote it.
func openEarlier(t *testing.T, path string) *session.Session {
	t.Helper()
	s := open(t, openLogFile(t, path, nil))
	session.Reduce(s, func(n noteCount, _ note) noteCount { return n + 1 })
	session.Reduce(s, func(sum picky, e added) picky {
		if e.N == 13 {
			panic("unlucky")
		}
		return sum + picky(e.N)
	})
	return s
}

// earlierState is the state of a session as JSON, one line for each slice.
func earlierState(t *testing.T, s *session.Session) string {
	t.Helper()
	var text strings.Builder
	for _, state := range []struct {
		name  string
		items any
	}{
		{"rendered", items[session.PromptRendered](s)},
		{"tools", items[session.RenderedTools](s)},
		{"executed", items[session.PromptExecuted](s)},
		{"invoked", items[session.ToolInvoked](s)},
		{"feedback", items[session.Feedback](s)},
		{"workspace", items[session.Workspace](s)},
		{"permissions", items[session.ToolPermissions](s)},
		{"plan", items[session.Plan](s)},
		{"files", items[session.ModifiedFiles](s)},
		{"visibility", items[session.VisibilityOverrides](s)},
		{"policy", items[session.PolicyState](s)},
		{"notes", items[note](s)},
		{"count", items[noteCount](s)},
		{"remarks", items[remark](s)},
		{"added", items[added](s)},
		{"sum", items[picky](s)},
		{"items", items[item](s)},
		{"named", items[named](s)},
	} {
		data, err := json.Marshal(state.items)
		if err != nil {
			t.Fatalf("%s: %v", state.name, err)
		}
		text.WriteString(state.name + " " + string(data) + "\n")
	}
	return text.String()
}

func items[S any](s *session.Session) []S { return slices.Collect(session.Query[S](s).All()) }

// recordLog writes a log with an entry of each kind: an evaluation with the real CLI, what a program does to its
// session besides, a checkpoint, more entries and a call without an end.
func recordLog(t *testing.T, path string) {
	t.Helper()
	const dir = "/srv/shop"
	cli := claudetest.CLI(t)
	call := func(id, name string, in script.Input) script.Turn {
		return script.Reply(script.ToolCall{ID: id, Name: name, Input: in})
	}
	model := claudetest.NewModel(t,
		call("toolu_write", "Write", script.Input{"file_path": dir + "/cart.py", "content": "total = 0\n"}),
		call("toolu_read", "Read", script.Input{"file_path": dir + "/cart.py"}),
		call("toolu_exit", "Bash", script.Input{"command": "exit 3"}),
		call("toolu_good", "mcp__wink__note", script.Input{"text": "good"}),
		call("toolu_bad", "mcp__wink__note", script.Input{"text": "bad", "then": "fail"}),
		script.Structured(script.Input{"summary": "The cart is there."}),
	).RequireAllUsed()
	base := cli.Options(model)
	base.Dir = ""
	s := openEarlier(t, path)
	dispatch(t, t.Context(), s, session.Workspace{Root: dir}, note{"first <é>"}, added{1}, session.SetVisibility{Section: "task", Visibility: "full"},
		session.PlanUpdated{Steps: []session.PlanStep{{Description: "Think", Status: "completed"}}}, session.Feedback{Provider: "tests", Summary: "One fails."})
	if _, err := drover.Evaluate(t.Context(), claudecode.New(base), earlierPrompt(t), &drover.Options{Session: s, Settings: agent.Settings{Dir: dir}}); err != nil {
		t.Fatal(err)
	}
	dispatch(t, t.Context(), s, added{13}, session.ToolPermissions{Blocked: []string{"WebFetch"}})
	snap := s.Snapshot()
	dispatch(t, t.Context(), s, note{"gone"}, added{5})
	in, tx := s.Begin(t.Context(), "toolu_reset")
	err := errors.Join(s.Restore(t.Context(), snap), session.Seed(t.Context(), s, item{ID: 1}, item{ID: 2}), s.Reset(in), tx.Rollback("no reset"))
	dispatch(t, t.Context(), s, named{1})
	if err := errors.Join(err, session.Clear[named](t.Context(), s)); err != nil {
		t.Fatal(err)
	}
	earlierState(t, s) // slices that were asked for are in the checkpoint
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openEarlier(t, path)
	dispatch(t, t.Context(), s, note{"after the checkpoint"}, added{2})
	in, _ = s.Begin(t.Context(), "toolu_killed")
	dispatch(t, in, s, note{"never ended"})
	text, checkpoint := readText(t, path), readText(t, path+".checkpoint")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, text)
	overwrite(t, path+".checkpoint", checkpoint)
	copied := filepath.Join(t.TempDir(), "log.jsonl")
	overwrite(t, copied, text)
	overwrite(t, path+".state", earlierState(t, openEarlier(t, copied)))
}

// A log that earlier code has written of a run opens with its state, is continued, and is put back.
func TestOpen_LogOfEarlierCode(t *testing.T) {
	if *recordEarlier != "" {
		recordLog(t, *recordEarlier)
		return
	}
	text, want := readText(t, earlierLog), readText(t, earlierLog+".state")
	for name, checkpoint := range map[string]bool{"with checkpoint": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log.jsonl")
			overwrite(t, path, text)
			if checkpoint {
				overwrite(t, path+".checkpoint", readText(t, earlierLog+".checkpoint"))
			}
			s := openEarlier(t, path)
			if diff := cmp.Diff(want, earlierState(t, s)); diff != "" {
				t.Fatalf("the state (-want +got):\n%s", diff)
			}
			snap := s.Snapshot()
			dispatch(t, t.Context(), s, note{"by a later version"})
			in, tx := s.Begin(t.Context(), "toolu_later")
			dispatch(t, in, s, added{3})
			if err := tx.Rollback("no"); err != nil {
				t.Fatal(err)
			}
			if n := items[noteCount](s); n[0] != 3 || len(items[note](s)) != 3 || len(items[added](s)) != 3 {
				t.Errorf("%d notes are counted, and the slices are %v and %v", n, items[note](s), items[added](s))
			}
			if err := s.Restore(t.Context(), snap); err != nil {
				t.Fatal(err)
			}
			for range 2 { // as it is, and opened again
				if diff := cmp.Diff(want, earlierState(t, s)); diff != "" {
					t.Errorf("the state after Restore (-want +got):\n%s", diff)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openEarlier(t, path)
			}
			adapter := agenttest.New(agenttest.Emit(event.Done{Status: event.DoneSuccess, Output: []byte(`{"summary":"Again."}`)}))
			if _, err := drover.Evaluate(t.Context(), adapter, earlierPrompt(t), &drover.Options{Session: s, Settings: agent.Settings{Dir: t.TempDir()}}); err != nil {
				t.Fatal(err)
			}
			if done := items[session.PromptExecuted](s); len(done) != 2 {
				t.Errorf("%d prompts are executed, want 2", len(done))
			}
			if got := readText(t, path); !strings.HasPrefix(got, text) {
				t.Errorf("the log is no longer what it was with more at its end:\n%s", got)
			}
		})
	}
}
