// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperVar makes the test binary play one of the programs below instead of running tests.
const helperVar = "PROC_TEST_HELPER"

// noRaceSleep keeps helpers built with the race detector from sleeping a second at their end.
const noRaceSleep = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperVar); role != "" {
		helper(role)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// helper plays the program named role. Its first argument is a marker that the test finds again
// in /proc.
func helper(role string) {
	role, arg, _ := strings.Cut(role, "=")
	switch role {
	case "exit":
		code, _ := strconv.Atoi(arg)
		fmt.Println("out")
		fmt.Fprintln(os.Stderr, "err")
		os.Exit(code)
	case "sleep":
		ready()
	case "no-handler": // unlike a Go program, which always has one
		check(syscall.Exec("/bin/sh", []string{"sh", "-c", "echo ready; read line", os.Args[1]}, nil))
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM)
		ready()
	case "handle-term":
		got := make(chan os.Signal, 1)
		signal.Notify(got, syscall.SIGTERM)
		fmt.Println("ready")
		<-got
		os.Exit(143)
	case "family":
		family()
		ready()
	case "forker": // the middle of a double fork: its child outlives it
		child("sleep", &syscall.SysProcAttr{Setsid: true})
	case "keep-stdout":
		child("quiet", &syscall.SysProcAttr{Setsid: true})
		fmt.Println("last words")
	case "quiet":
		time.Sleep(time.Hour)
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "look":
		look()
	case "host":
		host(arg)
	}
}

func ready() {
	fmt.Println("ready")
	time.Sleep(time.Hour)
}

// family starts children in every way that tends to survive a kill, and waits until all are there.
func family() {
	child("sleep", nil)
	child("sleep", &syscall.SysProcAttr{Setpgid: true})
	child("sleep", &syscall.SysProcAttr{Setsid: true})
	child("ignore-term", &syscall.SysProcAttr{Setsid: true}) // as with nohup
}

// child starts this binary as role and waits for its first output, except for a quiet one.
func child(role string, attr *syscall.SysProcAttr) {
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = []string{helperVar + "=" + role, noRaceSleep}
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	if role == "quiet" {
		cmd.Stdout = os.Stdout
		check(cmd.Start())
		return
	}
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	_, _ = out.Read(make([]byte, 64))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(99)
	}
}

// look prints what a program can see of its start.
func look() {
	fmt.Printf("env %q\n", os.Environ())
	first, err := os.ReadFile("/proc/1/environ")
	if os.Getpid() == 2 {
		fmt.Printf("env1 %q %v\n", bytes.Split(bytes.TrimSuffix(first, []byte{0}), []byte{0}), err)
	}
	// Pipes only: the runtime opens other files of its own. High numbers come from the parent
	// of the test process.
	entries, err := os.ReadDir("/proc/self/fd")
	check(err)
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "pipe:") && len(e.Name()) == 1 {
			fmt.Println("fd", e.Name())
		}
	}
	dir, _ := os.Getwd()
	fmt.Println("dir", dir)
}

// host starts a family and waits to be killed. It starts it from a locked goroutine that ends
// before it reports ready, so that only the death of the whole host can be what ends the family.
func host(mode string) {
	started := make(chan *Process)
	go func() {
		lockForever()
		p, err := Start(context.Background(), Spec{
			Path: os.Args[0], Args: os.Args[1:], Env: []string{helperVar + "=family"},
			NoPIDNamespace: mode == "plain",
		})
		check(err)
		started <- p
	}()
	p := <-started
	_, _ = p.Stdout().Read(make([]byte, 64))
	ready()
}

// modes runs f with and without a PID namespace.
func modes(t *testing.T, f func(t *testing.T, plain bool)) {
	t.Run("plain", func(t *testing.T) { f(t, true) })
	t.Run("namespace", func(t *testing.T) {
		if !NamespaceAvailable(t.Context(), "") {
			t.Skip("no PID namespace to be had here: install bubblewrap, or allow user namespaces")
		}
		f(t, false)
	})
}

// run is one program under test.
type run struct {
	*Process
	marker string
}

// startHelper starts this binary as role. Whatever of it is left at the end of the test is an
// error, unless the test ended it itself.
func startHelper(t *testing.T, plain bool, role string) run {
	t.Helper()
	marker := "marker-" + rand.Text()
	p, err := Start(t.Context(), Spec{
		Path: self(t), Args: []string{marker}, Env: []string{helperVar + "=" + role, noRaceSleep}, NoPIDNamespace: plain,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		p.Wait()
		waitGone(t, marker, 2*time.Second)
		drain(p)
	})
	if got, want := p.Namespaced(), !plain; got != want {
		t.Errorf("in a PID namespace: got %v, want %v", got, want)
	}
	return run{p, marker}
}

// drain reads both outputs to their end, which closes them.
func drain(p *Process) {
	_, _ = io.Copy(io.Discard, p.Stdout())
	_, _ = io.Copy(io.Discard, p.Stderr())
	_ = p.Stdin().Close()
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// awaitReady reads the helper's first line.
func (r run) awaitReady(t *testing.T) {
	t.Helper()
	buf := make([]byte, 64)
	n, err := r.Stdout().Read(buf)
	if got := string(buf[:n]); got != "ready\n" {
		stderr, _ := io.ReadAll(r.Stderr())
		t.Fatalf("first output: got %q, %v, want ready; stderr %q", got, err, stderr)
	}
}

// alive returns the pids of all processes that carry marker, zombies not counted.
func alive(marker string) []int {
	var pids []int
	for _, pid := range allPIDs() {
		cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && bytes.Contains(cmdline, []byte(marker)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitGone waits until no process carries marker.
func waitGone(t *testing.T, marker string, limit time.Duration) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(limit)
	for range tick.C {
		left := alive(marker)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d processes left after %s: %v", len(left), limit, left)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return
		}
	}
}
