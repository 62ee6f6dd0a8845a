// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"slices"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// What docs/agents.md says of tools that must be named, and of prompts that begin with a slash.
func TestDefaults_ToolsAndSlashPrompts(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Done.").Always())
	got := run(t, cli.Options(model), agent.Request{Prompt: "/nosuch x"}).init(t).Tools
	for _, name := range []string{"Glob", "Grep", "EnterPlanMode", "ExitPlanMode"} {
		if slices.Contains(got, name) {
			t.Errorf("%s is there without being named: %v", name, got)
		}
	}
	if !model.LastRequest().SawText("/nosuch x") {
		t.Error("the model did not get a prompt with a slash that is no command")
	}
	before, named := len(model.Requests()), []string{"Glob", "Grep"}
	plan := []string{"EnterPlanMode", "ExitPlanMode"}
	got = run(t, cli.Options(model), agent.Request{Prompt: "/compact", Settings: agent.Settings{Tools: append(plan, named...)}}).init(t).Tools
	if !slices.Equal(got, named) || len(model.Requests()) > before {
		t.Errorf("named %v and %v, got %v; the model got %d requests for a command", named, plan, got, len(model.Requests())-before)
	}
	verbatim := cli.Options(model)
	verbatim.VerbatimPrompts = true
	run(t, verbatim, agent.Request{Prompt: "/compact"})
	if !model.LastRequest().SawText("/compact") {
		t.Error("the model did not get a prompt that is sent as it is")
	}
}
