// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

func init() {
	roles["family"] = family
	roles["child"] = func() { fmt.Println("ready"); time.Sleep(time.Hour) }
	roles["fork"] = func() { child("child", &syscall.SysProcAttr{Setsid: true}) }
	roles["host"] = host
}

// family starts children in every way that tends to outlive a kill: plain, in a group, in a session,
// and as an orphan of a session of its own. All carry the marker that is the first argument.
func family() {
	child("child", nil)
	child("child", &syscall.SysProcAttr{Setpgid: true})
	child("child", &syscall.SysProcAttr{Setsid: true})
	child("fork", &syscall.SysProcAttr{Setsid: true})
	fmt.Println("ready")
	time.Sleep(time.Hour)
}

func child(role string, attr *syscall.SysProcAttr) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env, cmd.SysProcAttr = []string{roleVariable + "=" + role}, attr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	_, _ = out.Read(make([]byte, 16))
	if role == "fork" {
		_ = cmd.Wait()
	}
}

// familySize is the family without those that only forked, and without bubblewrap's two.
const familySize = 5

// host starts a family, or what INSIDE names, in a cell, passes on what it writes and waits to be killed.
func host() {
	s := jail.Spec{
		Path: "/opt/role", Args: os.Args[1:], Env: []string{roleVariable + "=" + cmp.Or(os.Getenv("INSIDE"), "family")},
		Mounts: []jail.Mount{{Source: os.Getenv("SELF"), Target: "/opt/role"}},
	}
	cell, err := jail.Start(context.Background(), s)
	if err != nil {
		fmt.Println(err)
		os.Exit(99)
	}
	_, _ = io.Copy(os.Stdout, cell.Stdout())
}

// Whatever is killed, nothing of the cell remains.
func TestKill_LeavesNothing(t *testing.T) {
	requireCells(t)
	for name, kill := range map[string]func(cell *jail.Cell, bwrap, init int) error{
		"the cell":         func(cell *jail.Cell, _, _ int) error { return cell.Kill() },
		"bubblewrap":       func(_ *jail.Cell, bwrap, _ int) error { return syscall.Kill(bwrap, syscall.SIGKILL) },
		"the first inside": func(_ *jail.Cell, _, init int) error { return syscall.Kill(init, syscall.SIGKILL) },
		"the program":      func(cell *jail.Cell, _, _ int) error { return cell.Signal(syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			marker := "marker-" + rand.Text()
			s := roleSpec(t, "family", marker)
			var pids []int
			s.Confine = func(p []int) error { pids = p; return nil }
			cell := startCell(t, s)
			cell.awaitLine(t, "ready")
			if got := len(alive(marker)); got < familySize {
				t.Fatalf("processes before: got %d, want at least %d", got, familySize)
			}
			if len(pids) != 2 || pids[1] != cell.Init() {
				t.Fatalf("confined: got %v, want bubblewrap and %d", pids, cell.Init())
			}
			if got := len(proc.Descendants(cell.Init())); got < familySize+1 {
				t.Errorf("pids of the cell: got %d, want at least %d", got, familySize+1)
			}
			if err := kill(cell.Cell, pids[0], pids[1]); err != nil {
				t.Fatal(err)
			}
			cell.Wait()
			if left := alive(marker); len(left) > 0 {
				t.Errorf("left when Wait has returned: %v", left)
			}
		})
	}
}

// The death of the host program, even by SIGKILL, ends the cell.
func TestKill_OfTheHostLeavesNothing(t *testing.T) {
	requireCells(t)
	marker := "marker-" + rand.Text()
	cmd := exec.Command("/proc/self/exe", marker)
	cmd.Env = []string{roleVariable + "=host", "PATH=" + os.Getenv("PATH"), "SELF=" + roleSpec(t, "").Mounts[0].Source}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 256)
	n, _ := out.Read(first)
	if got := string(first[:n]); got != "ready\n" {
		t.Fatalf("first words of the host: %q", got)
	}
	if got := len(alive(marker)); got < familySize {
		t.Fatalf("processes before: got %d, want at least %d", got, familySize)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	waitUntil(t, "the cell to end with its host", func() bool { return len(alive(marker)) == 0 })
}

// A program that ends takes with it what it left behind.
func TestCell_EndsWithItsProgram(t *testing.T) {
	requireCells(t)
	marker := "marker-" + rand.Text()
	cell := startCell(t, roleSpec(t, "fork", marker))
	if got, want := cell.Wait(), (proc.Status{}); got != want {
		errs, _ := io.ReadAll(cell.Stderr())
		t.Errorf("status: got %+v, want %+v: %s", got, want, errs)
	}
	if left := alive(marker); len(left) > 0 {
		t.Errorf("left when Wait has returned: %v", left)
	}
}

func init() { roles["early host"] = earlyHost }

// earlyHost is killed after bubblewrap has begun and before its program may run.
func earlyHost() {
	s := jail.Spec{
		Path: "/bin/sh", Args: []string{"-c", "echo ran > /opt/work/ran; sleep 60", os.Args[1]},
		Mounts: []jail.Mount{{Source: os.Getenv("WORK"), Target: "/opt/work", Writable: true}},
		Confine: func([]int) error {
			time.Sleep(100 * time.Millisecond) // so that bubblewrap is as far as it can get
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		},
	}
	_, err := jail.Start(context.Background(), s)
	fmt.Println(err)
}

// To bubblewrap the death of the host is the same as its permission to go on. The helper sees that the host
// is gone, and the program does not run without control.
func TestStart_ProgramDoesNotBeginWithoutItsHost(t *testing.T) {
	requireCells(t)
	marker, work := "marker-"+rand.Text(), t.TempDir()
	cmd := exec.Command("/proc/self/exe", marker)
	cmd.Env = []string{roleVariable + "=early host", "PATH=" + os.Getenv("PATH"), "WORK=" + work}
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the host was not killed: %v %s", err, out)
	}
	waitUntil(t, "everything to end with the host", func() bool { return len(alive(marker)) == 0 })
	if _, err := os.Stat(filepath.Join(work, "ran")); err == nil {
		t.Error("the program ran without its host")
	}
}
