// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
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

func TestAPromptBecomesATypedAnswer(t *testing.T) {
	cli := claudetest.CLI(t)
	count := tool.Must("count", "Counts letters.", func(_ context.Context, in countInput) (int, error) { return len(in.Text), nil })
	p, err := prompt.NewPrompt[review]("demo", "review", prompt.Markdown("task", "Task", "Review it.").With(count))
	if err != nil {
		t.Fatal(err)
	}
	model := claudetest.NewModel(t,
		script.Call("mcp__wink__count", script.Input{"text": "four"}),
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
	var kinds []string
	for e := range s.Events() {
		kinds = append(kinds, string(e.Kind))
	}
	t.Log(kinds, resp.Usage, resp.CostUSD())
}
