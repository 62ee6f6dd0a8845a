// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
)

// An error of whatever went wrong before the agent was asked has a kind, and advice.
func TestEvaluationError_AlwaysHasAKind(t *testing.T) {
	cli := claudetest.CLI(t)
	nobody := &isolation.Isolation{Host: isolation.Host{Environ: func() []string { return nil }, Home: t.TempDir()}}
	adapter := claudecode.New(&claude.Options{CLIPath: cli.Path}).In(nobody)
	unbound, err := prompt.NewPrompt[string]("demo", "task", prompt.Markdown("task", "Task", "Look at ${path}."))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		prompt  *prompt.Prompt[string]
		options drover.Options
		kind    agent.FailureKind
	}{
		"no value for a placeholder": {unbound, drover.Options{Dir: cli.Work}, agent.FailureRequest},
		"no such folder":             {newPrompt[string](t), drover.Options{Dir: filepath.Join(cli.Work, "none")}, agent.FailureRequest},
		"no credentials":             {newPrompt[string](t), drover.Options{Dir: cli.Work}, agent.FailureAuthentication},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := drover.Evaluate(t.Context(), adapter, c.prompt, &c.options)
			failed, ok := errors.AsType[*drover.EvaluationError](err)
			if !ok || failed.Kind != c.kind || failed.Next == "" || failed.Phase != drover.PhaseRequest {
				t.Errorf("got %#v, want the kind %s", err, c.kind)
			}
		})
	}
}
