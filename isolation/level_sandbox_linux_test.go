// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"errors"
	"os"
	"os/exec"
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
)

func onlySandbox(t *testing.T) *isolation.Isolation {
	t.Helper()
	for _, program := range []string{"bwrap", "socat"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the CLI's own sandbox needs " + program)
		}
	}
	return &isolation.Isolation{Strongest: sandbox, Weakest: sandbox}
}

func TestSandboxes_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^TestCLISandbox_")
}

func TestCLISandbox_RestrictsCommands(t *testing.T) {
	i, cli := onlySandbox(t), claudetest.CLI(t)
	outside := filepath.Join(cli.Root, "other")
	if err := os.Mkdir(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(cli.Work, "vendor"), 0o777); err != nil {
		t.Fatal(err)
	}
	i.TempDir, i.Sandbox = longestFolder(t), &isolation.Sandbox{ReadablePaths: []string{"vendor"}}
	port := tcpServer(t)
	reach := "curl -sS -m 5 --noproxy '*' http://127.0.0.1:" + port + " || echo unreached"
	events := playIn(t, cli, i, []try{
		{"inside", "Bash", command("touch inside && echo made"), "made", "", false},
		{"read-only", "Bash", command("touch vendor/bash && echo made; true"), "cannot touch", "made", false},
		{"outside", "Bash", command("touch " + outside + "/bash && echo made; true"), "cannot touch", "made", false},
		{"leaves", "Bash", script.Input{"command": "touch " + outside + "/left && echo made; true", "dangerouslyDisableSandbox": true}, "cannot touch", "made", false},
		{"server", "Bash", command(reach), "unreached", "", false},
		{"proxied", "Bash", command("curl -sS -m 5 --noproxy '' -o /dev/null -w 'code %{http_code}' http://127.0.0.1:" + port + "; true"), "", "code 200", false},
		{"leaves-net", "Bash", script.Input{"command": reach, "dangerouslyDisableSandbox": true}, "unreached", "", false},
		{"token", "Bash", command("echo token=$ANTHROPIC_API_KEY."), "token=.", "", false},
	})
	for _, name := range []string{"bash", "left"} {
		if _, err := os.Stat(filepath.Join(outside, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if text := strings.Join(oneProtection(t, events, sandbox).Missing, "\n"); !strings.Contains(text, "MCP servers are not isolated") {
		t.Errorf("missing: %q, want what the CLI's sandbox does not hold", text)
	}
}

// longestFolder is a folder for homes whose name is as long as it may be.
func longestFolder(t *testing.T) string {
	t.Helper()
	const length = 72 - len("/drover-home-0123456789ABCDEF/tmp")
	dir := shortFolder(t)
	dir = filepath.Join(dir, strings.Repeat("x", length-len(dir)-1))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSandbox_UnusableHomeIsRefused(t *testing.T) {
	i, cli := onlySandbox(t), claudetest.CLI(t)
	i.TempDir = longestFolder(t) + "y"
	if err := os.Mkdir(i.TempDir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := claudecell.Open(t.Context(), i, cli.Options(claudetest.NewModel(t)), isolation.OpenOptions{})
	if err == nil || !strings.Contains(advice.Text(err), "set Isolation.TempDir") {
		t.Errorf("got %v, want that the name is too long", err)
	}
}

// without makes a folder of programs for PATH that has all but these.
func without(t *testing.T, dir string, programs ...string) string {
	t.Helper()
	folder := filepath.Join(dir, "bin")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bash", "sh", "git", "cat", "env", "bwrap", "socat", "rg", "which"} {
		path, err := exec.LookPath(name)
		if err != nil || strings.Contains(strings.Join(programs, " "), name) {
			continue
		}
		if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// The CLI's PATH is without bubblewrap: it must not run commands without its sandbox.
func TestCLISandbox_NoCommandRunsWithoutIt(t *testing.T) {
	i, cli := onlySandbox(t), claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("Bash", command("touch made")), script.Text("done"))
	opts := cli.Options(model)
	opts.SettingSources = nil
	i.TempDir, i.Env = shortFolder(t), map[string]string{"PATH": without(t, cli.Root, "bwrap")}
	c, err := claudecell.Open(t.Context(), i, opts, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := ""
	for m, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			text += err.Error()
		}
		if result, ok := m.(*claude.ResultMessage); ok {
			text += strings.Join(append(result.Errors, result.Result), "\n")
		}
	}
	if !strings.Contains(text, "andbox required but unavailable") {
		t.Errorf("the CLI reported %q, want that its sandbox is missing", text)
	}
	if _, err := os.Stat(filepath.Join(cli.Work, "made")); err == nil || len(model.Requests()) > 0 {
		t.Errorf("the run went on without a sandbox: %d requests, file %v", len(model.Requests()), err)
	}
}

// This program's PATH is without bubblewrap: the run does not start.
func TestCLISandbox_MissingProgramsRefuseTheRun(t *testing.T) {
	i, cli := onlySandbox(t), claudetest.CLI(t)
	t.Setenv("PATH", without(t, cli.Root, "bwrap", "socat"))
	_, err := claudecell.Open(t.Context(), i, cli.Options(claudetest.NewModel(t)), isolation.OpenOptions{})
	weak, ok := errors.AsType[*isolation.WeakError](err)
	if !ok || weak.Best != host || !strings.Contains(advice.Text(err), "install bubblewrap and socat") {
		t.Errorf("got %v, want that bubblewrap and socat are missing", err)
	}
}
