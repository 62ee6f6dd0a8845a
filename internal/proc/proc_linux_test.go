// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
)

func lockForever() { runtime.LockOSThread() }

func TestProcess_ExitCodeAndOutput(t *testing.T) {
	modes(t, func(t *testing.T, plain bool) {
		for _, code := range []int{0, 1, 137, 143} {
			p := startHelper(t, plain, "exit="+itoa(code))
			out, err := io.ReadAll(p.Stdout())
			if err != nil || string(out) != "out\n" {
				t.Errorf("stdout: got %q, %v, want out", out, err)
			}
			errs, err := io.ReadAll(p.Stderr())
			if err != nil || string(errs) != "err\n" {
				t.Errorf("stderr: got %q, %v, want err", errs, err)
			}
			for range 2 {
				if got, want := p.Wait(), (Status{Code: code}); got != want {
					t.Errorf("status: got %+v, want %+v", got, want)
				}
			}
			if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("signal after the end: got %v, want os.ErrProcessDone", err)
			}
			if err := p.Kill(); err != nil {
				t.Errorf("kill after the end: got %v, want nil", err)
			}
		}
	})
}

func TestProcess_SignalReachesTheProgram(t *testing.T) {
	cases := []struct {
		name, role string
		sig        syscall.Signal
		want       Status
	}{
		{"unhandled", "no-handler", syscall.SIGTERM, Status{Code: -1, Signal: "terminated"}},
		{"handled, exits with its own code", "handle-term", syscall.SIGTERM, Status{Code: 143}},
		{"kill", "sleep", syscall.SIGKILL, Status{Code: -1, Signal: "killed"}},
	}
	modes(t, func(t *testing.T, plain bool) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				p := startHelper(t, plain, c.role)
				p.awaitReady(t)
				if err := p.Signal(c.sig); err != nil {
					t.Fatal(err)
				}
				if got := p.Wait(); got != c.want {
					t.Errorf("status: got %+v, want %+v", got, c.want)
				}
			})
		}
	})
}

// A signal may be sent as soon as Start has returned, when bubblewrap is still setting up.
func TestProcess_SignalRightAfterStart(t *testing.T) {
	modes(t, func(t *testing.T, plain bool) {
		p := startHelper(t, plain, "sleep")
		if err := p.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if got, want := p.Wait(), (Status{Code: -1, Signal: "killed"}); got != want {
			t.Errorf("status: got %+v, want %+v", got, want)
		}
	})
}

// Row 24: a program that does not heed SIGTERM is ended by Kill.
func TestProcess_KillEndsAProgramThatIgnoresTerm(t *testing.T) {
	modes(t, func(t *testing.T, plain bool) {
		p := startHelper(t, plain, "ignore-term")
		p.awaitReady(t)
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if got, want := p.Wait(), (Status{Code: -1, Signal: "killed"}); got != want {
			t.Errorf("status: got %+v, want %+v", got, want)
		}
	})
}

// Row 27: children with groups and sessions of their own end with the program.
func TestProcess_KillEndsTheWholeTree(t *testing.T) {
	modes(t, func(t *testing.T, plain bool) {
		p := startHelper(t, plain, "family")
		p.awaitReady(t)
		if got, want := len(alive(p.marker)), 5; got < want {
			t.Fatalf("processes before the kill: got %d, want at least %d", got, want)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		p.Wait()
		if left := alive(p.marker); !plain && len(left) > 0 {
			t.Errorf("Wait returned while %v of the namespace were still there", left)
		}
		waitGone(t, p.marker, 2*time.Second)
	})
}

// A double fork loses its parent link; only a PID namespace holds it.
func TestProcess_NamespaceHoldsDoubleForks(t *testing.T) {
	if !NamespaceAvailable(t.Context(), "") {
		t.Skip("no PID namespace to be had here: install bubblewrap, or allow user namespaces")
	}
	p := startHelper(t, false, "forker")
	if got, want := p.Wait(), (Status{}); got != want {
		t.Errorf("status: got %+v, want %+v", got, want)
	}
	if left := alive(p.marker); len(left) > 0 {
		t.Errorf("still there after the program's own end: %v", left)
	}
}

// Row 26: the death of the host, even by SIGKILL, ends the tree.
func TestProcess_DeathOfTheHostEndsTheTree(t *testing.T) {
	modes(t, func(t *testing.T, plain bool) {
		mode := map[bool]string{true: "plain", false: "namespace"}[plain]
		marker := "marker-" + rand.Text()
		cmd := exec.Command(self(t), marker)
		cmd.Env = []string{helperVar + "=host=" + mode, "PATH=" + os.Getenv("PATH")}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if n, err := out.Read(make([]byte, 64)); n == 0 {
			t.Fatalf("the host did not get ready: %v, stderr %q", err, &errs)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if !plain {
			waitGone(t, marker, 2*time.Second)
			return
		}
		// Without a namespace the program itself ends; the children it had may remain, as the
		// package says, so they are only cleared away here.
		waitFor(t, "the program to end with its host", func() bool {
			for _, pid := range alive(marker) {
				if env, _ := os.ReadFile("/proc/" + itoa(pid) + "/environ"); bytes.Contains(env, []byte("=family")) {
					return false
				}
			}
			return true
		})
		for _, pid := range alive(marker) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		waitGone(t, marker, 2*time.Second)
	})
}

// The thread that called Start may go away: the program belongs to the process, not to it.
func TestProcess_OutlivesTheStartingThread(t *testing.T) {
	modes(t, func(t *testing.T, plain bool) {
		started := make(chan run)
		go func() {
			lockForever() // the thread ends together with this goroutine
			started <- startHelper(t, plain, "echo")
		}()
		p := <-started
		// Enough new threads and garbage collections that the old thread is really gone.
		for range 20 {
			runtime.GC()
		}
		if _, err := io.WriteString(p.Stdin(), "still here\n"); err != nil {
			t.Fatal(err)
		}
		_ = p.Stdin().Close()
		out, _ := io.ReadAll(p.Stdout())
		if got, want := string(out), "still here\n"; got != want {
			t.Errorf("echo: got %q, want %q", got, want)
		}
		if got, want := p.Wait(), (Status{}); got != want {
			t.Errorf("status: got %+v, want %+v", got, want)
		}
	})
}

// Row 11: writing to a program that has ended is an error and nothing worse.
func TestProcess_WriteAfterTheEndIsAnError(t *testing.T) {
	modes(t, func(t *testing.T, plain bool) {
		p := startHelper(t, plain, "exit=0")
		p.Wait()
		_, err := io.WriteString(p.Stdin(), "hello\n")
		if !errors.Is(err, ErrEnded) {
			t.Errorf("write after the end: got %v, want ErrEnded", err)
		}
	})
}

// Row 11, seen from the pipe: a reader that is gone gives EPIPE.
func TestProcess_BrokenPipeIsTyped(t *testing.T) {
	in, out, errs, ends, err := openPipes()
	if err != nil {
		t.Fatal(err)
	}
	ends.close()
	defer func() { _, _, _ = in.Close(), out.file.Close(), errs.file.Close() }()
	_, err = in.Write([]byte("x"))
	if !errors.Is(err, ErrEnded) || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write to a broken pipe: got %v, want ErrEnded and EPIPE", err)
	}
}

// Row 12: a writer that is blocked on a full pipe is freed by Close and by the program's end.
func TestProcess_BlockedWriterIsReleased(t *testing.T) {
	release := map[string]struct {
		free func(run)
		want error
	}{
		"close": {func(p run) { _ = p.Stdin().Close() }, os.ErrClosed},
		"kill":  {func(p run) { _ = p.Kill() }, ErrEnded},
	}
	modes(t, func(t *testing.T, plain bool) {
		for name, c := range release {
			t.Run(name, func(t *testing.T) {
				p := startHelper(t, plain, "sleep")
				p.awaitReady(t)
				writing, result := make(chan struct{}), make(chan error)
				go func() {
					_, _ = p.Stdin().Write(make([]byte, 4096))
					close(writing)
					_, err := p.Stdin().Write(make([]byte, 1<<20)) // more than any pipe holds
					result <- err
				}()
				<-writing
				c.free(p)
				select {
				case err := <-result:
					if !errors.Is(err, c.want) {
						t.Errorf("blocked write: got %v, want %v", err, c.want)
					}
				case <-time.After(10 * time.Second):
					t.Error("the blocked write did not return")
				}
			})
		}
	})
}

// A descendant that keeps stdout open must not keep the reader.
func TestProcess_OutputEndsWithTheProgram(t *testing.T) {
	modes(t, func(t *testing.T, plain bool) {
		p := startHelper(t, plain, "keep-stdout")
		p.Wait()
		began := time.Now()
		out, err := io.ReadAll(p.Stdout())
		if got, want := string(out), "last words\n"; got != want || err != nil {
			t.Errorf("output: got %q, %v, want %q", got, err, want)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("end of output came %s after the program's end", took)
		}
		if !plain {
			return
		}
		left := alive(p.marker)
		if len(left) != 1 {
			t.Errorf("the one detached process should be left: got %v", left)
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// A deadline that passed before the read began must not swallow what is in the pipe.
func TestProcess_LateReaderLosesNothing(t *testing.T) {
	in, out, errs, ends, err := openPipes()
	if err != nil {
		t.Fatal(err)
	}
	defer ends.close() // held open, as by a descendant
	defer func() { _, _ = in.Close(), errs.file.Close() }()
	if _, err := ends.files[1].WriteString("last words"); err != nil {
		t.Fatal(err)
	}
	if err := out.file.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	n, err := out.Read(buf)
	if got, want := string(buf[:n]), "last words"; got != want || err != nil {
		t.Errorf("late read: got %q, %v, want %q", got, err, want)
	}
	out.programEnded()
	if n, err := out.Read(buf); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after that: got %d bytes, %v, want io.EOF", n, err)
	}
}

func TestStart_ExactEnvironmentFilesAndDirectory(t *testing.T) {
	t.Setenv("PROC_TEST_SECRET", "must not be seen")
	modes(t, func(t *testing.T, plain bool) {
		dir := t.TempDir()
		p, err := Start(t.Context(), Spec{
			Path: self(t), Dir: dir, Env: []string{helperVar + "=look", noRaceSleep, "PWD=" + dir}, NoPIDNamespace: plain,
		})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(p.Stdout())
		p.Wait()
		drain(p)
		env := `["` + helperVar + `=look" "` + noRaceSleep + `" "PWD=` + dir + `"]`
		want := "env " + env + "\n"
		if !plain {
			want += "env1 " + env + " <nil>\n"
		}
		want += "fd 0\nfd 1\nfd 2\ndir " + dir + "\n"
		if diff := cmp.Diff(want, string(out)); diff != "" {
			t.Errorf("seen by the program (-want +got):\n%s", diff)
		}
	})
}

func TestStart_PassesFilesAndKnowsThePID(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spec := Spec{Path: "/bin/sh", Args: []string{"-c", "echo $$; cat <&3"}, NoPIDNamespace: true, Files: []*os.File{r}}
	p, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, "for you")
	_ = w.Close()
	out, _ := io.ReadAll(p.Stdout())
	p.Wait()
	drain(p)
	if got, want := string(out), fmt.Sprintf("%d\nfor you", p.PID()); got != want {
		t.Errorf("the program printed %q, want %q", got, want)
	}
	spec.NoPIDNamespace = false
	if _, err := Start(t.Context(), spec); err == nil || !strings.Contains(advice.Text(err), "\n  next: ") {
		t.Errorf("files for a namespace: got %v, want an error that says what to do", err)
	}
}

func TestStart_Errors(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(bad, []byte("#!/bin/sh\necho no namespaces today >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(canceled, Spec{Path: self(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled start: got %v, want context.Canceled", err)
	}
	_, err := Start(t.Context(), Spec{Path: "/does/not/exist", NoPIDNamespace: true})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing program: got %v, want os.ErrNotExist", err)
	}
	_, err = startInNamespace(t.Context(), Spec{Path: self(t), Dir: "/"}, bad)
	if err == nil || !strings.Contains(advice.Text(err), "no namespaces today") {
		t.Errorf("failing bubblewrap: got %v, want its own words", err)
	}
}

// A bubblewrap that does not work here means the plain way, not a failure.
func TestStart_BrokenBubblewrapFallsBack(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(bad, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), Spec{Path: self(t), Env: []string{helperVar + "=exit=3", noRaceSleep}, BwrapPath: bad})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Wait(), (Status{Code: 3}); got != want || p.Namespaced() {
		t.Errorf("got %+v, namespaced %v, want %+v without a namespace", got, p.Namespaced(), want)
	}
	drain(p)
}

func TestStart_ManyAtOnceLeaveNothing(t *testing.T) {
	modes(t, func(t *testing.T, plain bool) {
		before := openFiles(t)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				p := startHelper(t, plain, "exit="+itoa(i))
				if got, want := p.Wait(), (Status{Code: i}); got != want {
					t.Errorf("status: got %+v, want %+v", got, want)
				}
				drain(p.Process)
			})
		}
		wg.Wait()
		// The poller and the like may open a file of their own on first use; fifty programs
		// that leaked would show as fifty.
		if after := openFiles(t); after > before+5 {
			t.Errorf("open files: got %d after, %d before", after, before)
		}
		if z := zombies(); len(z) > 0 {
			t.Errorf("zombies left: %v", z)
		}
	})
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// zombies returns our own children that ended without being reaped.
func zombies() []int {
	var found []int
	for _, pid := range allPIDs() {
		if ppid, _ := parentOf(pid); ppid == os.Getpid() && strings.HasPrefix(statusField(pid, "State"), "Z") {
			found = append(found, pid)
		}
	}
	return found
}
