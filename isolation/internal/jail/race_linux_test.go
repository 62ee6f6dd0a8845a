// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

func init() { roles["exchange"] = exchange }

// exchange exchanges two names until it is killed, now at once and now after a while: a start takes some
// milliseconds, and each part of it is to be met.
func exchange() {
	fmt.Println("ready")
	for n := 0; ; n++ {
		_ = unix.Renameat2(unix.AT_FDCWD, os.Args[1], unix.AT_FDCWD, os.Args[2], unix.RENAME_EXCHANGE)
		time.Sleep(time.Duration(n%11) * time.Millisecond)
	}
}

// A raceGround is a workspace with a folder docs/inner, a link to a private folder of the host that has an
// inner too, and a cell that can exchange the two.
type raceGround struct{ work, host string }

func newRaceGround(t *testing.T) raceGround {
	t.Helper()
	top := tree(t, map[string]string{"work/docs/inner/file": "harmless", "host/inner/file": "secret"})
	g := raceGround{filepath.Join(top, "work"), filepath.Join(top, "host")}
	if err := os.Symlink(g.host, filepath.Join(g.work, "link")); err != nil {
		t.Fatal(err)
	}
	return g
}

// spec reads from a mount below the workspace, and writes into it if that is writable.
func (g raceGround) spec(writable bool) jail.Spec {
	s := shellSpec("cat docs/inner/file " + g.inside() + "/file; echo x > " + g.inside() + "/made")
	s.Dir = g.work
	s.Mounts = []jail.Mount{
		{Source: g.work, Writable: true},
		{Source: filepath.Join(g.work, "docs", "inner"), Target: g.inside(), Writable: writable},
	}
	return s
}

func (g raceGround) inside() string { return "/opt/inner" }

// check reports what came of one start: an error, or what the program printed.
func (g raceGround) check(t *testing.T, printed string) {
	t.Helper()
	if strings.Contains(printed, "secret") {
		t.Errorf("a folder of the host was shown: %q", printed)
	}
	if _, err := os.Stat(filepath.Join(g.host, "inner", "made")); err == nil {
		t.Error("a folder of the host was written")
	}
}

// tries is how many starts get beyond the look at their mounts in each test.
const tries = 15

// race starts cells while an agent exchanges the folder and the link, and returns what their programs printed. A
// start that finds the link costs nothing and does not count.
func (g raceGround) race(t *testing.T, spec func(n int) jail.Spec) (printed []string) {
	t.Helper()
	agent := roleSpec(t, "exchange", "docs", "link")
	agent.Dir, agent.Mounts = g.work, append(agent.Mounts, jail.Mount{Source: g.work, Writable: true})
	startCell(t, agent).awaitLine(t, "ready")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for n := 0; (n < tries || len(printed) == 0) && ctx.Err() == nil; {
		cell, err := jail.Start(ctx, spec(n))
		if errors.Is(err, unix.ELOOP) {
			continue
		}
		n++
		if err != nil { // which is how a difference ends
			t.Log(err)
			continue
		}
		_ = cell.Stdin().Close()
		out, _ := io.ReadAll(cell.Stdout())
		_, _ = io.Copy(io.Discard, cell.Stderr())
		cell.Wait()
		printed = append(printed, string(out))
	}
	if len(printed) == 0 {
		t.Error("no cell was started, so that nothing was tried")
	}
	t.Logf("%d cells were started", len(printed))
	return printed
}

// An agent exchanges a folder for a link while other cells mount what is below it, to read and to write it.
func TestMounts_ExchangedFolderNeverShowsTheHost(t *testing.T) {
	requireCells(t)
	g := newRaceGround(t)
	for _, printed := range g.race(t, func(n int) jail.Spec { return g.spec(n%2 == 0) }) {
		g.check(t, printed)
	}
}

// The mount point and the working directory are below the exchanged folder too.
func TestMounts_ExchangedMountPointIsNeverAnother(t *testing.T) {
	requireCells(t)
	g := newRaceGround(t)
	inner := filepath.Join(g.work, "docs", "inner")
	s := shellSpec("cat file; touch made 2>/dev/null && echo made")
	s.Dir, s.Mounts = inner, []jail.Mount{{Source: g.work, Writable: true}, {Source: inner}}
	for _, printed := range g.race(t, func(int) jail.Spec { return s }) {
		if printed != "harmless" {
			t.Errorf("got %q, want the folder, read-only", printed)
		}
	}
}

// Whether bubblewrap has --bind-fd is tried. Where it has not, a folder that is exchanged after it was checked
// ends the start; where it has, the folder that was checked is mounted.
func TestMounts_WithoutBindFDADifferenceEndsTheStart(t *testing.T) {
	requireCells(t)
	if os.Geteuid() == 0 {
		t.Skip("root makes the mounts without bubblewrap; TestJail_AsOrdinaryUser runs this")
	}
	for _, byHandle := range []bool{false, true} {
		t.Run(fmt.Sprintf("by handle %v", byHandle), func(t *testing.T) {
			bwrap := newShim(t)
			if !byHandle {
				bwrap.set(t, shimOld, "")
			}
			if got := jail.MountsByHandle(t.Context(), string(bwrap)); got != byHandle {
				t.Fatalf("mounts by handle: got %v, want %v", got, byHandle)
			}
			g := newRaceGround(t)
			s := g.spec(false)
			s.Bwrap = string(bwrap)
			if got := output(t, s); !strings.HasPrefix(got, "harmlessharmless") {
				t.Errorf("without an exchange: got %q", got)
			}
			names := filepath.Join(g.work, "docs") + "\n" + filepath.Join(g.work, "link")
			bwrap.set(t, shimExchange, names)
			cell, err := jail.Start(t.Context(), s)
			if !byHandle {
				if err == nil || !strings.Contains(advice.Text(err), "another file than was checked is mounted at "+g.inside()) {
					t.Errorf("got %v, want an error that names the mount", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = cell.Stdin().Close()
			printed, _ := io.ReadAll(cell.Stdout())
			_, _ = io.Copy(io.Discard, cell.Stderr())
			cell.Wait()
			g.check(t, string(printed))
			if string(printed) != "harmless" { // docs is a link out now, which leads nowhere inside
				t.Errorf("got %q, want the folder that was checked", printed)
			}
		})
	}
}

// Neither the program nor the first process has a handle of the host's folders.
func TestMounts_HandlesStayOutside(t *testing.T) {
	requireCells(t)
	dir := t.TempDir()
	s := shellSpec("ls -l /proc/1/fd /proc/self/fd")
	s.Mounts = []jail.Mount{{Source: dir, Target: "/work", Writable: true}}
	if got := output(t, s); strings.Contains(got, dir) || strings.Contains(got, "/work") || strings.Contains(got, "mnt:") {
		t.Errorf("a handle is open inside:\n%s", got)
	}
}
