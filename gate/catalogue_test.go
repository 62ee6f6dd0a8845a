// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// A prompt for later may be a command or a skill, which no hook sees any more: see
// TestSkill_RunsCommandsWithoutAHook, and try it with a wakeup, which takes a minute.
func TestCatalogue_SchedulingAPromptNeedsShellExecute(t *testing.T) {
	g := gate.ForClaude(gate.FromCapabilities(&gate.Permissions{FileWrite: gate.LevelAllow, ShellExecute: gate.LevelDeny, NetworkAccess: gate.LevelAllow}))
	for _, name := range []string{"ScheduleWakeup", "CronCreate"} {
		if d := decide(g, name); d.Verdict != event.Deny {
			t.Errorf("%s: %s where commands are denied", name, d.Verdict)
		}
	}
}

// The CLI makes a worktree with git, and 2.1.197 lets git run the filters and hooks of the repository. An agent that
// may write files may have written them.
func TestCatalogue_WorktreeNeedsShellExecute(t *testing.T) {
	ways := []script.Block{
		script.ToolCall{Name: "Agent", Input: script.Input{"description": "d", "prompt": "p", "subagent_type": "general-purpose", "isolation": "worktree"}},
		script.ToolCall{Name: "Workflow", Input: script.Input{"script": `export const meta = {name: "w", description: "d", phases: [{title: "p"}]}
			await agent("p", {isolation: "worktree"})`}},
		script.ToolCall{Name: "EnterWorktree", Input: script.Input{"name": "aside"}},
	}
	for level, ways := range map[gate.Level][]script.Block{gate.LevelDeny: ways, gate.LevelAllow: ways[:1]} {
		t.Run(fmt.Sprint("commands ", level), func(t *testing.T) {
			cli := claudetest.OldestCLI(t)
			cli.WriteFile(t, ".gitattributes", "* filter=f\n")
			for _, args := range [][]string{
				{"init", "-q"},
				{"add", "-A"},
				{"-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", "one"},
				{"config", "filter.f.smudge", "touch " + filepath.Join(cli.Work, "ran") + "; cat"},
			} {
				git := exec.CommandContext(t.Context(), "git", args...)
				git.Dir, git.Env = cli.Work, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cli.Work}
				if out, err := git.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v: %s", args, err, out)
				}
			}
			model := claudetest.NewModel(t, script.Reply(ways...), script.Text("Done.").Always())
			opts := cli.Options(model)
			bind(t, gate.NewEngine(gate.ForClaude(gate.FromCapabilities(&gate.Permissions{
				FileWrite: gate.LevelAllow, ShellExecute: level, NetworkAccess: gate.LevelAllow,
			})), nil), opts)
			turn(t, claudetest.Connect(t, opts), "go")
			if got, want := exists(cli, "ran"), level == gate.LevelAllow; got != want {
				t.Errorf("a filter of the repository ran: %t, want %t", got, want)
			}
		})
	}
}

func TestFromRisk_AgentTools(t *testing.T) {
	g := gate.ForClaude(gate.FromRisk(gate.RiskOptions{ReadOnly: true, AgentTools: true}))
	got := map[string]string{}
	for _, name := range []string{"Read", "Write", "Bash(ls)", "WebFetch", "Frob"} {
		got[name] = decide(g, name).Reason
	}
	want := map[string]string{
		"Read": "", "WebFetch": "", "Write": "Read-only mode: mutating tools disabled.",
		"Bash(ls)": "Read-only mode: mutating tools disabled.", "Frob": "Tool not allowed: Frob" + howToAllow,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
