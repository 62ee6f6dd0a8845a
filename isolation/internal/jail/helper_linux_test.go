// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

var update = flag.Bool("update", false, "build the helpers again and record the compilers")

// compilers are those that build the helper for each processor.
var compilers = map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}

var compilerFlags = []string{
	"-Os", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
	"-fno-ident", "-Wall", "-Wextra", "-Werror", "-Wl,-z,noseparate-code,--build-id=none", "-s",
}

// sourceFlags are those of each source.
var sourceFlags = map[string][]string{
	"helper": {"-static"},
	"guard":  {"-shared", "-fPIC", "-Wl,-init,begin,-z,norelro,--hash-style=gnu"},
}

// The committed helpers are what the source gives. With the recorded version of the compiler every
// byte is; with another one what it builds must work as well. To build them again:
//
//	go test ./isolation/internal/jail -run TestHelperFile_IsBuiltFromItsSource -update
func TestHelperFile_IsBuiltFromItsSource(t *testing.T) {
	for arch, name := range compilers {
		t.Run(arch, func(t *testing.T) {
			compiler := findCompiler(t, arch, name)
			dir := t.TempDir()
			version, err := exec.Command(compiler, "--version").Output()
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(version), "\n")
			_, first, _ = strings.Cut(first, " ") // without the program's name
			for name, flags := range sourceFlags {
				built := filepath.Join(dir, name)
				args := slices.Concat(compilerFlags, flags, []string{"-o", built, "helper/" + name + ".c"})
				if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				compareHelper(t, name, arch, built, first)
			}
			if arch == runtime.GOARCH {
				testHelper(t, filepath.Join(dir, "helper"))
			}
		})
	}
}

func findCompiler(t *testing.T, arch, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && arch == runtime.GOARCH {
		path, err = exec.LookPath("gcc")
	}
	if err != nil {
		t.Skipf("no compiler for %s: install the package gcc (or gcc-%s for another processor) to try", arch, strings.TrimSuffix(name, "-gcc"))
	}
	return path
}

func compareHelper(t *testing.T, name, arch, built, version string) {
	t.Helper()
	got, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	elf, record := name+"_"+arch+".elf", "helper/compiler_"+arch+".txt"
	if *update {
		if err := errors.Join(os.WriteFile(elf, got, 0o644), os.WriteFile(record, []byte(version+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(elf)
	if err != nil {
		t.Fatal(err)
	}
	if version != strings.TrimSpace(string(recorded)) {
		t.Logf("this compiler is %q, the recorded one %q: bytes are not compared", version, recorded)
	} else if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes are not what the source gives (%d bytes)\n  next: build it again with -update", elf, len(want), len(got))
	}
}

// The helper works by itself, without bubblewrap, as the committed file too.
func TestHelper_Launches(t *testing.T) {
	helper, err := HelperFile()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = helper.Close() }()
	if _, err := helper.WriteAt([]byte{0}, 0); err == nil {
		t.Error("the helper in memory can be written")
	}
	if err := os.WriteFile("/proc/self/fd/"+strconv.Itoa(int(helper.Fd())), []byte("x"), 0); err == nil {
		t.Error("the helper in memory can be opened again and written")
	}
	path := filepath.Join(t.TempDir(), "helper")
	if err := os.WriteFile(path, helperELF, 0o755); err != nil {
		t.Fatal(err)
	}
	testHelper(t, path)
}

// testHelper tries a helper at a path.
func testHelper(t *testing.T, path string) {
	t.Run("listeners, limits and descriptors", func(t *testing.T) { testHelperLaunch(t, path) })
	t.Run("filter", func(t *testing.T) {
		out, _, err := runHelper(t, path, Launch{Path: "/bin/chmod", Args: []string{"4755", t.TempDir()}}, DataFile, Filter(false))
		if err != nil || !strings.Contains(out, "Operation not permitted") {
			t.Errorf("got %v, %q, want a refusal", err, out)
		}
	})
	t.Run("Landlock", func(t *testing.T) { testHelperLandlock(t, path) })
	t.Run("mounts", func(t *testing.T) { testHelperMounts(t, path) })
	t.Run("working directory", func(t *testing.T) {
		dir := t.TempDir()
		open := func([]byte) (*os.File, error) { return os.Open(dir) }
		out, _, err := runHelper(t, path, Launch{Dir: 4, Path: "/bin/pwd", Args: []string{"-P"}}, open, nil)
		if err != nil || strings.TrimSpace(out) != dir {
			t.Errorf("got %v, %q, want %s", err, out, dir)
		}
	})
	for name, args := range map[string][]string{
		"no arguments": {}, "no program": {"-r", "4:0"}, "nothing after the dashes": {"--"},
		"an invalid option": {"-x", "1", "--", "/bin/true"}, "an invalid number": {"-s", "3x", "--", "/bin/true"},
		"an invalid address": {"-l", "127.0.0.1", "--", "/bin/true"}, "listeners without a receiver": {"-l", "127.0.0.1:0", "--", "/bin/true"},
		"an invalid descriptor": {"-f", "99", "--", "/bin/true"}, "no such program": {"--", "/none"},
		"a program without a path": {"--", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(path, args...).CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 127 {
				t.Errorf("got %v, want exit 127", err)
			}
			if len(args) > 0 && !strings.HasPrefix(string(out), "drover cell: ") {
				t.Errorf("stderr: got %q, want words", out)
			}
		})
	}
	if out, err := exec.Command(path, "-r", "4:0", "-w").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("waiting for an end of input that is there: got %v, %q", err, out)
	}
}

func testHelperLaunch(t *testing.T, path string) {
	l := Launch{
		Listen: []netip.AddrPort{freeAddress(t), freeAddress(t)}, Limits: Limits{OpenFiles: 77},
		Path: "/bin/sh", Args: []string{"-c", "ulimit -n; ulimit -Hc; cd /proc/self/fd; echo *"},
	}
	out, listeners, err := runHelper(t, path, l, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The shell itself opens nothing; a star is read through descriptor 3.
	if diff := cmp.Diff("77\n0\n0 1 2 3\n", out); diff != "" {
		t.Errorf("the program printed (-want +got):\n%s", diff)
	}
	for i, want := range l.Listen {
		if got := listeners[i].Addr().String(); got != want.String() {
			t.Errorf("listener %d: got %s, want %s", i, got, want)
		}
		c, err := net.DialTimeout("tcp", want.String(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

func freeAddress(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// runHelper runs a launch to its end. The data, if any, is the filter's, or the ruleset's if l says so.
func runHelper(t *testing.T, path string, l Launch, file func([]byte) (*os.File, error), data []byte) (string, []net.Listener, error) {
	t.Helper()
	handoff, err := NewHandoff()
	if err != nil {
		t.Fatal(err)
	}
	defer handoff.Close()
	l.Report = 3
	files := []*os.File{handoff.Child}
	if file != nil {
		f, err := file(data)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		files = append(files, f)
		if l.Ruleset == 0 && l.Dir == 0 {
			l.Filter = 4
		}
	}
	cmd := exec.Command(path, l.Arguments()...)
	cmd.ExtraFiles, cmd.Env = files, []string{}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Close(), handoff.Child.Close()
	listeners, err := handoff.Receive(t.Context(), len(l.Listen))
	t.Cleanup(func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	})
	out, _ := io.ReadAll(r)
	_ = cmd.Wait()
	return string(out), listeners, err
}

func testHelperLandlock(t *testing.T, path string) {
	const writing = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	attr := uint64(writing) // the first field of the struct, and the only one that old kernels know
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
	if errno != 0 {
		t.Skipf("no Landlock here (%v): use a kernel that has it", errno)
	}
	ruleset := func([]byte) (*os.File, error) { return os.NewFile(fd, "ruleset"), nil }
	file := filepath.Join(t.TempDir(), "f")
	l := Launch{Ruleset: 4, Path: "/bin/sh", Args: []string{"-c", "echo x > " + file}}
	out, _, err := runHelper(t, path, l, ruleset, nil)
	if err != nil || !strings.Contains(out, "Permission denied") {
		t.Errorf("got %v, %q, want a refusal", err, out)
	}
}

// The helper becomes the program only where each path is what it should be.
func testHelperMounts(t *testing.T, path string) {
	dir := t.TempDir()
	here := func(change func(*mounted)) mounted {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			t.Fatal(err)
		}
		m := source{stat: st}.mounted(dir, false)
		change(&m)
		return m
	}
	for name, c := range map[string]struct {
		change func(*mounted)
		want   error
	}{
		"what was checked": {func(*mounted) {}, nil},
		"another inode":    {func(m *mounted) { m.inode++ }, unix.ESTALE},
		"another device":   {func(m *mounted) { m.minor++ }, unix.ESTALE},
		"another kind":     {func(m *mounted) { m.major++ }, unix.ESTALE},
		"not read-only":    {func(m *mounted) { m.readOnly = true }, unix.ESTALE},
		"nothing":          {func(m *mounted) { m.path += "/none" }, unix.ENOENT},
	} {
		_, _, err := runHelper(t, path, Launch{Path: "/bin/true", mounted: []mounted{here(c.change)}}, nil, nil)
		if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(advice.Text(err), dir) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestHandoff_ReportsTheFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "helper")
	if err := os.WriteFile(path, helperELF, 0o755); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	address := taken.Addr().(*net.TCPAddr).AddrPort()
	for name, c := range map[string]struct {
		launch Launch
		want   error
		text   string
	}{
		"no such program": {Launch{Path: "/none"}, unix.ENOENT, "running /none"},
		"a folder":        {Launch{Path: "/usr"}, unix.EACCES, "running /usr"},
		"a taken address": {Launch{Path: "/bin/true", Listen: []netip.AddrPort{address}}, unix.EADDRINUSE, "listening on " + address.String()},
		"too many":        {Launch{Path: "/bin/true", Listen: make([]netip.AddrPort, 17)}, unix.EINVAL, "bad argument"},
	} {
		_, _, err := runHelper(t, path, c.launch, nil, nil)
		if !errors.Is(err, c.want) || !strings.Contains(advice.Text(err), c.text) {
			t.Errorf("%s: got %v, want %v and %q", name, err, c.want, c.text)
		}
	}
}

// The first process of a PID namespace passes the status of its program on, and the end of the host's pipe
// ends the namespace by itself: no death signal is set here.
func TestHelperFile_StaysAsTheFirstProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "helper")
	if err := os.WriteFile(path, helperELF, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		line string
		want int
	}{
		"status":            {"exit 7", 7},
		"signal":            {"kill -9 $$", 128 + 9},
		"orphans":           {"for n in 1 2 3 4 5 6 7 8 9; do (true &); done; (sleep 60 &); exit 3", 3},
		"mask":              {"grep -q '^SigBlk:.0*$' /proc/self/status", 0},
		"end of the host":   {"echo ready; sleep 60", 128 + 9},
		"end after a storm": {"while :; do kill -CHLD 1; (true &); done & echo ready; sleep 60", 128 + 9},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = r.Close(), w.Close() }()
			cmd := exec.Command(path, "-i", "3", "--", "/bin/sh", "-c", c.line)
			cmd.ExtraFiles = []*os.File{r}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID}
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
				t.Skipf("no user namespaces here (%v): allow them", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := out.Read(make([]byte, 16)); n > 0 {
				_ = w.Close()
			}
			_, _ = io.Copy(io.Discard, out) // no process inside holds it any more
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.want {
				t.Errorf("status: got %d, want %d", got, c.want)
			}
		})
	}
}
