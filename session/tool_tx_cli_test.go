// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// beside makes a tool that notes its input and returns only when the other one has noted too: both calls
// are under way at once. The CLI runs calls beside one another only if they change nothing.
func beside(name string, together *sync.WaitGroup, end error) *tool.Tool {
	return tool.Must(name, "Notes a text.", func(ctx context.Context, in noteInput) (string, error) {
		s, _ := session.From(ctx)
		if _, err := s.Dispatch(ctx, remark{in.Text}); err != nil {
			return "", err
		}
		together.Done()
		together.Wait()
		return "noted", end
	}, tool.ReadOnly, tool.WithAlwaysLoad())
}

// The model of a real CLI calls two tools of ours at once, of which one fails. The session has what the
// other one did, and knows both calls by the ids that the model gave them.
func TestToolTx_ParallelCallsOfTheRealCLI(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Reply(
			script.ToolCall{ID: "toolu_good", Name: "mcp__drover__good", Input: script.Input{"text": "kept"}},
			script.ToolCall{ID: "toolu_bad", Name: "mcp__drover__bad", Input: script.Input{"text": "gone"}},
		), script.Text("Done."))
	s := session.New(nil)
	var together sync.WaitGroup
	together.Add(2)
	tools := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, &session.ToolTxOptions{Adapter: "claude-code"})},
		beside("good", &together, nil), beside("bad", &together, errors.New("out of ink")))
	runner, err := agent.NewRunner(claudecode.New(cli.Options(model)), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for e, err := range runner.Run(ctx, agent.Request{Prompt: "go", Registry: tools}) {
		if done, ok := e.Payload.(event.Done); err != nil || ok && done.Result != "Done." {
			t.Fatalf("the run ended with %+v: %v", e, err)
		}
	}
	if diff := cmp.Diff([]string{"kept"}, notes(s)); diff != "" {
		t.Errorf("the notes: %s", diff)
	}
	calls := invoked(s)
	slices.Sort(calls)
	if diff := cmp.Diff([]string{"toolu_bad bad error", "toolu_good good success"}, calls); diff != "" {
		t.Errorf("the calls: %s", diff)
	}
	if text, failed, ok := model.LastRequest().ToolResult("toolu_bad"); !ok || !failed || text != "Error: out of ink" {
		t.Errorf("the model read %q (failed %v)", text, failed)
	}
}
