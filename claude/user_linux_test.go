// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// nobody is an ordinary user of every Linux.
const nobody = 65534

// Tests run as root here and as ordinary users elsewhere. As root, a few of them are run again by
// an ordinary user, in a process of its own.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is an ordinary user already; run as root to try both")
	}
	cli := claudetest.CLI(t)
	temp := openFolder(t)
	program := filepath.Join(temp, "claude.test")
	copyProgram(t, os.Args[0], program)
	cmd := exec.Command(program, "-test.v", "-test.run=^(TestQueryYields|TestBreakingOut|TestInterruptEnds)")
	cmd.Dir = temp // the checkout may be where only root can go
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + temp, "TMPDIR=" + temp, "DROVER_SLOTS=" + filepath.Join(temp, "slots"), "DROVER_CLAUDE=" + linkCLI(t, cli, temp)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as uid %d: %v\n%s", nobody, err, out)
	}
}

// Options.User starts the CLI, and so all its tools, as somebody else.
func TestCLIAsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become somebody else: run the tests as root")
	}
	cli := claudetest.CLI(t)
	if err := os.Chmod(os.TempDir(), 0o711); err != nil { // the one that claudetest.Main made
		t.Fatal(err)
	}
	for _, dir := range []string{cli.Root, cli.Home, cli.Config, cli.Temp, cli.Work} {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "id -u"}), script.Text("ok"))
	opts := cli.Options(model)
	opts.CLIPath = linkCLI(t, cli, openFolder(t))
	opts.User = "nobody"
	opts.PermissionMode = claude.ModeBypassPermissions
	if _, _, err := collect(claude.Query(t.Context(), "who?", opts)); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := model.ToolResult("Bash"); got != "65534" {
		t.Errorf("the CLI's shell runs as %q, want 65534", got)
	}
}

// openFolder is a folder that everybody may use.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "drover-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// linkCLI puts the CLI into a folder that everybody may use: the checkout, and the CLI in it, may be
// where only root can go.
func linkCLI(t *testing.T, cli *claudetest.RealCLI, dir string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(cli.Path)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "claude")
	if os.Link(path, link) != nil { // another file system
		copyProgram(t, path, link)
	}
	return link
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
