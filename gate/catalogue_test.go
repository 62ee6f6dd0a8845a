// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

func TestTheCatalogueKnowsTheToolsThatMatterMost(t *testing.T) {
	const harmful = tool.Mutates | tool.Dangerous
	for name, want := range map[string]gate.NativeTool{
		"Write":        {Risk: tool.Mutates, Needs: tool.FileWrite},
		"Edit":         {Risk: tool.Mutates, Needs: tool.FileWrite},
		"MultiEdit":    {Risk: tool.Mutates, Needs: tool.FileWrite},
		"NotebookEdit": {Risk: tool.Mutates, Needs: tool.FileWrite},
		"Replace":      {Risk: tool.Mutates, Needs: tool.FileWrite},
		"Bash":         {Risk: harmful, Needs: tool.ShellExecute},
		"PowerShell":   {Risk: harmful, Needs: tool.ShellExecute},
		"Monitor":      {Risk: harmful, Needs: tool.ShellExecute | tool.NetworkAccess},
		"Skill":        {Risk: harmful, Needs: tool.ShellExecute},
		"SlashCommand": {Risk: harmful, Needs: tool.ShellExecute},
		"WebFetch":     {Risk: tool.ReadOnly, Needs: tool.NetworkAccess},
		"WebSearch":    {Risk: tool.ReadOnly, Needs: tool.NetworkAccess},
		"Read":         {Risk: tool.ReadOnly},
		"View":         {Risk: tool.ReadOnly},
		"GlobTool":     {Risk: tool.ReadOnly},
		"Grep":         {Risk: tool.ReadOnly},
		"LS":           {Risk: tool.ReadOnly},
		"KillShell":    {Risk: tool.ReadOnly},
		"Task":         {Risk: tool.ReadOnly},
		"Agent":        {Risk: tool.ReadOnly},
	} {
		want.Name = name
		if got, ok := gate.Native(name); !ok || got != want {
			t.Errorf("Native(%s) = %+v, %t; want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "bash", "WriteConfig", "mcp__files__Write", "Bash(ls)"} {
		if got, ok := gate.Native(name); ok {
			t.Errorf("Native(%s) = %+v, want nothing", name, got)
		}
	}
}

// A prompt for later may be a command or a skill, which no hook sees any more: see
// TestASkillRunsCommandsUnseen, and try it with a wakeup, which takes a minute.
func TestWhatSchedulesPromptsCountsAsRunningCommands(t *testing.T) {
	g := gate.Must(gate.FromCapabilities(&gate.Permissions{FileWrite: gate.LevelAllow, ShellExecute: gate.LevelDeny, NetworkAccess: gate.LevelAllow}))
	for _, name := range []string{"ScheduleWakeup", "CronCreate"} {
		if d := decide(g, name); d.Verdict != event.Deny {
			t.Errorf("%s: %s where commands are denied", name, d.Verdict)
		}
	}
}

// The CLI makes a worktree with git, and 2.1.197 lets git run the filters and hooks of the repository. An agent that
// may write files may have written them.
func TestAWorktreeCountsAsRunningCommands(t *testing.T) {
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
			bind(t, gate.NewEngine(gate.Must(gate.FromCapabilities(&gate.Permissions{
				FileWrite: gate.LevelAllow, ShellExecute: level, NetworkAccess: gate.LevelAllow,
			})), nil), opts)
			turn(t, claudetest.Connect(t, opts), "go")
			if got, want := exists(cli, "ran"), level == gate.LevelAllow; got != want {
				t.Errorf("a filter of the repository ran: %t, want %t", got, want)
			}
		})
	}
}

func TestTheCatalogueIsSound(t *testing.T) {
	all := gate.Natives()
	for i, n := range all {
		if i > 0 && all[i-1].Name >= n.Name {
			t.Errorf("%s is there twice, or out of order", n.Name)
		}
		if n.Risk.Has(tool.ReadOnly) == n.Risk.Has(tool.Mutates) {
			t.Errorf("%s: %s; a tool of the agent either changes something or does not", n.Name, n.Risk)
		}
		if n.Risk.Has(tool.ReadOnly) && (n.Needs.Has(tool.FileWrite) || n.Needs.Has(tool.ShellExecute)) {
			t.Errorf("%s needs %s and is read-only", n.Name, n.Needs)
		}
		if got, ok := gate.Native(n.Name); !ok || got != n {
			t.Errorf("Native(%s) = %+v, want %+v", n.Name, got, n)
		}
	}
	all[0].Name = "changed"
	if gate.Natives()[0].Name == "changed" {
		t.Error("Natives gives the catalogue itself away")
	}
}

func TestNativeDoesNotAllocate(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() { gate.Native("Bash"); gate.Native("Frob") }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestNativeBuiltinListsTheWholeCatalogue(t *testing.T) {
	lists := gate.NativeBuiltin()
	for _, n := range gate.Natives() {
		got := [3]bool{slices.Contains(lists.ReadOnly, n.Name), slices.Contains(lists.Mutating, n.Name), slices.Contains(lists.Dangerous, n.Name)}
		want := [3]bool{n.Risk.Has(tool.ReadOnly), n.Risk.Has(tool.Mutates), n.Risk.Has(tool.Dangerous)}
		if got != want {
			t.Errorf("%s is in the lists %v, want %v", n.Name, got, want)
		}
	}
	g := gate.Must(gate.FromRisk(gate.RiskOptions{ReadOnly: true, Builtin: lists}))
	got := map[string]string{}
	for _, name := range []string{"Read", "Write", "Bash(ls)", "WebFetch", "Frob"} {
		got[name] = decide(g, name).Reason
	}
	want := map[string]string{
		"Read": "", "WebFetch": "", "Write": "Read-only mode: mutating tools disabled.",
		"Bash(ls)": "Read-only mode: mutating tools disabled.", "Frob": "Tool not allowed: Frob",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
