// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testuser"
)

func TestDoctorAsAnOrdinaryUser(t *testing.T) {
	testuser.Rerun(t, claudetest.CLI(t).Path, "^(TestDoctorSaysAllIsWell|TestDoctorReallyWrites|TestTheSandboxProbe|TestDoctorOnABroken)")
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

func TestTheSandboxProbeTriesWhatThereIs(t *testing.T) {
	allowed := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").Run() == nil
	tools(t, nil, "bwrap", "socat", "true")
	f := probeSandbox(t.Context())
	if (f.walls == nil) != allowed {
		t.Errorf("walls: %v; by hand: %v", f.walls, allowed)
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

func TestTheSandboxProbeWithoutTools(t *testing.T) {
	tools(t, nil)
	f := probeSandbox(t.Context())
	if f.bubblewrap.err == nil || f.socat.err == nil || f.walls == nil {
		t.Errorf("got %+v, want nothing to be found", f)
	}
	if got := f.install("x"); !strings.HasPrefix(got, "install x with") {
		t.Errorf("got %q, want words where there is no package manager", got)
	}
}

// A bubblewrap that is installed but not allowed to do its work.
func TestTheSandboxProbeBelievesWhatItTries(t *testing.T) {
	const refuses = "#!/bin/sh\n[ \"$1\" = --version ] && { echo bubblewrap 9.9.9; exit; }\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
	tools(t, map[string]string{"bwrap": refuses, "socat": "#!/bin/sh\necho what?\n", "apt-get": "#!/bin/sh\n"}, "true")
	f := probeSandbox(t.Context())
	if f.bubblewrap != (toolFact{version: "9.9.9"}) || f.walls == nil || !strings.Contains(f.walls.Error(), "No permissions to create new namespace") {
		t.Errorf("bubblewrap %+v, walls %v; want one that refuses", f.bubblewrap, f.walls)
	}
	if f.socat != (toolFact{}) {
		t.Errorf("socat is %+v, want it there without a version", f.socat)
	}
	if got := f.install("x"); strings.HasPrefix(got, "sudo ") == f.root || !strings.HasSuffix(got, "apt-get install x") {
		t.Errorf("got %q", got)
	}
}

func TestUserNamespaceFix(t *testing.T) {
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

func TestProgramOutput(t *testing.T) {
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

// The report in a real terminal is folded at its width; in a file it is not.
func TestDoctorFitsIntoARealTerminal(t *testing.T) {
	for _, width := range []int{80, 200} {
		keyboard, screen := openTerminal(t, width)
		d := ill(t)
		d.tempDir = os.TempDir // a short name: words are not broken
		if err := d.run(t.Context(), screen); !errors.As(err, new(ending)) {
			t.Fatal(err)
		}
		fmt.Fprintln(screen, "THE END")
		widest := 0
		lines := bufio.NewScanner(keyboard)
		for lines.Scan() && lines.Text() != "THE END" {
			widest = max(widest, utf8.RuneCountInString(lines.Text()))
		}
		if widest > width || widest < 70 {
			t.Errorf("the widest line has %d characters at width %d", widest, width)
		}
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := foldingWidth(file); got != 0 {
		t.Errorf("a file has %d columns, want 0", got)
	}
}

// openTerminal makes a terminal with a number of columns; what is written to screen is read from
// keyboard.
func openTerminal(t *testing.T, width int) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: mount -t devpts devpts /dev/pts")
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	fd := int(keyboard.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)})
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return keyboard, screen
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
func TestDoctorOnAFullDisk(t *testing.T) {
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
func TestTheSandboxProbeWithoutUserNamespaces(t *testing.T) {
	out, outside := insideBwrap(t, "--disable-userns")
	if !outside {
		f := probeSandbox(t.Context())
		fmt.Printf("user namespaces: %v; walls: %v; fix: %s\n", f.userNamespaces, f.walls, f.userFix)
		return
	}
	if !strings.Contains(out, "user namespaces: user.max_user_namespaces allows no more; walls: exit status 1: bwrap: ") {
		t.Errorf("want no user namespaces:\n%s", out)
	}
}

// That the folder is gone is no fault of the CLI.
func TestDoctorInAFolderThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cli := claudetest.CLI(t)
	t.Setenv(claude.EnvCLI, cli.Path)
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	d := newDoctor(doctorOptions{offline: true})
	if got := d.examineClaude(t.Context()); got.State != doctorOK {
		t.Errorf("claude: %+v, want ok", got)
	}
	if got := d.examineDisk(t.Context()); got.State != doctorBroken || got.Detail != "the working folder cannot be used: no such file or directory" {
		t.Errorf("disk: %+v, want broken, and why", got)
	}
}
