// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
)

// An error of whatever went wrong before the agent was asked has a kind, and advice.
func TestEvaluationError_AlwaysHasAKind(t *testing.T) {
	cli := claudetest.CLI(t)
	on := func(environ ...string) agent.Adapter {
		host := isolation.Host{Environ: func() []string { return environ }, Home: t.TempDir()}
		return claudecode.New(&claude.Options{CLIPath: cli.Path}).In(&isolation.Isolation{Host: host})
	}
	unauthenticated := on()
	// Whether this program can use Bedrock or not, nothing pays for it.
	bedrock := on("CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-west-1", "AWS_EC2_METADATA_DISABLED=true")
	unstarted := &keeper{Adapter: agenttest.New(), refuses: func(context.Context, int) error { return errors.New("the moon is full") }}
	unbound, err := prompt.NewPrompt[string]("demo", "task", prompt.Markdown("task", "Task", "Look at ${path}."))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		adapter agent.Adapter
		prompt  *prompt.Prompt[string]
		options drover.Options
		kind    agent.FailureKind
	}{
		"no value for a placeholder": {unauthenticated, unbound, drover.Options{Settings: agent.Settings{Dir: cli.Work}}, agent.FailureRequest},
		"no such folder":             {unauthenticated, newPrompt[string](t), drover.Options{Settings: agent.Settings{Dir: filepath.Join(cli.Work, "none")}}, agent.FailureRequest},
		"no credentials":             {unauthenticated, newPrompt[string](t), drover.Options{Settings: agent.Settings{Dir: cli.Work}}, agent.FailureAuthentication},
		"no credentials of AWS":      {bedrock, newPrompt[string](t), drover.Options{Settings: agent.Settings{Dir: cli.Work}}, agent.FailureAuthentication},
		"an agent that cannot start": {unstarted, newPrompt[string](t), drover.Options{Settings: agent.Settings{Dir: cli.Work}}, agent.FailureRequest},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := drover.Evaluate(t.Context(), c.adapter, c.prompt, &c.options)
			failed, ok := errors.AsType[*drover.EvaluationError](err)
			if !ok || failed.Kind != c.kind || failed.Next == "" || failed.Phase != drover.PhaseRequest {
				t.Errorf("got %#v, want the kind %s", err, c.kind)
			}
		})
	}
}
