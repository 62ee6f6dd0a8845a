// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/guard"
)

// The check is run in a cell of its own, while the agent waits in the other one: it finds what the agent wrote,
// the agent finds what it wrote, and it is not run on the host.
func TestCompletionCommand_RunsInASecondCell(t *testing.T) {
	cli := claudetest.CLI(t)
	const check = `id -u > checked-by; cat answer.txt && grep -q right answer.txt`
	answer := script.Structured(script.Input{"summary": "Done.", "issues": []string{}})
	write := func(text string) script.Turn {
		return script.Call("Bash", script.Input{"command": "cat checked-by; echo " + text + " > answer.txt", "description": "Write"})
	}
	model := claudetest.NewModel(t, write("wrong"), answer, write("right"), answer, script.Text("Done.").Always())
	base := cli.Options(model)
	base.PermissionMode, base.AllowBypass = claude.ModeBypassPermissions, true
	resp, err := drover.Evaluate(t.Context(), claudecode.New(base), simplePrompt(t), &drover.Options{
		Completion: guard.CommandSucceeds("bash", "-c", check), Settings: agent.Settings{Dir: cli.Work},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !resp.Completion.Done || resp.Output.Summary != "Done." {
		t.Errorf("got %+v, %+v", resp.Completion, resp.Output)
	}
	var notified, found bool
	for _, r := range model.Requests() {
		notified = notified || strings.Contains(string(r.Body), "You are not done") && strings.Contains(string(r.Body), "exit code 1")
		if text, _, ok := r.ToolResult("Bash"); ok {
			found = found || strings.TrimSpace(text) != "" && strings.TrimSpace(text) != "0" && !strings.Contains(text, "No such file")
		}
	}
	if !notified || !found {
		t.Errorf("the agent was notified: %v, and found what the check wrote, not as root: %v", notified, found)
	}
}
