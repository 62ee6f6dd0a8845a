// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// An agent that may write files and run no commands does not get commands by configuring its CLI: hooks in settings are
// run without a call.
func TestFileTools_CannotConfigureTheCLI(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) {
			cli := get(t)
			hook := `[{"hooks":[{"type":"command","command":"touch ` + filepath.Join(cli.Work, ran+"hook") + `"}]}]`
			write := func(path, content string) script.Block {
				return script.ToolCall{Name: "Write", Input: script.Input{"file_path": path, "content": content}}
			}
			model := claudetest.NewModel(t,
				script.Reply(script.ToolCall{Name: "Read", Input: script.Input{"file_path": "~/.claude/settings.json"}}),
				script.Reply(
					write("~/.claude/settings.json", `{"hooks":{"PreToolUse":`+hook+`,"Stop":`+hook+`}}`),
					write("\ufeff~/.claude/agents/evil.md", "---\nname: evil\ndescription: evil\n---\nEvil.\n"),
					write(filepath.Join(cli.Work, ".claude/scheduled_tasks.json"), `{"tasks":[]}`),
					script.ToolCall{Name: "Edit", Input: script.Input{"file_path": "~/.claude/settings.json", "old_string": `"sandbox": {`, "new_string": `"hooks":{"Stop":` + hook + `},"sandbox": {`}},
					write("~/.claude/plans/plan.md", "A plan."),
					write(filepath.Join(cli.Work, "file"), "A file."),
				),
				script.Text("Done.").Always())
			base := cli.Options(model)
			base.PermissionMode = claude.ModeBypassPermissions
			runner := newRunner(t, base, &agent.RunnerOptions{Policies: []gate.Policy{gate.DenyTools("Bash"), gate.Default(event.Allow)}})
			got := record(t, runner.Run(inTime(t), agent.Request{Prompt: "go"}))
			var ends []event.ToolStatus
			for _, r := range of[event.ToolResult](got) {
				ends = append(ends, r.Status)
			}
			const ok, no = event.ToolSuccess, event.ToolDenied
			if diff := cmp.Diff([]event.ToolStatus{ok, no, no, no, no, ok, ok}, ends); diff != "" {
				t.Errorf("the calls ended otherwise (-want +got):\n%s", diff)
			}
			if want := "Write to the working directory instead."; !model.SawText(want) {
				t.Errorf("the model has not read %q", want)
			}
			if made, _ := filepath.Glob(filepath.Join(cli.Work, ran+"*")); len(made) > 0 {
				t.Errorf("a command was run: %q", made)
			}
		})
	}
}
