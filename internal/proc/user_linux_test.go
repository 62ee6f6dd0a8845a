// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const nobody = 65534

func itoa(i int) string { return strconv.Itoa(i) }

// waitFor polls until ok reports true.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(10 * time.Second)
	for range tick.C {
		if ok() {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("waiting for %s: not within 10 s", what)
			return
		}
	}
}

// publicSelf copies the test binary to where every user may run it.
func publicSelf(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "proc-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "proc.test")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProcess_AsOrdinaryUser runs this package's tests again as a user without any rights.
func TestProcess_AsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is an ordinary user already: run as root to try both")
	}
	cmd := exec.Command(publicSelf(t), "-test.v", "-test.skip=TestProcess_AsOrdinaryUser|TestStart_AsAnotherUser")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/tmp", "HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the tests as uid %d: %v\n%s", nobody, err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestProcess_KillEndsTheWholeTree") {
		t.Errorf("the tests did not run as uid %d:\n%s", nobody, out)
	}
}

func TestStart_AsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changing the user needs root: run the tests as root")
	}
	path := publicSelf(t)
	modes(t, func(t *testing.T, plain bool) {
		p, err := Start(t.Context(), Spec{
			Path: path, Args: []string{"-"}, Dir: "/", Env: []string{helperVar + "=no-handler"}, NoPIDNamespace: plain,
			Credential: &Credential{UID: nobody, GID: nobody},
		})
		if err != nil {
			t.Fatal(err)
		}
		run{Process: p}.awaitReady(t)
		pid := p.cmd.Process.Pid
		if !plain {
			if pid, err = p.programPID(); err != nil {
				t.Error(err)
			}
		}
		if got, want := statusField(pid, "Uid"), strings.TrimSpace(strings.Repeat("65534\t", 4)); got != want {
			t.Errorf("uid of the program: got %q, want %q", got, want)
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if got, want := p.Wait(), (Status{Code: -1, Signal: "terminated"}); got != want {
			t.Errorf("status: got %+v, want %+v", got, want)
		}
		drain(p)
	})
}

// What Prepare does to its thread stays there: it is not the first one of the process, which represents
// the whole process, and it is not used again.
func TestPrepare_HasAThreadOfItsOwn(t *testing.T) {
	if os.Geteuid() != 0 || !NamespaceAvailable(t.Context(), "") {
		t.Skip("a mount namespace needs root and bubblewrap: run as root, install bubblewrap")
	}
	before, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	threads := map[int]bool{}
	for range 20 {
		p, err := StartBubblewrap(t.Context(), Bubblewrap{
			Path: bwrap, Args: namespaceArgs("/"), Command: []string{"/bin/sh", "-c", "readlink /proc/self/ns/mnt"}, Dir: "/",
			Prepare: func() error {
				threads[syscall.Gettid()] = true
				return syscall.Unshare(syscall.CLONE_NEWNS)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		p.Wait()
		drain(p)
	}
	if threads[os.Getpid()] {
		t.Error("the first thread of the process was used")
	}
	tasks, err := filepath.Glob("/proc/self/task/*/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the threads to end", func() bool {
		for _, task := range tasks {
			if now, err := os.Readlink(task); err == nil && now != before {
				return false
			}
		}
		return true
	})
}

// A Prepare that fails starts nothing and leaves nothing open.
func TestPrepare_FailureStartsNothing(t *testing.T) {
	before := openFiles(t)
	for range 20 {
		_, err := StartBubblewrap(t.Context(), Bubblewrap{
			Path: "/does/not/matter", Dir: "/", Prepare: func() error { return syscall.EUCLEAN },
		})
		if !errors.Is(err, syscall.EUCLEAN) {
			t.Fatalf("got %v, want the error of Prepare", err)
		}
	}
	if after := openFiles(t); after > before+5 {
		t.Errorf("open files: got %d after, %d before", after, before)
	}
}
