// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"errors"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
)

// An agent that dies takes its turn with it, not the conversation.
func TestAConversationOutlivesItsAgent(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("The marker is blue."), script.Text("It was blue."))
	started := make(chan claude.Process, 2)
	adapter := claudecode.New(cli.Options(model)).In(&isolation.Isolation{Started: func(p claude.Process) { started <- p }})
	p, err := prompt.NewPrompt[prompt.Text]("demo", "talk", prompt.Markdown("task", "Task", "Remember it."))
	if err != nil {
		t.Fatal(err)
	}
	c := drover.Converse(adapter, p, nil)
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	cut := <-started
	if err := cut.Kill(); err != nil {
		t.Fatal(err)
	}
	cut.Wait()
	_, err = c.Send(t.Context(), "Which colour was it?")
	if failure, ok := errors.AsType[*drover.EvaluationError](err); !ok || failure.Kind != agent.FailureProcess {
		t.Fatalf("the turn after its death ended with %v", err)
	}
	resp, err := c.Send(t.Context(), "Which colour was it?")
	if err != nil {
		t.Fatal(err)
	}
	if string(resp.Output) != "It was blue." || !model.LastRequest().SawText("The marker is blue.") {
		t.Errorf("the answer is %q, and the new agent does not know what was said", resp.Output)
	}
}
