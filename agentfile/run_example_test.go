// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/workspace"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

func review(ctx context.Context, base *claude.Options) error {
	f, err := agentfile.Load("../examples/agents/review.yaml")
	if err != nil {
		return err
	}
	mounts, err := f.Workspace()
	if err != nil {
		return err
	}
	w, err := workspace.Open(ctx, mounts)
	if err != nil {
		return err
	}
	defer w.Close()
	p, err := f.Prompt(map[string]string{"focus": "errors"}, w.Section())
	if err != nil {
		return err
	}
	adapter := claudecode.New(base).In(f.IsolationOptions())
	o := f.Options()
	o.Workspace = w
	resp, err := drover.Evaluate(ctx, adapter, p, o)
	if err != nil {
		return err
	}
	fmt.Println(resp.Output)
	return nil
}

// The program of the page runs on the real CLI. Its model opens the section of which it sees a summary, and
// finds the skill that comes with it.
func TestExample_EvaluatesAFileOnTheRealCLI(t *testing.T) {
	model := claudetest.NewModel(t,
		script.Call("mcp__drover__open_sections", script.Input{"section_keys": []string{"style"}, "reason": "to know the style"}),
		script.Call("Skill", script.Input{"skill": "review-style"}),
		script.Structured(script.Input{"summary": "Fine.", "issues": []any{}}),
	).RequireAllUsed()
	if err := review(t.Context(), claudetest.CLI(t).Options(model)); err != nil {
		t.Fatal(err)
	}
	first := model.Requests()[0]
	if text := string(first.Body); !strings.Contains(text, "Look for errors.") || strings.Contains(text, "Errors are wrapped") {
		t.Errorf("the model was asked:\n%s", text)
	}
	last := model.Requests()[len(model.Requests())-1]
	if text := string(last.Body); !strings.Contains(text, "Errors are wrapped") || !strings.Contains(text, "One sentence for each issue.") {
		t.Errorf("the model has not read the section and its skill:\n%s", last.Body)
	}
}
