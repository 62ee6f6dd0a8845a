// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
)

// nobody is an ordinary user of every Linux.
const nobody = 65534

// Where tests run as root, those that start the CLI are run again by an ordinary user, in a process
// of its own: the CLI treats root differently, above all in bypass mode.
func TestTheGateHoldsForAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is an ordinary user already; run as root to try both")
	}
	cli := claudetest.CLI(t)
	dir, err := os.MkdirTemp("/tmp", "drover-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	program, agent := filepath.Join(dir, "gate.test"), filepath.Join(dir, "claude")
	putProgram(t, os.Args[0], program)
	putProgram(t, cli.Path, agent) // the checkout may be where only root can go
	cmd := exec.Command(program, "-test.v", "-test.run=^(TestAMutatingTool|TestTheHookDenies|TestNativeTools|TestAnAskIsAnsweredOnce)")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "DROVER_SLOTS=" + filepath.Join(dir, "slots"), "DROVER_CLAUDE=" + agent}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as uid %d: %v\n%s", nobody, err, out)
	}
}

// putProgram puts a program where everybody may run it: as a link, or as a copy on another file
// system.
func putProgram(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(from, to) == nil {
		return
	}
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}
