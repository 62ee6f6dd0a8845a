// SPDX-License-Identifier: Apache-2.0

package landlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testkit"
)

// helperVar makes the test binary play one of the programs below instead of running tests.
const helperVar = "LANDLOCK_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVar) {
	case "":
		claudetest.Main(m)
	case "restrict":
		restrict()
	case "try":
		for _, attempt := range os.Args[1:] {
			fmt.Println(try(attempt))
		}
	case "wait":
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
}

// restrict applies the ruleset of descriptor 3 to this process and becomes the program of its arguments.
// A ruleset restricts a thread; a program that the thread executes inherits the ruleset.
func restrict() {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fail(err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, 3, 0, 0); errno != 0 {
		fail(errno)
	}
	unix.CloseOnExec(3)
	_ = os.Setenv(helperVar, os.Args[1])
	fail(syscall.Exec(os.Args[2], os.Args[2:], os.Environ()))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "helper:", err)
	os.Exit(99)
}

// try does what an attempt says, "verb argument...", and gives "ok" or the name of the error.
func try(attempt string) string {
	words := strings.Fields(attempt)
	err := attempts[words[0]](append(words[1:], "")[0], words)
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

var attempts = map[string]func(arg string, words []string) error{
	"read":     func(path string, _ []string) error { _, err := os.ReadFile(path); return err },
	"list":     func(path string, _ []string) error { _, err := os.ReadDir(path); return err },
	"stat":     func(path string, _ []string) error { _, err := os.Stat(path); return err },
	"write":    func(path string, _ []string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	"mkdir":    func(path string, _ []string) error { return os.Mkdir(path, 0o700) },
	"remove":   func(path string, _ []string) error { return os.Remove(path) },
	"truncate": func(path string, _ []string) error { return os.Truncate(path, 0) },
	"chmod":    func(path string, _ []string) error { return os.Chmod(path, 0o644) },
	"fifo":     func(path string, _ []string) error { return unix.Mkfifo(path, 0o600) },
	"symlink":  func(path string, _ []string) error { return os.Symlink("/", path) },
	"rename":   func(path string, words []string) error { return os.Rename(path, words[2]) },
	"link":     func(path string, words []string) error { return os.Link(path, words[2]) },
	"run":      func(path string, _ []string) error { return exec.Command(path).Run() },
	"tcp":      func(address string, _ []string) error { return dial("tcp", address, false) },
	"mptcp":    func(address string, _ []string) error { return dial("tcp", address, true) },
	"fastopen": func(address string, _ []string) error { return fastOpen(address) },
	"udp":      func(address string, _ []string) error { return dial("udp", address, false) },
	"unix":     func(address string, _ []string) error { return dial("unix", address, false) },
	"listen": func(address string, _ []string) error {
		var config net.ListenConfig
		config.SetMultipathTCP(false) // Go would ask for it, and Landlock does not cover it
		l, err := config.Listen(context.Background(), "tcp", address)
		if err == nil {
			_ = l.Close()
		}
		return err
	},
	"signal": func(pid string, _ []string) error {
		n, _ := strconv.Atoi(pid)
		return unix.Kill(n, 0)
	},
}

// dial connects, and over UDP, where that is not yet anything, sends a word.
func dial(network, address string, multipath bool) error {
	var dialer net.Dialer
	dialer.SetMultipathTCP(multipath)
	c, err := dialer.Dial(network, address)
	if err != nil {
		return err
	}
	if network == "udp" {
		_, err = c.Write([]byte("x"))
	}
	return errors.Join(err, c.Close())
}

// fastOpen connects by sending, without connect.
func fastOpen(address string) error {
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
}

// A stage is a folder that an ordinary user may use, and that user.
type stage struct {
	dir, self string
	attr      *syscall.SysProcAttr
}

// newStage prepares to run helpers as an ordinary user: rulesets are not for root.
func newStage(t *testing.T) stage {
	t.Helper()
	if ABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	dir := testkit.SharedFolder(t)
	s := stage{dir: dir, self: testkit.PutProgram(t, os.Args[0], dir)}
	if os.Getuid() == 0 {
		s.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testkit.Nobody, Gid: testkit.Nobody}}
	}
	return s
}

// file makes a file that the user owns, and gives its path.
func (s stage) file(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	s.folder(t, filepath.Dir(name))
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.give(t, path)
	return path
}

func (s stage) folder(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if path == s.dir {
		return path
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	s.give(t, path)
	return path
}

func (s stage) give(t *testing.T, path string) {
	t.Helper()
	if s.attr == nil {
		return
	}
	if err := os.Chown(path, testkit.Nobody, testkit.Nobody); err != nil {
		t.Fatal(err)
	}
}

// command is a helper as the ordinary user, in a role.
func (s stage) command(role string, args ...string) *exec.Cmd {
	cmd := exec.Command(s.self, args...)
	cmd.Dir, cmd.SysProcAttr = "/", s.attr
	cmd.Env = []string{helperVar + "=" + role, "GORACE=atexit_sleep_ms=0"}
	return cmd
}

// try tries things under a ruleset, or without one, and gives the outcome of each.
func (s stage) try(t *testing.T, ruleset *os.File, attempts []string) []string {
	t.Helper()
	cmd := s.command("try", attempts...)
	if ruleset != nil {
		cmd = s.command("restrict", append([]string{"try", s.self}, attempts...)...)
		cmd.ExtraFiles = []*os.File{ruleset}
	}
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil || len(lines) != len(attempts) {
		t.Fatalf("trying %d things: %v\n%s", len(attempts), err, out)
	}
	return lines
}

// waiter is a process of the same user, to be sent signals.
func (s stage) waiter(t *testing.T) int {
	t.Helper()
	cmd := s.command("wait")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// serve listens and takes what comes.
func serve(t *testing.T, network, address string) string {
	t.Helper()
	if network == "udp" {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c.LocalAddr().String()
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// port is that of an address.
func port(t *testing.T, address string) uint16 {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(n)
}

// system is what programs need to run.
func system() []string { return existing("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc") }

// libraries are what the test binary needs to start.
func libraries() []string { return existing("/usr/lib", "/usr/lib64", "/lib", "/lib64") }

func existing(paths ...string) []string {
	var found []string
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			found = append(found, path)
		}
	}
	return found
}
