// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// folders are a workspace and what is beside it.
type folders struct{ top, work string }

func newFolders(t *testing.T) folders {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := folders{top, filepath.Join(top, "work")}
	plant(t, filepath.Join(f.work, "kept"), "kept in the workspace")
	return f
}

func (f folders) at(name string) string { return filepath.Join(f.top, name) }

// isolation has the homes outside of the workspace.
func (f folders) isolation() *isolation.Isolation {
	return &isolation.Isolation{APIKey: "key", TempDir: f.top, Host: hostWith()}
}

// What may only be read stays so where everything around it can be written.
func TestMounts_ReadablePathInTheWorkspaceIsReadOnly(t *testing.T) {
	needCell(t)
	f := newFolders(t)
	plant(t, f.at("work/vendor/code"), "kept in vendor")
	i := f.isolation()
	i.Sandbox = &isolation.Sandbox{ReadablePaths: []string{"vendor"}}
	output := inCell(t, i, programIn(f.work), "cat vendor/code; echo made > vendor/made; echo made > made")
	if !strings.Contains(output, "kept in vendor") || !strings.Contains(output, "Read-only file system") {
		t.Errorf("got %q, want a folder that can be read only", output)
	}
	if _, err := os.Stat(f.at("work/made")); err != nil {
		t.Errorf("beside it: %v", err)
	}
}

func TestMounts_PathsThatExposeTooMuchAreRefused(t *testing.T) {
	needCell(t)
	f := newFolders(t)
	plant(t, f.at("data/kept"), "")
	plant(t, f.at("secret"), "")
	if err := os.Symlink(f.at("secret"), f.at("data/link")); err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string]struct {
		i    isolation.Isolation
		o    claude.Options
		text string
	}{
		"a folder as a socket":           {i: isolation.Isolation{Network: &isolation.NetworkPolicy{UnixSockets: []string{f.at("data")}}}, text: "is not a socket"},
		"the host's /tmp":                {i: isolation.Isolation{Sandbox: &isolation.Sandbox{ReadablePaths: []string{"/tmp"}}}, text: "too much"},
		"the homes of other runs":        {i: isolation.Isolation{Sandbox: &isolation.Sandbox{ReadablePaths: []string{f.top}}}, text: "private homes of all runs"},
		"homes in the workspace":         {i: isolation.Isolation{TempDir: f.work}, text: "private homes of all runs"},
		"a link, named before its place": {i: isolation.Isolation{Sandbox: &isolation.Sandbox{WritablePaths: []string{f.at("data/link"), f.at("data")}}}, text: "is a link to"},
		"a plugin that is not there":     {o: claude.Options{Plugins: []claude.Plugin{{Path: f.at("nothing")}}}, text: "Options.Plugins"},
		"programs of the system":         {o: claude.Options{AddDirs: []string{"/usr/bin"}}, text: "too much"},
	} {
		t.Run(name, func(t *testing.T) {
			broken.i.APIKey, broken.i.Host, broken.o.Dir = "key", hostWith(), f.work
			if broken.i.TempDir == "" {
				broken.i.TempDir = f.top
			}
			cell, err := claudecell.Open(t.Context(), &broken.i, &broken.o, isolation.OpenOptions{})
			if err == nil {
				t.Fatal("it was opened", cell.Close())
			}
			if !strings.Contains(advice.Text(err), broken.text) || !strings.Contains(advice.Text(err), "\n  next: ") {
				t.Errorf("got %v, want %q and what to do", err, broken.text)
			}
		})
	}
}

// Files that the options name are inside, also those that are meant from the working directory.
func TestMounts_FilesOfTheOptionsAreInside(t *testing.T) {
	needCell(t)
	f := newFolders(t)
	for _, name := range []string{"settings.json", "prompt", "plugin/plugin.json", "root/.claude/settings.json", "root/other", "tools/server", "tools/data"} {
		plant(t, f.at(name), "kept in "+name)
	}
	var events eventLog
	o := &claude.Options{
		Dir: f.work, SettingsFile: "../settings.json", SystemPrompt: &claude.PromptFile{Path: f.at("prompt")},
		Plugins: []claude.Plugin{{Path: "../plugin"}}, ProjectConfigRoot: f.at("root"),
		MCPServers: map[string]claude.MCPServer{"one": claude.MCPStdio{Command: f.at("tools/server"), Args: []string{f.at("tools/data")}}},
	}
	cell, err := claudecell.Open(t.Context(), f.isolation(), o, isolation.OpenOptions{Emit: events.emit})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	output := outputIn(t, o, "cd ..; cat settings.json prompt plugin/plugin.json root/.claude/settings.json tools/server root/other tools/data; echo > settings.json")
	for _, want := range []string{"settings.json", "prompt", "plugin/plugin.json", "root/.claude/settings.json", "tools/server"} {
		if !strings.Contains(output, "kept in "+want) {
			t.Errorf("%s is not inside: %s", want, output)
		}
	}
	for _, not := range []string{"root/other", "tools/data"} {
		if strings.Contains(output, "kept in "+not) {
			t.Errorf("%s is inside: %s", not, output)
		}
	}
	protection := oneProtection(t, &events, isolation.LevelCell)
	if missing := strings.Join(protection.Missing, "\n"); !strings.Contains(missing, "the MCP server one does not find "+f.at("tools/data")) {
		t.Errorf("the event does not say what the server does not find: %s", missing)
	}
}

// The Protection event names every folder that the agent can write.
func TestProtection_NamesFoldersOfTheOptions(t *testing.T) {
	needCell(t)
	f := newFolders(t)
	plant(t, f.at("more/kept"), "")
	var events eventLog
	cell, err := claudecell.Open(t.Context(), f.isolation(), &claude.Options{Dir: f.work, AddDirs: []string{f.at("more")}}, isolation.OpenOptions{Emit: events.emit})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	if enforced := strings.Join(oneProtection(t, &events, isolation.LevelCell).Enforced, "\n"); !strings.Contains(enforced, "and in "+f.at("more")) {
		t.Errorf("the folder is not named:\n%s", enforced)
	}
}

// A level that is weaker than possible, because something is missing, comes with the reason.
func TestProtection_WeakerLevelSaysWhatIsMissing(t *testing.T) {
	f := newFolders(t)
	t.Setenv("PATH", f.at("nothing")) // no bubblewrap
	i := f.isolation()
	i.Weakest = isolation.LevelHost
	var events eventLog
	cell, err := claudecell.Open(t.Context(), i, &claude.Options{Dir: f.work}, isolation.OpenOptions{Emit: events.emit})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	if missing := strings.Join(oneProtection(t, &events, cell.Level()).Missing, "\n"); !strings.Contains(missing, "no stronger level: cell: ") || !strings.Contains(missing, "bubblewrap was not found") {
		t.Errorf("the event does not say why there is no cell:\n%s", missing)
	}
}

// The CLI does not report when it cannot write its debug output.
func TestCLI_DebugFileIsWritten(t *testing.T) {
	needCell(t)
	f, cli := newFolders(t), claudetest.CLI(t)
	o := cli.Options(claudetest.NewModel(t, script.Text("done")))
	o.SettingSources, o.DebugFile = nil, f.at("debug.log")
	cell, err := claudecell.Open(t.Context(), &isolation.Isolation{TempDir: f.top}, o, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	for _, err := range claude.Query(t.Context(), "go", o) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(o.DebugFile); err != nil || info.Size() == 0 {
		t.Errorf("got %v, %v, want the debug output of the CLI", info, err)
	}
}

// outputIn is the output of a command of bash, started with the options.
func outputIn(t *testing.T, o *claude.Options, command string) string {
	t.Helper()
	return outputOf(t, o, launch.Command{Path: "/bin/bash", Args: []string{"-c", "exec 2>&1; " + command}, Dir: o.Dir, Env: o.Environ()})
}

func outputOf(t *testing.T, o *claude.Options, cmd launch.Command) string {
	t.Helper()
	p, err := o.Spawner.Spawn(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Stdin().Close()
	output, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	p.Wait()
	return string(output)
}

// A CLI that is a script is found by its interpreter, whatever arguments that has, with what is beside it.
func TestMounts_ScriptIsInsideWithItsFolder(t *testing.T) {
	needCell(t)
	f := newFolders(t)
	plant(t, f.at("cli/part"), "kept beside the script")
	plant(t, f.at("cli/cli.js"), `cat "${0%/*}/part"`)
	if err := os.Chmod(f.at("cli/cli.js"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := &claude.Options{Dir: f.work, CLIPath: f.at("cli/cli.js")}
	cell, err := claudecell.Open(t.Context(), f.isolation(), o, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	output := outputOf(t, o, launch.Command{Path: "/bin/bash", Args: []string{"--norc", f.at("cli/cli.js"), "--print"}, Dir: o.Dir, Env: o.Environ()})
	if output != "kept beside the script" {
		t.Errorf("got %q", output)
	}
}

// A script that an agent could change is no CLI.
func TestMounts_ScriptInTheWorkspaceIsRefused(t *testing.T) {
	needCell(t)
	f := newFolders(t)
	plant(t, f.at("work/cli.js"), "")
	if err := os.Chmod(f.at("work/cli.js"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := &claude.Options{Dir: f.work, CLIPath: f.at("work/cli.js")}
	cell, err := claudecell.Open(t.Context(), f.isolation(), o, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cell.Close() }()
	p, err := o.Spawner.Spawn(t.Context(), launch.Command{Path: "/bin/bash", Args: []string{f.at("work/cli.js")}, Dir: o.Dir, Env: o.Environ()})
	if err == nil {
		_ = p.Kill()
	}
	if err == nil || !strings.Contains(advice.Text(err), "where an agent could replace it") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// Wherever a workspace is and whatever it is called, it has the same path inside.
func TestMounts_WorkspaceMayBeAnywhere(t *testing.T) {
	needCell(t)
	for _, parent := range []string{"/var/tmp", "/dev/shm", "/tmp", os.TempDir()} {
		top, err := os.MkdirTemp(parent, "drover: a\nname ")
		if err != nil {
			t.Logf("not tried: %v", err)
			continue
		}
		defer func() { _ = os.RemoveAll(top) }()
		f := folders{top, filepath.Join(top, "work")}
		plant(t, f.at("work/kept"), "kept")
		output := inCell(t, f.isolation(), programIn(f.work), `pwd -P; cat kept; echo made > made; touch "$HOME/made" "$TMPDIR/made" && echo all`)
		if want := f.work + "\nkeptall\n"; output != want {
			t.Errorf("in %s: got %q, want %q", parent, output, want)
		}
	}
}

func TestMounts_TempFolderWithoutALimit(t *testing.T) {
	needCell(t)
	f := newFolders(t)
	i := f.isolation()
	i.Limits.TempBytes = -1
	output := inCell(t, i, programIn(f.work), "stat -f -c '%b %S' /tmp; echo made > /tmp/made && cat /tmp/made")
	if strings.HasPrefix(output, "262144 4096\n") || !strings.HasSuffix(output, "made\n") {
		t.Errorf("got %q, want more than the default of 1 GiB", output)
	}
}

func TestCells_AsOrdinaryUser(t *testing.T) {
	needCell(t)
	testkit.RerunAsUser(t, "/bin/true", "^Test(Mounts_|Cell_(CanBeClosed|Close|Panic))")
}
