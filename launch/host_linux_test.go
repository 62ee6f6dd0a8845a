// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/advice"
)

// spawnShell starts a shell script as if it were an agent.
func spawnShell(t *testing.T, h HostSpawner, script string, env ...string) Process {
	t.Helper()
	p, err := h.Spawn(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		p.Wait()
		_, _ = io.Copy(io.Discard, p.Stdout())
		_, _ = io.Copy(io.Discard, p.Stderr())
		_ = p.Stdin().Close()
	})
	return p
}

func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	buf := make([]byte, 256)
	n, err := r.Read(buf)
	if n == 0 {
		t.Fatalf("nothing to read: %v", err)
	}
	return strings.TrimSpace(string(buf[:n]))
}

func eachSpawner(t *testing.T, f func(t *testing.T, h HostSpawner)) {
	t.Run("zero value", func(t *testing.T) { f(t, HostSpawner{}) })
	t.Run("no namespace", func(t *testing.T) { f(t, HostSpawner{NoPIDNamespace: true}) })
}

func TestHostSpawner_PipesAndStatus(t *testing.T) {
	eachSpawner(t, func(t *testing.T, h HostSpawner) {
		p := spawnShell(t, h, `read line; echo "got $line $A"; echo problem >&2; exit 7`, "A=b")
		if _, err := io.WriteString(p.Stdin(), "hello\n"); err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(p.Stdout())
		errs, _ := io.ReadAll(p.Stderr())
		if got, want := string(out)+string(errs), "got hello b\nproblem\n"; got != want {
			t.Errorf("output: got %q, want %q", got, want)
		}
		if got, want := p.Wait(), (ExitStatus{Code: 7}); got != want {
			t.Errorf("status: got %v, want %v", got, want)
		}
		if _, err := io.WriteString(p.Stdin(), "more\n"); !errors.Is(err, ErrProcessEnded) {
			t.Errorf("write after the end: got %v, want ErrProcessEnded", err)
		}
	})
}

func TestHostSpawner_SignalAndKill(t *testing.T) {
	eachSpawner(t, func(t *testing.T, h HostSpawner) {
		p := spawnShell(t, h, `trap 'exit 143' TERM; echo ready; while :; do read line || sleep 0.01; done`)
		readLine(t, p.Stdout())
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = p.Stdin().Close()
		if got, want := p.Wait(), (ExitStatus{Code: 143}); got != want {
			t.Errorf("handled signal: got %v, want %v", got, want)
		}
		p = spawnShell(t, h, `echo ready; read line`)
		readLine(t, p.Stdout())
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if got, want := p.Wait(), (ExitStatus{Code: -1, Signal: "killed"}); got != want {
			t.Errorf("kill: got %v, want %v", got, want)
		}
	})
}

func TestHostSpawner_StartsAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		if _, err := (HostSpawner{User: "root"}).Spawn(t.Context(), Command{Path: "/bin/sh"}); !errors.Is(err, os.ErrPermission) {
			t.Errorf("another user without root: got %v, want os.ErrPermission", err)
		}
		return
	}
	for _, name := range []string{"nobody", "65534"} {
		h := HostSpawner{User: name}
		p, err := h.Spawn(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", "id -u"}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(p.Stdout())
		_, _ = io.Copy(io.Discard, p.Stderr())
		p.Wait()
		if got, want := string(out), "65534\n"; got != want {
			t.Errorf("uid as %s: got %q, want %q", name, got, want)
		}
	}
}

func TestHostSpawner_UserWithoutAccessIsAnError(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changing the user needs root: run the tests as root")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := HostSpawner{User: "nobody"}.Spawn(t.Context(), Command{Path: "/bin/sh", Dir: dir})
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(advice.Text(err), "let user nobody enter") || !strings.Contains(advice.Text(err), dir) {
		t.Errorf("got %v, want an Error that says what user nobody may not do", err)
	}
}

func TestHostSpawner_Errors(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	garbage := filepath.Join(dir, "garbage")
	if err := errors.Join(os.WriteFile(plain, []byte("x"), 0o644), os.WriteFile(garbage, []byte("\x7fELF but not really"), 0o755)); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name  string
		ctx   context.Context
		spawn HostSpawner
		cmd   Command
		want  error
		text  string
	}{
		{"missing program", t.Context(), HostSpawner{}, Command{Path: filepath.Join(dir, "none")}, ErrNotFound, "correct the path"},
		{"not executable", t.Context(), HostSpawner{}, Command{Path: plain}, ErrNotExecutable, "chmod +x"},
		{"row 56: missing directory", t.Context(), HostSpawner{}, Command{Path: "/bin/sh", Dir: filepath.Join(dir, "gone")}, ErrWorkingDir, "create the directory"},
		{"directory is a file", t.Context(), HostSpawner{}, Command{Path: "/bin/sh", Dir: plain}, ErrWorkingDir, "name a directory"},
		{"not a program", t.Context(), HostSpawner{NoPIDNamespace: true}, Command{Path: garbage}, syscall.ENOEXEC, "--version"},
		{"unknown user", t.Context(), HostSpawner{User: "no such user"}, Command{Path: "/bin/sh"}, nil, "create the user"},
		{"canceled", canceled, HostSpawner{}, Command{Path: "/bin/sh"}, context.Canceled, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.spawn.Spawn(c.ctx, c.cmd)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			var failed *Error
			if c.text != "" && (!errors.As(err, &failed) || !strings.Contains(failed.Hint, c.text)) {
				t.Errorf("advice: got %v, want an Error with %q", err, c.text)
			}
		})
	}
}
