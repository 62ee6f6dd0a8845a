// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// try is one tool call of the scripted model, and what must and must not come of it.
type try struct {
	id, tool string
	input    script.Input
	want     string // in the result
	not      string // not in the result
	refused  bool
}

// play has the real CLI make all calls in one run, with a home for its configuration.
func play(t *testing.T, cli *claudetest.RealCLI, home *isolation.Home, mode claude.PermissionMode, tries []try) {
	t.Helper()
	var calls []script.Block
	for _, a := range tries {
		calls = append(calls, script.ToolCall{ID: a.id, Name: a.tool, Input: a.input})
	}
	model := claudetest.NewModel(t, script.Reply(calls...), script.Text("done"))
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{
		"HOME": home.Path(), "CLAUDE_CONFIG_DIR": home.ConfigDir(), "TMPDIR": home.TempDir(), "CLAUDE_CODE_TMPDIR": home.TempDir(),
	})
	opts.Spawner = launch.HostSpawner{NoPIDNamespace: true} // in which the CLI could not make its own sandbox
	opts.SettingSources, opts.PermissionMode = claudecell.SettingSources(), mode
	opts.CanUseTool = func(_ context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
		return claude.Deny{Message: "asked about " + r.ToolName}, nil
	}
	for _, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range tries {
		text, isError, ok := model.ToolResult(a.id)
		if !ok || !strings.Contains(text, a.want) || a.not != "" && strings.Contains(text, a.not) || a.refused && !isError {
			t.Errorf("%s (%s): got %q, error %t; want %q in it, not %q, refused %t", a.id, a.tool, text, isError, a.want, a.not, a.refused)
		}
	}
}

// Where the CLI's own sandbox is the only isolation, its settings must hold in the mode that asks nothing.
func TestCLISettings_SandboxHolds(t *testing.T) {
	cli := claudetest.CLI(t)
	hostHome, data, out, other := filepath.Join(cli.Root, "host"), filepath.Join(cli.Root, "data"), filepath.Join(cli.Root, "out"), filepath.Join(cli.Root, "other")
	plant(t, filepath.Join(hostHome, "file"), "OF THE HOST")
	plant(t, filepath.Join(data, "file"), "READABLE")
	plant(t, filepath.Join(other, "file"), "ELSEWHERE")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	home, err := claudecell.NewHome(cli.Root, claudecell.HomeOptions{
		Level: sandbox, Workspace: cli.Work, CLI: cli.Path, HostHome: hostHome,
		Sandbox: &isolation.Sandbox{WritablePaths: []string{"../out"}, ReadablePaths: []string{data}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	bash := func(command string) script.Input { return script.Input{"command": command} }
	write := func(dir string) script.Input {
		return script.Input{"file_path": filepath.Join(dir, "written"), "content": "x"}
	}
	read := func(dir string) script.Input { return script.Input{"file_path": filepath.Join(dir, "file")} }
	play(t, cli, home, claude.ModeBypassPermissions, []try{
		{"key", "Bash", bash("echo key=$ANTHROPIC_API_KEY."), "key=.", claudetest.FakeKey, false},
		{"bash-inside", "Bash", bash("touch inside && echo made"), "made", "", false},
		{"bash-outside", "Bash", bash("touch ../other/bash && echo made; true"), "Read-only", "made", false},
		{"bash-leaves", "Bash", script.Input{"command": "touch ../other/left && echo made; true", "dangerouslyDisableSandbox": true}, "Read-only", "made", false},
		{"bash-writable", "Bash", bash("touch ../out/bash && echo made"), "made", "", false},
		{"bash-readable", "Bash", bash("cat ../data/file; touch ../data/bash && echo made; true"), "READABLE", "made", false},
		{"bash-host", "Bash", bash("cat ../host/file; true"), "No such file", "OF THE HOST", false},
		{"write-outside", "Write", write(other), "", "", true},
		{"write-writable", "Write", write(out), "", "", false},
		{"write-readable", "Write", write(data), "", "", true},
		{"read-outside", "Read", read(other), "", "ELSEWHERE", true},
		{"read-host", "Read", read(hostHome), "", "OF THE HOST", true},
		{"read-readable", "Read", read(data), "READABLE", "", false},
		{"fetch", "WebFetch", script.Input{"url": "http://127.0.0.1:9/", "prompt": "x"}, "", "", true},
	})
	for _, path := range []string{filepath.Join(other, "bash"), filepath.Join(other, "left"), filepath.Join(other, "written"), filepath.Join(data, "written"), filepath.Join(data, "bash")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "written")); err != nil {
		t.Error(err)
	}
}

// In a cell, Bash asks only if AskBeforeBash is set, since the cell isolates the whole CLI.
func TestCLISettings_BashAsksOnlyIfSet(t *testing.T) {
	for _, ask := range []bool{false, true} {
		cli := claudetest.CLI(t)
		home, err := claudecell.NewHome(cli.Root, claudecell.HomeOptions{Workspace: cli.Work, Sandbox: &isolation.Sandbox{AskBeforeBash: ask}})
		if err != nil {
			t.Fatal(err)
		}
		defer home.Close()
		want := try{"bash", "Bash", script.Input{"command": "touch made && echo made"}, "made", "asked", false}
		if ask {
			want = try{"bash", "Bash", script.Input{"command": "touch made && echo made"}, "asked about Bash", "", true}
		}
		play(t, cli, home, claude.ModeDefault, []try{want})
	}
}

func TestCLI_WritesOnlyIntoHomeAndWorkspace(t *testing.T) {
	cli := claudetest.CLI(t)
	home, err := claudecell.NewHome(cli.Root, claudecell.HomeOptions{Workspace: cli.Work})
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	plant(t, filepath.Join(claudecell.SkillsDir(home), "greeting", "SKILL.md"), "---\nname: greeting\ndescription: a skill of the home\n---\nhi\n")
	play(t, cli, home, claude.ModeDefault, []try{{"skill", "Skill", script.Input{"skill": "greeting"}, "greeting", "", false}})
	for _, dir := range []string{cli.Home, cli.Config, cli.Temp} {
		checkEmpty(t, dir)
	}
}
