// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Nobody is an ordinary user of every Linux.
const Nobody = 65534

// RerunAsUser runs the tests of this program whose names match the pattern again as an ordinary user, in a
// process of its own. They use the CLI at that path.
func RerunAsUser(t *testing.T, cli, pattern string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("this is an ordinary user already; run as root to try both")
	}
	rerunAs(t, Nobody, cli, pattern)
}

// RerunAlone runs a test again as a user that has no other process, and reports whether it did: it is for tests
// that use up what the kernel counts for each user. Who is not root shares it with others.
func RerunAlone(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return false
	}
	rerunAs(t, firstAlone+uint32(os.Getpid()), "/bin/true", "^"+t.Name()+"$")
	return true
}

// firstAlone is above all users that systems give out.
const firstAlone = 1_600_000_000

func rerunAs(t *testing.T, uid uint32, cli, pattern string) {
	t.Helper()
	dir := SharedFolder(t)
	cmd := exec.Command(PutProgram(t, os.Args[0], dir), "-test.v", "-test.run="+pattern)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir,
		"DROVER_SLOTS=" + filepath.Join(dir, "slots"), "DROVER_CLAUDE=" + PutProgram(t, cli, dir), "DROVER_SOAK=" + os.Getenv("DROVER_SOAK"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	passed := "--- PASS: "
	if strings.Contains(pattern, "/") {
		passed = "    --- PASS: "
	}
	switch {
	case err != nil:
		t.Errorf("as uid %d: %v\n%s", uid, err, out)
	case !bytes.Contains(out, []byte(passed)):
		t.Errorf("as uid %d: no test of %s passed\n%s", uid, pattern, out)
	}
}

// SharedFolder makes a folder that everybody may use.
func SharedFolder(t testing.TB) string {
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

// PutProgram puts a program into a folder, where everybody may run it: the checkout may be where only root
// can go. It is a link, or a copy on another file system.
func PutProgram(t testing.TB, program, dir string) string {
	t.Helper()
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, filepath.Base(program))
	if os.Link(program, to) == nil {
		return to
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}
