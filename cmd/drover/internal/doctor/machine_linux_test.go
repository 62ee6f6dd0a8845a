// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testkit"
)

func TestExamine_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^(TestExamine_WritesATemporaryFile|TestProbeSandbox_ForbiddenBubblewrapIsFound|TestProbeSandbox_TriesInstalledTools|TestProbeSandbox_WithoutTools|TestProbeSandbox_WithoutUserNamespaces)$")
}

// tools makes a PATH of links to real programs and of scripts.
func tools(t *testing.T, scripts map[string]string, real ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range real {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("needs %s: apt-get install bubblewrap socat", name)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestProbeSandbox_TriesInstalledTools(t *testing.T) {
	allowed := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").Run() == nil
	tools(t, nil, "bwrap", "socat", "true")
	f := probeSandbox(t.Context())
	if (f.namespaces == nil) != allowed {
		t.Errorf("namespaces: %v; by hand: %v", f.namespaces, allowed)
	}
	for name, tool := range map[string]toolFact{"bubblewrap": f.bubblewrap, "socat": f.socat} {
		if tool.err != nil || strings.Count(tool.version, ".") < 2 {
			t.Errorf("%s: got %+v, want a version", name, tool)
		}
	}
	if f.root != (os.Geteuid() == 0) || (f.landlock > 0) != (f.landlockErr == nil) {
		t.Errorf("root: %v, landlock: %d, %v", f.root, f.landlock, f.landlockErr)
	}
}

func TestProbeSandbox_WithoutTools(t *testing.T) {
	tools(t, nil)
	f := probeSandbox(t.Context())
	if f.bubblewrap.err == nil || f.socat.err == nil || f.namespaces == nil {
		t.Errorf("got %+v, want nothing to be found", f)
	}
	if got := f.install("x"); !strings.HasPrefix(got, "install x with") {
		t.Errorf("got %q, want words where there is no package manager", got)
	}
}

// A bubblewrap that is installed but not allowed to do its work.
func TestProbeSandbox_ForbiddenBubblewrapIsFound(t *testing.T) {
	const refuses = "#!/bin/sh\n[ \"$1\" = --version ] && { echo bubblewrap 9.9.9; exit; }\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
	tools(t, map[string]string{"bwrap": refuses, "socat": "#!/bin/sh\necho what?\n", "apt-get": "#!/bin/sh\n"}, "true")
	f := probeSandbox(t.Context())
	if f.bubblewrap != (toolFact{version: "9.9.9"}) || f.namespaces == nil || !strings.Contains(advice.Text(f.namespaces), "No permissions to create new namespace") {
		t.Errorf("bubblewrap %+v, namespaces %v; want one that refuses", f.bubblewrap, f.namespaces)
	}
	if f.socat != (toolFact{}) {
		t.Errorf("socat is %+v, want it there without a version", f.socat)
	}
	if got := f.install("x"); strings.HasPrefix(got, "sudo ") == f.root || !strings.HasSuffix(got, "apt-get install x") {
		t.Errorf("got %q", got)
	}
}

func TestUserNamespaceFix_NamesTheSwitch(t *testing.T) {
	const other = "allow user namespaces in the container or virtual machine around this one"
	cases := []struct{ file, value, want string }{
		{"", "", other},
		{"/proc/sys/user/max_user_namespaces", "0\n", "sudo sysctl -w user.max_user_namespaces=15000"},
		{"/proc/sys/user/max_user_namespaces", "100\n", other},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0\n", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n", other},
	}
	for _, c := range cases {
		got := userNamespaceFix(func(path string) ([]byte, error) {
			if path == c.file {
				return []byte(c.value), nil
			}
			return nil, fs.ErrNotExist
		})
		if got != c.want {
			t.Errorf("%s is %q: got %q, want %q", c.file, c.value, got, c.want)
		}
	}
}

func TestProgramOutput_HasReasonAndNoEnvironment(t *testing.T) {
	tools(t, map[string]string{"speaks": "#!/bin/sh\necho why; exit 3\n", "mute": "#!/bin/sh\nexit 3\n", "asks": "#!/bin/sh\necho secret: $DROVER_TEST_SECRET\n"})
	for name, want := range map[string]string{"speaks": "exit status 3: why", "mute": "exit status 3"} {
		if _, err := programOutput(t.Context(), name); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	t.Setenv("DROVER_TEST_SECRET", "planted")
	if got, err := programOutput(t.Context(), "asks"); got != "secret:" || err != nil {
		t.Errorf("got %q, %v, want a program without our environment", got, err)
	}
	if _, err := programOutput(t.Context(), "absent"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v, want %v", err, exec.ErrNotFound)
	}
}

// insideBwrap runs this test again in a namespace of its own, and returns what it printed. Inside, it
// reports false.
func insideBwrap(t *testing.T, args ...string) (output string, outside bool) {
	t.Helper()
	const inside = "DROVER_TEST_INSIDE"
	if os.Getenv(inside) != "" {
		return "", false
	}
	args = append([]string{"--unshare-user", "--unshare-pid", "--die-with-parent", "--dev-bind", "/", "/"}, args...)
	if exec.Command("bwrap", append(args, "true")...).Run() != nil {
		t.Skip("bubblewrap cannot make these namespaces here: drover doctor says why")
	}
	args = append(args, "--setenv", inside, "1", os.Args[0], "-test.run=^"+t.Name()+"$")
	out, err := exec.Command("bwrap", args...).CombinedOutput()
	if err != nil {
		t.Errorf("inside: %v\n%s", err, out)
	}
	return string(out), true
}

// On a disk that is really full no temporary file can be written. The disk is one in memory.
func TestExamine_FullDisk(t *testing.T) {
	out, outside := insideBwrap(t, "--size", "16384", "--tmpfs", "/mnt")
	if !outside {
		d := healthy(t)
		d.tempDir, d.free = func() string { return "/mnt" }, freeSpace
		fmt.Printf("temp: %+v\n", *d.examineTemp(t.Context()))
		return
	}
	if !strings.Contains(out, "temp: ") || !strings.Contains(out, "cannot write to /mnt: no space left on device") {
		t.Errorf("want the disk to be full:\n%s", out)
	}
}

// Where user namespaces are used up, the probe finds none and names the switch.
func TestProbeSandbox_WithoutUserNamespaces(t *testing.T) {
	out, outside := insideBwrap(t, "--disable-userns")
	if !outside {
		f := probeSandbox(t.Context())
		fmt.Printf("user namespaces: %v; namespaces: %v; fix: %s\n", f.userNamespaces, f.namespaces, f.userFix)
		return
	}
	if !strings.Contains(out, "user namespaces: user.max_user_namespaces allows no more; namespaces: exit status 1: bwrap: ") {
		t.Errorf("want no user namespaces:\n%s", out)
	}
}
