// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

// roleVariable makes the test binary play one of the roles instead of running tests: the programs
// that try the isolation from inside, and a host that is killed.
const roleVariable = "JAIL_TEST_ROLE"

var roles = map[string]func(){}

func TestMain(m *testing.M) {
	if isShim() {
		runShim()
	}
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		role()
		os.Exit(0)
	}
	claudetest.Main(m)
}

// Everything that can differ is tried again as an ordinary user.
func TestJail_AsOrdinaryUser(t *testing.T) {
	requireCells(t)
	testkit.RerunAsUser(t, claudetest.CLI(t).Path,
		"^Test(CLI|Cell|Handoff|Helper|Kill|Limits|Mounts)_")
}

func requireCells(t testing.TB) {
	t.Helper()
	err := jail.Supported(t.Context(), "")
	if err == nil {
		return
	}
	if proc.NamespaceAvailable(t.Context(), "") {
		t.Fatalf("bubblewrap works here, but there is %v", err)
	}
	t.Skipf("%v", err)
}

// roleSpec runs a role of this binary in a cell.
func roleSpec(t testing.TB, role string, args ...string) jail.Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		t.Fatal(err)
	}
	return jail.Spec{
		Path: "/opt/role", Args: args, Env: []string{"PATH=/usr/bin:/bin", roleVariable + "=" + role, "GORACE=atexit_sleep_ms=0"},
		Mounts: []jail.Mount{{Source: self, Target: "/opt/role"}},
	}
}

// shellSpec runs a line of shell in a cell.
func shellSpec(line string) jail.Spec {
	return jail.Spec{Path: "/bin/sh", Args: []string{"-c", line}, Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/agent"}}
}

// A running cell of a test, which is ended with it.
type running struct{ *jail.Cell }

func startCell(t testing.TB, s jail.Spec) running {
	t.Helper()
	cell, err := jail.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cell.Kill()
		cell.Wait()
		_, _ = io.Copy(io.Discard, cell.Stdout())
		_, _ = io.Copy(io.Discard, cell.Stderr())
		for _, l := range cell.Listeners() {
			_ = l.Close()
		}
	})
	return running{cell}
}

// output runs a cell to its end and returns what it wrote, both outputs together.
func output(t testing.TB, s jail.Spec) string {
	t.Helper()
	cell := startCell(t, s)
	_ = cell.Stdin().Close()
	out, _ := io.ReadAll(cell.Stdout())
	errs, _ := io.ReadAll(cell.Stderr())
	cell.Wait()
	return strings.TrimSpace(string(out) + string(errs))
}

// awaitLine reads a line that the cell must write.
func (r running) awaitLine(t *testing.T, want string) {
	t.Helper()
	var line []byte
	for b := make([]byte, 1); ; line = append(line, b[0]) {
		if n, err := r.Stdout().Read(b); n == 0 || b[0] == '\n' {
			if string(line) != want {
				errs, _ := io.ReadAll(r.Stderr())
				t.Fatalf("got line %q, %v, want %q; stderr %s", line, err, want, errs)
			}
			return
		}
	}
}

func ownerOf(t *testing.T, path string) [2]uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return [2]uint32{st.Uid, st.Gid}
}

// checkOwner checks that a path belongs to whom the other belongs to.
func checkOwner(t *testing.T, path, like string) {
	t.Helper()
	if got, want := ownerOf(t, path), ownerOf(t, like); got != want {
		t.Errorf("owner of %s: got %v, want %v as of %s", path, got, want, like)
	}
}

// alive are the processes of the host whose command line holds the marker.
func alive(marker string) []int {
	var pids []int
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(marker)) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitUntil polls, but not for long.
func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: not within 10 s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
