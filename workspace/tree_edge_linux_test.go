// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

func write(t testing.TB, p, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantContent(t testing.TB, p, want string) {
	t.Helper()
	if got, err := os.ReadFile(p); err != nil || string(got) != want {
		t.Fatalf("%s has %q (%v), want %q", filepath.Base(p), got, err, want)
	}
}

// Two contents of the same size, written within one tick of the clock, with the time set back.
func TestCheckpoint_SeesWritesWithinOneTick(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir := t.TempDir()
		p := filepath.Join(dir, "f")
		write(t, p, "0000")
		stamp := time.Unix(1_000_000_000, 123_456_789)
		tree := openTree(t, dir, opts)
		for i := range testkit.Size(60, 2000) {
			first := fmt.Sprintf("a%03d", i%1000)
			write(t, p, first)
			c := checkpoint(t, tree)
			write(t, p, fmt.Sprintf("b%03d", i%1000))
			if i%2 == 0 {
				if err := os.Chtimes(p, stamp, stamp); err != nil {
					t.Fatal(err)
				}
			}
			rollback(t, tree, c, nil)
			wantContent(t, p, first)
			c.Release()
		}
	})
}

func TestCheckpoint_SeesAWriteWithItsTimeSetBack(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir := t.TempDir()
		p := filepath.Join(dir, "f")
		write(t, p, "before")
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		tree := openTree(t, dir, opts)
		time.Sleep(25 * time.Millisecond) // the file is not looked at for being new
		c := checkpoint(t, tree)
		want := snapshot(t, dir)
		write(t, p, "behind")
		if err := os.Chtimes(p, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		rollback(t, tree, c, nil)
		wantSnapshot(t, dir, want)
	})
}

// A second name outside of the tree is a way to write to a file that its folder does not report.
func TestCheckpoint_SeesAWriteThroughAHardLinkOutside(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "name")
		p := filepath.Join(dir, "f")
		write(t, p, "before")
		tree := openTree(t, dir, opts)
		time.Sleep(25 * time.Millisecond)
		c := checkpoint(t, tree)
		if err := os.Link(p, outside); err != nil {
			t.Fatal(err)
		}
		checkpoint(t, tree).Release()
		write(t, outside, "behind")
		rollback(t, tree, c, nil)
		wantContent(t, p, "before")
	})
}

func TestCheckpoint_WatcherOverflowLosesNothing(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, seedScript)
	tree := openTree(t, dir, nil)
	c := checkpoint(t, tree)
	want := snapshot(t, dir)
	full := tree.Usage().FullChecks
	a, b := filepath.Join(dir, "one"), filepath.Join(dir, "a/one")
	for range 5_000 { // four events each
		if err := errors.Join(os.Rename(a, b), os.Rename(b, a)); err != nil {
			t.Fatal(err)
		}
	}
	shell(t, dir, "mkdir -p late/r; echo 1 > late/r/f; rm a/b/bin; echo 2 > a/b/c/x")
	rollback(t, tree, c, nil)
	wantSnapshot(t, dir, want)
	if u := tree.Usage(); u.FullChecks == full || !u.Watching {
		t.Errorf("%d full checks before and %d after, watching: %v (%s)", full, u.FullChecks, u.Watching, u.WatchProblem)
	}
	fast := tree.Usage().FastChecks
	shell(t, dir, "echo 3 > a/b/c/x; mkdir late; echo 4 > late/f")
	rollback(t, tree, c, nil)
	wantSnapshot(t, dir, want)
	if tree.Usage().FastChecks == fast {
		t.Error("after the overflow the watcher is of no use any more")
	}
}

func TestCheckpoint_WithoutWatchesReadsEverything(t *testing.T) {
	for _, limit := range []int{1, 2, 5, 9} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			dir := t.TempDir()
			shell(t, dir, "mkdir a; echo 1 > a/f; echo 2 > g")
			tree := openTree(t, dir, nil)
			tree.watchOptions.MaxWatches = limit
			c := checkpoint(t, tree)
			want := snapshot(t, dir)
			shell(t, dir, "mkdir -p n/e/w; echo 1 > n/e/w/f; echo 2 > a/f; rm g; for i in 1 2 3 4 5 6; do mkdir n/$i; echo $i > n/$i/f; done")
			checkpoint(t, tree)
			if u := tree.Usage(); u.Watching || !strings.Contains(u.WatchProblem, "MaxWatches") {
				t.Errorf("watching: %v, %q", u.Watching, u.WatchProblem)
			}
			rollback(t, tree, c, nil)
			wantSnapshot(t, dir, want)
		})
	}
}

func TestRollback_SparseFileStaysSparse(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "sparse")
	f, err := os.Create(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int64(testkit.Size(256<<20, 1<<30))
	if err := errors.Join(f.Truncate(size), writeAt(f, "middle", size/2)); err != nil {
		t.Fatal(err)
	}
	tree := openTree(t, dir, nil)
	c := checkpoint(t, tree)
	if disk := tree.Usage().Disk; disk > 1<<20 {
		t.Errorf("the store takes %d bytes for a file with 6", disk)
	}
	if err := errors.Join(writeAt(f, "end", size-3), f.Close()); err != nil {
		t.Fatal(err)
	}
	rollback(t, tree, c, nil)
	info, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := allocated(info); info.Size() != size || got > 1<<20 {
		t.Errorf("the file has %d bytes and takes %d", info.Size(), got)
	}
	end := make([]byte, 3)
	if f, err = os.Open(p); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.ReadAt(end, size-3); err != nil || string(end) != "\x00\x00\x00" {
		t.Errorf("the end is %q, %v", end, err)
	}
}

func writeAt(f *os.File, text string, at int64) error {
	_, err := f.WriteAt([]byte(text), at)
	return err
}

func TestRollback_RestoresExtendedAttributes(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir := t.TempDir()
		shell(t, dir, "mkdir d; echo 1 > f; echo 2 > g")
		set := func(p, name, value string) {
			t.Helper()
			if err := unix.Lsetxattr(filepath.Join(dir, p), name, []byte(value), 0); err != nil {
				t.Fatal(err)
			}
		}
		set("f", "user.a", "1")
		set("d", "user.d", "\x00\xff")
		tree := openTree(t, dir, opts)
		c := checkpoint(t, tree)
		want := snapshot(t, dir)
		set("f", "user.a", "2")
		set("g", "user.new", "3")
		if err := unix.Lremovexattr(filepath.Join(dir, "d"), "user.d"); err != nil {
			t.Fatal(err)
		}
		rollback(t, tree, c, nil)
		wantSnapshot(t, dir, want)
	})
}

func TestRollback_RemovedSocketIsAConflict(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir, err := os.MkdirTemp("", "drover-s-") // the path of a socket is short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		listen := func(name string) net.Listener {
			t.Helper()
			l, err := net.Listen("unix", filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		old := listen("old")
		write(t, filepath.Join(dir, "f"), "before")
		tree := openTree(t, dir, opts)
		c := checkpoint(t, tree)
		_ = old.Close() // removes it
		defer listen("new").Close()
		write(t, filepath.Join(dir, "f"), "after")
		rolled, err := tree.Rollback(context.Background(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := []Conflict{{Path: "old", Reason: "a socket cannot be made again"}}
		if diff := cmp.Diff(want, rolled.Conflicts); diff != "" {
			t.Errorf("conflicts (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"f", "new"}, rolled.Restored); diff != "" {
			t.Errorf("restored (-want +got):\n%s", diff)
		}
		wantContent(t, filepath.Join(dir, "f"), "before")
		if _, err := os.Lstat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the new socket: %v", err)
		}
	})
}

func TestTree_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^Test(Rollback_(RestoresEveryKindOfEdit|RandomEditsAreUndoneExactly|RestoresExtendedAttributes)|Tree_FilesWithoutPermissions)$")
}

func TestTree_FilesWithoutPermissions(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir := t.TempDir()
		shell(t, dir, "echo 1 > f; mkdir -p d/e; echo 2 > d/e/g; chmod 000 f d/e")
		tree := openTree(t, dir, opts)
		c := checkpoint(t, tree)
		shell(t, dir, "chmod 600 f; echo 3 > f; chmod 000 f; chmod 700 d/e; rm d/e/g; echo 4 > d/e/h; chmod 000 d/e; echo 5 > new; chmod 000 new; mkdir n; echo 6 > n/f; chmod 000 n")
		rolled := rollback(t, tree, c, nil)
		if diff := cmp.Diff([]string{"d/e/g", "d/e/h", "f", "n", "n/f", "new"}, rolled.Restored); diff != "" {
			t.Errorf("restored (-want +got):\n%s", diff)
		}
		shell(t, dir, `test "$(stat -c %a f d/e | tr '\n' ' ')" = "0 0 "; chmod 700 f d/e; test "$(cat f)" = 1; test "$(cat d/e/g)" = 2; test ! -e d/e/h; test ! -e new; test ! -e n`)
	})
}

func TestTree_ConcurrentUse(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	tree := openTree(t, dir, nil)
	defer tree.Close()
	var wg sync.WaitGroup
	for i := range 6 {
		mine := fmt.Sprintf("d%d", i)
		write(t, filepath.Join(dir, mine, "f"), mine)
		wg.Go(func() {
			for n := range testkit.Size(15, 200) {
				c := checkpoint(t, tree)
				write(t, filepath.Join(dir, mine, "f"), fmt.Sprint(n))
				write(t, filepath.Join(dir, mine, "new"), fmt.Sprint(n))
				rolled := rollback(t, tree, c, &RollbackOptions{Only: []string{mine}})
				if want := []string{mine + "/f", mine + "/new"}; !slices.Equal(rolled.Restored, want) {
					t.Errorf("restored %v, want %v", rolled.Restored, want)
				}
				wantContent(t, filepath.Join(dir, mine, "f"), mine)
				c.Release()
				_ = tree.Usage()
			}
		})
	}
	wg.Wait()
	if u := tree.Usage(); u.Checkpoints != 0 || u.Files != 12 {
		t.Errorf("%d checkpoints and %d files, want 0 and 12", u.Checkpoints, u.Files)
	}
}
