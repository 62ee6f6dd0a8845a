// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

type review struct {
	Summary string   `json:"summary" doc:"two sentences"`
	Issues  []string `json:"issues"`
}

type countInput struct {
	Text string `json:"text"`
}

func TestEvaluate_ReturnsATypedAnswer(t *testing.T) {
	cli := claudetest.CLI(t)
	count := tool.Must("count", "Counts letters.", func(_ context.Context, in countInput) (int, error) { return len(in.Text), nil })
	p, err := prompt.NewPrompt[review]("demo", "review", prompt.Markdown("task", "Task", "Review it.").With(count))
	if err != nil {
		t.Fatal(err)
	}
	model := claudetest.NewModel(t,
		script.Call("mcp__drover__count", script.Input{"text": "four"}),
		script.Structured(script.Input{"summary": "Fine.", "issues": []string{"none"}}),
	).RequireAllUsed()
	s := session.New(nil)
	resp, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), p, &drover.Options{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(review{"Fine.", []string{"none"}}, resp.Output); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if offered := model.Requests()[0].ToolNames(); !slices.Contains(offered, "mcp__drover__count") {
		t.Errorf("the model is offered %q", offered)
	}
	if resp.Session != s || resp.PromptName != "demo:review" || resp.SessionID == "" || resp.Turns != 2 {
		t.Errorf("the summary is %+v", resp.Summary)
	}
	var kinds []event.Kind
	for e := range s.Events() {
		if slices.Contains([]event.Kind{event.KindToolUse, event.KindToolResult, "tool:invoked", event.KindDone, "prompt:executed"}, e.Kind) {
			kinds = append(kinds, e.Kind)
		}
	}
	want := []event.Kind{event.KindToolUse, "tool:invoked", event.KindToolResult, event.KindToolUse, "tool:invoked", event.KindToolResult, event.KindDone, "prompt:executed"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("events of the session (-want +got):\n%s", diff)
	}
	counted := slices.Collect(session.Query[session.ToolInvoked](s).Where(func(c session.ToolInvoked) bool { return c.Name == "count" }))
	if len(counted) != 1 || counted[0].Status != event.ToolSuccess || counted[0].Output != "4" {
		t.Errorf("the call is recorded as %+v", counted)
	}
	executed, _ := session.Query[session.PromptExecuted](s).Latest()
	if executed.Status != event.DoneSuccess || string(executed.Output) != string(resp.Structured) || executed.Usage.InputTokens() == 0 || executed.SessionID != resp.SessionID {
		t.Errorf("the end is recorded as %+v", executed)
	}
}
