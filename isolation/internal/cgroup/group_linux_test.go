// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
)

// helperVar makes the test binary play one of the programs below instead of running tests.
const helperVar = "CGROUP_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperVar); role != "" {
		helper(role)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// helper waits for a line on stdin, so that the test can put it into a group first. Everything it
// does is bounded.
func helper(role string) {
	if role == "family" {
		child := exec.Command("/bin/sh", "-c", "read line")
		child.Stdin = os.Stdin
		fmt.Println(child.Start())
		fmt.Println(child.Process.Pid)
		_ = child.Wait()
		return
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	switch role {
	case "fork":
		fmt.Println(fork(60))
	case "allocate":
		allocate(64 << 20)
	case "leave": // what a crashed program leaves
		g, err := New("left", Limits{Processes: 10})
		fmt.Println(cmp.Or(advice.Text(err), "<nil>"))
		if err == nil {
			fmt.Println(filepath.Base(g.dirs[0].path))
		}
	}
}

// fork starts up to n children and returns how many it got.
func fork(n int) int {
	var pipes []io.Closer
	defer func() {
		for _, p := range pipes {
			_ = p.Close()
		}
	}()
	for started := range n {
		cmd := exec.Command("/bin/sh", "-c", "read line")
		in, err := cmd.StdinPipe()
		if err != nil || cmd.Start() != nil {
			return started
		}
		pipes = append(pipes, in)
	}
	return n
}

// allocate touches memory page by page.
func allocate(bytes int) {
	block := make([]byte, bytes)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	fmt.Println("got", len(block))
}

// A program is a helper that waits for a line of input.
type program struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a helper, as an ordinary user if that is possible, because cells are.
func start(t *testing.T, role string) *program {
	t.Helper()
	cmd := ordinary(t, role)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}

func ordinary(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(testkit.PutProgram(t, os.Args[0], testkit.SharedFolder(t)))
	cmd.Dir, cmd.Env = "/", []string{helperVar + "=" + role, "GORACE=atexit_sleep_ms=0", "GOGC=off"}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testkit.Nobody, Gid: testkit.Nobody}}
	}
	return cmd
}

func (p *program) line() string {
	line, _ := p.out.ReadString('\n')
	return strings.TrimSpace(line)
}

func (p *program) proceed() string {
	_, _ = io.WriteString(p.in, "go\n")
	return p.line()
}

// group makes a real group, or skips the test with the reason.
func group(t *testing.T, name string, l Limits) *Group {
	t.Helper()
	g, err := New(name, l)
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		for _, d := range g.dirs {
			if _, err := os.Stat(d.path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("group %s is left behind: %v", d.path, err)
			}
		}
	})
	return g
}

func TestGroup_OutOfProcessesAffectsNoOther(t *testing.T) {
	narrow := group(t, "narrow", Limits{Processes: 25})
	wide := group(t, "wide", Limits{Processes: 200})
	first, second := start(t, "fork"), start(t, "fork")
	for p, g := range map[*program]*Group{first: narrow, second: wide} {
		if err := g.Add(p.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	got, err := strconv.Atoi(first.proceed())
	if err != nil || got < 3 || got > 25 {
		t.Errorf("children below a limit of 25 processes and threads: got %d, %v, want 3 to 25", got, err)
	}
	if got, want := second.proceed(), "60"; got != want {
		t.Errorf("children beside the full group: got %s, want %s", got, want)
	}
	if n, ok := narrow.ForksRefused(); !ok || n == 0 {
		t.Errorf("refused forks of the narrow group: got %d, %v, want some", n, ok)
	}
	if n, ok := wide.ForksRefused(); !ok || n != 0 {
		t.Errorf("refused forks of the wide group: got %d, %v, want 0", n, ok)
	}
}

func TestGroup_MemoryLimitEndsTheProcess(t *testing.T) {
	g := group(t, "memory", Limits{Memory: 40 << 20})
	p, other := start(t, "allocate"), start(t, "allocate")
	if err := g.Add(p.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if got := p.proceed(); got != "" {
		t.Errorf("64 MiB under a limit of 40: got %q, want an end without words", got)
	}
	_ = p.Wait()
	if ws := p.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
		t.Errorf("end of the program: got %v, want killed", p.ProcessState)
	}
	if n, ok := g.OOMKills(); !ok || n != 1 {
		t.Errorf("programs ended for memory: got %d, %v, want 1", n, ok)
	}
	if peak, ok := g.MemoryPeak(); ok && (peak < 30<<20 || peak > 41<<20) {
		t.Errorf("peak: got %d, want about the limit of %d", peak, 40<<20)
	}
	if got, want := other.proceed(), "got 67108864"; got != want {
		t.Errorf("the same outside of the group: got %q, want %q", got, want)
	}
}

func TestGroup_CountsTheTimeOfEndedProcesses(t *testing.T) {
	g := group(t, "time", Limits{Memory: 1 << 30})
	p := start(t, "allocate")
	if err := g.Add(p.Process.Pid); err != nil {
		t.Fatal(err)
	}
	before, ok := g.CPUTime()
	if !ok {
		t.Skip("neither cpu.stat nor cpuacct is mounted")
	}
	p.proceed()
	_ = p.Wait()
	if after, _ := g.CPUTime(); after <= before {
		t.Errorf("CPU time: got %s, want more than %s", after, before)
	}
}

func TestGroup_AddMovesTheChildren(t *testing.T) {
	g := group(t, "family", Limits{Processes: 100})
	p := start(t, "family")
	if got := p.line(); got != "<nil>" {
		t.Fatal(got)
	}
	child := p.line()
	if err := g.Add(p.Process.Pid); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(g.dirs[0].path, "cgroup.procs"))
	for _, pid := range []string{child, strconv.Itoa(p.Process.Pid)} {
		if !strings.Contains("\n"+string(content), "\n"+pid+"\n") {
			t.Errorf("members: got %q, %v, want %s among them", content, err, pid)
		}
	}
}

func TestGroup_AddOfAnEndedProcessIsNoError(t *testing.T) {
	g := group(t, "ended", Limits{Processes: 100})
	p := start(t, "exit")
	_ = p.in.Close()
	_ = p.Wait()
	if err := g.Add(p.Process.Pid); err != nil {
		t.Error(err)
	}
}

func TestGroup_InUseIsNotRemoved(t *testing.T) {
	g := group(t, "used", Limits{Processes: 100})
	p := start(t, "exit")
	if err := g.Add(p.Process.Pid); err != nil {
		t.Fatal(err)
	}
	err := g.host.remove(g.dirs[0].path, time.Now())
	if err == nil || !strings.Contains(advice.Text(err), strconv.Itoa(p.Process.Pid)) || !strings.Contains(advice.Text(err), "next:") {
		t.Errorf("closing a group in use: got %v, want an error with pid %d and what to do", err, p.Process.Pid)
	}
}

func TestSweep_RemovesGroupsOfACrashedProgram(t *testing.T) {
	mine := group(t, "mine", Limits{Processes: 100})
	cmd := ordinary(t, "leave")
	cmd.SysProcAttr = nil // who may make groups
	out, err := cmd.CombinedOutput()
	printed, name, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || printed != "<nil>" {
		t.Fatalf("%s, %v", out, err)
	}
	left := filepath.Join(filepath.Dir(mine.dirs[0].path), name)
	if _, err := os.Stat(left); err != nil {
		t.Fatalf("nothing to sweep: %v", err)
	}
	p := start(t, "exit")
	if err := writeFile(filepath.Join(left, "cgroup.procs"), strconv.Itoa(p.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	if got := Sweep(); got < 1 {
		t.Errorf("folders removed: got %d, want at least 1", got)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group of an ended program: got %v, want that it is gone", err)
	}
	_ = p.in.Close()
	if _ = p.Wait(); p.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("a process in it: got %v, want killed", p.ProcessState)
	}
	if _, err := os.Stat(mine.dirs[0].path); err != nil {
		t.Errorf("the group of a running program: got %v, want it left alone", err)
	}
}

func TestNew_ErrorOfAnOrdinaryUserHasTheReason(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become an ordinary user")
	}
	out, err := ordinary(t, "leave").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), advice.Text(ErrUnavailable)+": ") || !strings.Contains(string(out), "\n  next: ") {
		t.Errorf("a group for an ordinary user: got %q, %v, want the reason and what to do", out, err)
	}
}

func TestNew_RefusesInvalidNamesAndLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
	}{{"", Limits{}}, {"../up", Limits{}}, {"a.b", Limits{}}, {"a", Limits{Memory: -1}}, {"a", Limits{Processes: -1}}} {
		g, err := New(c.name, c.limits)
		if err == nil {
			t.Errorf("New(%q, %+v): got no error", c.name, c.limits)
			_ = g.Close()
		}
	}
}

func ExampleNew() {
	g, err := New("run-7", Limits{Memory: 2 << 30, Processes: 256})
	if errors.Is(err, ErrUnavailable) {
		return // report it in the run's events
	}
	defer func() { _ = g.Close() }()
	_ = g.Add(os.Getpid() + 1) // the cell's first process, before it starts others
}

func BenchmarkNewAddClose(b *testing.B) {
	for b.Loop() {
		g, err := New("bench", Limits{Memory: 1 << 30, Processes: 100})
		if err != nil {
			b.Skip(err)
		}
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
