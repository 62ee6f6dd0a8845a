// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
)

// recorder records the native calls of a run in a session.
func recorder(t *testing.T, s *session.Session) []claude.Hook {
	record := func(call session.ToolInvoked) {
		if _, err := s.RecordTool(context.Background(), call, catalogue.Tools()); err != nil {
			t.Error(err)
		}
	}
	return []claude.Hook{
		claude.On("", func(_ context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
			record(session.ToolInvoked{
				CallID: event.CallID(in.ToolUseID), Name: in.ToolName, Source: session.NativeTool, Params: in.ToolInput, Value: in.ToolResponse, Dir: in.Cwd, Status: event.ToolSuccess,
			})
			return nil, nil
		}),
		claude.On("", func(_ context.Context, in *claude.PostToolUseFailureInput) (*claude.PostToolUseFailureOutput, error) {
			record(session.ToolInvoked{CallID: event.CallID(in.ToolUseID), Name: in.ToolName, Source: session.NativeTool, Params: in.ToolInput, Dir: in.Cwd, Status: event.ToolError, Error: in.Error})
			return nil, nil
		}),
	}
}

// What a session, a tracker and a clock know decides about the calls of the real CLI, and the model reads
// why; what the calls did is in the session.
func TestFacts_OfASessionDecideAboutTheRealCLI(t *testing.T) {
	cli := claudetest.CLI(t)
	notes := cli.WriteFile(t, "notes.txt", "one\n")
	s := session.New(nil)
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 100})
	var late atomic.Bool
	clock := guard.Clock(func() time.Time {
		if late.Load() {
			return time.Unix(2_000, 0)
		}
		return time.Unix(1_000, 0)
	})
	steps := []struct {
		id, tool string
		input    script.Input
		want     string // what the model reads; empty for a call that runs
		then     func()
	}{
		{"unread", "Edit", script.Input{"file_path": notes, "old_string": "one", "new_string": "two"}, "has not been read", nil},
		{"read", "Read", script.Input{"file_path": notes}, "", nil},
		{"failed", "Bash", script.Input{"command": "exit 3"}, "Exit code 3", nil},
		{"edit", "Edit", script.Input{"file_path": notes, "old_string": "one", "new_string": "two"}, "", nil},
		{"create", "TaskCreate", script.Input{"subject": "Rest", "description": "Rest well.", "activeForm": "Resting"}, "", nil},
		{"update", "TaskUpdate", script.Input{"taskId": "1", "status": "in_progress"}, "", func() { tracker.Record(guard.Usage{InputTokens: 100}) }},
		{"poor", "Read", script.Input{"file_path": notes}, "Token budget exhausted", func() { late.Store(true) }},
		{"late", "Read", script.Input{"file_path": notes}, "Deadline exceeded", nil},
	}
	then := map[string]func(){}
	var turns []script.Turn
	for _, step := range steps {
		then[step.id] = step.then
		turns = append(turns, script.Reply(script.ToolCall{ID: step.id, Name: step.tool, Input: step.input}))
	}
	model := claudetest.NewModel(t, append(turns, script.Text("Done."))...)
	opts := cli.Options(model)
	opts.Tools, opts.Hooks = []string{"Read", "Edit", "Bash", "TaskCreate", "TaskUpdate"}, recorder(t, s)
	engine := gate.NewEngine(
		gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.Limits(gate.LimitOptions{}), gate.ReadBeforeWrite(gate.ReadBeforeWriteOptions{}), gate.Default(event.Allow)),
		&gate.EngineOptions{
			Facts: guard.Facts(guard.FactsOptions{Session: s, Tracker: tracker, Deadline: clock.FromNow(time.Minute)}),
			Emit: func(e event.Event) error {
				if next := then[string(e.CallID())]; next != nil {
					next()
				}
				return nil
			},
		})
	if err := claudecode.BindGate(opts, engine); err != nil {
		t.Fatal(err)
	}
	for _, err := range claudetest.Connect(t, opts).Turn(t.Context(), claude.Text("go")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range steps {
		text, failed, ok := model.LastRequest().ToolResult(step.id)
		if !ok || failed != (step.want != "") || !strings.Contains(text, step.want) {
			t.Errorf("%s: the model read %q (failed %v), want %q", step.id, text, failed, step.want)
		}
	}
	checkRecorded(t, s, notes)
}

func checkRecorded(t *testing.T, s *session.Session, notes string) {
	t.Helper()
	var got []string
	for call := range session.Query[session.ToolInvoked](s).All() {
		got = append(got, string(call.CallID)+" "+string(call.Status))
	}
	if diff := cmp.Diff([]string{"read success", "failed error", "edit success", "create success", "update success"}, got); diff != "" {
		t.Errorf("the calls that ran: %s", diff)
	}
	files, _ := session.Query[session.ModifiedFiles](s).Latest()
	if f, ok := files.Get(notes); !ok || f.Tool != "Edit" || files.Len() != 1 {
		t.Errorf("%d files are modified, and %s by %+v", files.Len(), notes, f)
	}
	if diff := cmp.Diff([]string{"[Context] Current task: Rest"}, session.ContextLines(s)); diff != "" {
		t.Errorf("the context: %s", diff)
	}
}
