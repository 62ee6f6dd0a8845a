// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
)

// Folders come, go and become files while checkpoints are taken. Each checkpoint is a tree that could
// have been: nothing is in what is no folder, and all of them can be rolled back to.
func TestCheckpoint_OfAChangingTreeIsConsistent(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "calm"), "calm")
		tree := openTree(t, dir, opts)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				for n := 0; !stop.Load(); n++ {
					p := filepath.Join(dir, fmt.Sprintf("d%d", (n+i)%6))
					switch n % 4 {
					case 0, 1:
						_ = os.MkdirAll(filepath.Join(p, "e"), 0o755)
						for k := range 30 {
							_ = os.WriteFile(filepath.Join(p, "e", fmt.Sprint(k)), []byte(fmt.Sprint(n)), 0o644)
						}
					case 2:
						_ = os.RemoveAll(p)
						_ = os.WriteFile(p, []byte("file"), 0o644)
					case 3:
						_ = os.RemoveAll(p)
						_ = os.Symlink("e", p)
					}
				}
			})
		}
		var taken []*Checkpoint
		for range testkit.Size(60, 1000) {
			c := checkpoint(t, tree)
			wantATree(t, c)
			if taken = append(taken, c); len(taken) > 20 {
				taken[0].Release()
				taken = taken[1:]
			}
		}
		stop.Store(true)
		wg.Wait()
		for _, c := range taken {
			rollback(t, tree, c, nil)
		}
	})
}

// A folder was gone when it was looked at, and there again when something in it was.
func TestCheckpoint_ReadsAgainIfAMissingFolderHasEntries(t *testing.T) {
	for _, order := range [][]string{{"d", "d/f"}, {"d/f", "d"}} {
		t.Run(strings.Join(order, " before "), func(t *testing.T) {
			dir := t.TempDir()
			tree := openTree(t, dir, &TreeOptions{NoWatch: true})
			empty := checkpoint(t, tree)
			write(t, filepath.Join(dir, "d/f"), "f")
			file := (&refresh{tree: tree}).look(t.Context(), "d/f", byContent)
			if err := os.RemoveAll(filepath.Join(dir, "d")); err != nil {
				t.Fatal(err)
			}
			looked := map[string]found{"d": (&refresh{tree: tree}).look(t.Context(), "d", byStamp), "d/f": file}
			r := &refresh{tree: tree, scanned: map[string]inode{}, unsettled: map[string]bool{}}
			next, err := r.learnAll([]found{looked[order[0]], looked[order[1]]})
			for err == nil && len(next) > 0 {
				next, err = r.round(context.Background(), next)
			}
			if err != nil {
				t.Fatal(err)
			}
			c := &Checkpoint{tree: tree, id: tree.history.take()}
			wantATree(t, c)
			rollback(t, tree, empty, nil)
			rollback(t, tree, c, nil)
		})
	}
}

// wantATree fails if something of a checkpoint is in what is no folder.
func wantATree(t *testing.T, c *Checkpoint) {
	t.Helper()
	files, err := c.Files()
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]bool{".": true}
	for _, f := range files {
		if !folders[filepath.Dir(f.Path)] {
			t.Fatalf("%s is in what is no folder", f.Path)
		}
		folders[f.Path] = f.Mode.IsDir()
	}
}

// A tree whose folder was moved away or replaced is not silently looked at where it went.
func TestTree_MovedOrReplacedFolderIsAnError(t *testing.T) {
	for _, how := range []string{"mv tree other", "mv tree other; mkdir tree", "rm -r tree"} {
		t.Run(how, func(t *testing.T) {
			scratch := t.TempDir()
			dir := filepath.Join(scratch, "tree")
			write(t, filepath.Join(dir, "f"), "before")
			tree := openTree(t, dir, nil)
			c := checkpoint(t, tree)
			write(t, filepath.Join(dir, "f"), "after")
			shell(t, scratch, how)
			if _, err := tree.Rollback(context.Background(), c, nil); err == nil || !strings.Contains(advice.Text(err), dir) {
				t.Errorf("rollback: %v", err)
			}
			if _, err := tree.Checkpoint(context.Background()); err == nil || !strings.Contains(advice.Text(err), dir) {
				t.Errorf("checkpoint: %v", err)
			}
			if how == "rm -r tree" {
				return
			}
			shell(t, scratch, "rm -rf tree; mv other tree")
			rollback(t, tree, c, nil)
			wantContent(t, filepath.Join(dir, "f"), "before")
		})
	}
}

// An immutable file can be neither moved nor written; the rollback says so, and does the rest.
func TestRollback_ImmutableFileIsAConflict(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir := t.TempDir()
		shell(t, dir, "mkdir d; echo before > d/fixed; echo before > d/f")
		tree := openTree(t, dir, opts)
		c := checkpoint(t, tree)
		shell(t, dir, "echo after > d/fixed; echo after > d/f; echo new > d/new; mkdir -p n/m; echo 1 > n/m/f")
		for _, p := range []string{"d/fixed", "d/new", "n/m"} {
			setImmutable(t, filepath.Join(dir, p), true)
		}
		rolled, err := tree.Rollback(context.Background(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		reported := map[string]bool{}
		for _, c := range rolled.Conflicts {
			reported[c.Path] = true
		}
		for _, p := range []string{"d/fixed", "d/new"} {
			if !reported[p] {
				t.Errorf("%s is not among the conflicts: %+v", p, rolled.Conflicts)
			}
		}
		wantContent(t, filepath.Join(dir, "d/f"), "before\n")
		wantContent(t, filepath.Join(dir, "d/fixed"), "after\n")
		for _, p := range []string{filepath.Join(dir, "d/fixed"), filepath.Join(dir, "d/new"), filepath.Join(dir, "n/m"), filepath.Join(rolled.Aside, "n/m")} {
			if _, err := os.Lstat(p); err == nil {
				setImmutable(t, p, false)
			}
		}
		rollback(t, tree, c, nil)
		wantContent(t, filepath.Join(dir, "d/fixed"), "before\n")
	})
}

func setImmutable(t *testing.T, p string, on bool) {
	t.Helper()
	fd, err := unix.Open(p, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		t.Skip("the file system has no such flag: ", err)
	}
	const immutable = 0x10
	if flags &^= immutable; on {
		flags |= immutable
	}
	if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags); err != nil {
		t.Skip("this user may not set the flag: ", err)
	}
	if on {
		t.Cleanup(func() {
			if fd, err := unix.Open(p, unix.O_RDONLY, 0); err == nil {
				_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags&^immutable)
				_ = unix.Close(fd)
			}
		})
	}
}

func TestTree_DeepFoldersAndLongNames(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Repeat("n", 255)
		for range testkit.Size(60, 500) {
			next := root.Mkdir(name, 0o755)
			if next != nil {
				t.Fatal(next)
			}
			if err := root.WriteFile("f", []byte("before"), 0o644); err != nil {
				t.Fatal(err)
			}
			below, err := root.OpenRoot(name)
			_ = root.Close()
			if err != nil {
				t.Fatal(err)
			}
			root = below
		}
		defer root.Close()
		began := time.Now()
		tree := openTree(t, dir, opts)
		c := checkpoint(t, tree)
		if err := errors.Join(root.WriteFile("new", []byte("new"), 0o644), root.Mkdir(name, 0o755), root.WriteFile(name+"/f", nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		rollback(t, tree, c, nil)
		if _, err := root.Stat("new"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the new file: %v", err)
		}
		shell(t, dir, "mv n* moved; echo x > moved/f")
		rollback(t, tree, c, nil)
		t.Log(time.Since(began), tree.Usage().WatchProblem)
	})
}

func TestRollback_RefusesPathsOutsideTheTree(t *testing.T) {
	for _, p := range []string{"", "..", "../x", "a/../..", "/etc", "/"} {
		t.Run(p, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "f"), "before")
			tree := openTree(t, dir, nil)
			c := checkpoint(t, tree)
			write(t, filepath.Join(dir, "f"), "after")
			rolled, err := tree.Rollback(context.Background(), c, &RollbackOptions{Only: []string{p}})
			if err == nil {
				t.Errorf("Only %q is taken: %+v", p, rolled)
			}
			wantContent(t, filepath.Join(dir, "f"), "after")
		})
	}
}

// A conflict's other side stays, also if the tree is closed and opened again.
func TestRollback_ConflictSideOutlastsTheProgram(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "f"), "before")
	tree, err := OpenTree(dir, &TreeOptions{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	side := filepath.Join(store, "work/aside/1/f")
	write(t, side, strings.Repeat("x", 9000))
	tree.store.keepAside(filepath.Dir(side), true)
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	if tree, err = OpenTree(dir, &TreeOptions{Store: store, MaxDisk: 8192}); err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	checkpoint(t, tree)
	if _, err := os.Lstat(side); err != nil {
		t.Error(err)
	}
}

// A rollback that was cut short and cannot be finished now: what it took out of the tree is not removed.
func TestOpenTree_FailedRecoveryLosesNothing(t *testing.T) {
	dir, opts := t.TempDir(), &TreeOptions{TempDir: t.TempDir()}
	tree, err := OpenTree(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	store := tree.store.dir
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	side := filepath.Join(store, "work/aside/1/f")
	write(t, side, "precious")
	write(t, filepath.Join(store, "work/journal"), "of a later version")
	if err := os.Chmod(store, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if tree, err = OpenTree(dir, opts); err == nil {
			_ = tree.Close()
			t.Fatal("it was opened")
		}
		if !strings.Contains(advice.Text(err), filepath.Join(store, "work")) {
			t.Errorf("the error does not say where the files are: %v", err)
		}
		wantContent(t, side, "precious")
	}
}

// The time of a folder that is not rolled back itself: it is what it was if all that changed in the folder
// is put back, and stays if something in it is kept.
func TestRollback_TimesOfParentFolders(t *testing.T) {
	for name, c := range map[string]struct {
		opts RollbackOptions
		back bool
	}{
		"all that changed is put back":                  {RollbackOptions{Only: []string{"d/f", "d/g"}}, true},
		"something is not chosen":                       {RollbackOptions{Only: []string{"d/f"}}, false},
		"something is kept":                             {RollbackOptions{Keep: func(p string) bool { return p == "d/g" }}, false},
		"the folder is kept, and all in it is put back": {RollbackOptions{Keep: func(p string) bool { return p == "d" }}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			shell(t, dir, "mkdir d; touch -d 2001-01-01 d")
			tree := openTree(t, dir, nil)
			c0 := checkpoint(t, tree)
			was := snapshot(t, dir)["d"].ModTime
			shell(t, dir, "echo 1 > d/f; echo 2 > d/g; touch -d 2002-02-02 d")
			want := snapshot(t, dir)["d"].ModTime
			if c.back {
				want = was
			}
			rollback(t, tree, c0, &c.opts)
			if got := snapshot(t, dir)["d"].ModTime; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// A process that opens a file for writing after we asked for writers, and before the watcher's reports of
// our own reading are taken, is found by asking once more.
func TestCheckpoint_FindsAWriterThatOpensDuringTheRead(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "f")
	write(t, p, "calm")
	tree := openTree(t, dir, nil)
	time.Sleep(25 * time.Millisecond) // the file is not looked at for being new
	checkpoint(t, tree)
	for _, writing := range []bool{false, true} {
		r := &refresh{tree: tree, scanned: map[string]inode{}, unsettled: map[string]bool{}}
		read, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		r.opened("f", read)
		if writing {
			writer, err := os.OpenFile(p, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
		}
		results, err := r.lookAll(context.Background(), map[string]reason{"f": byStamp})
		if err != nil {
			t.Fatal(err)
		}
		if results[0].hot != writing {
			t.Errorf("with a writer: %v, found: %v", writing, results[0].hot)
		}
	}
}

// One opens a tree while another closes it: its store is not removed under its feet.
func TestOpenTree_WhileAnotherProcessCloses(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "f"), "before")
	var opened atomic.Int64
	use := func() error {
		tree, err := OpenTree(dir, &TreeOptions{TempDir: temp, NoWatch: true})
		if errors.Is(err, ErrBusy) {
			return nil
		}
		if err != nil {
			return err
		}
		opened.Add(1)
		c, err := tree.Checkpoint(context.Background())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "f"), []byte("after"), 0o600)
		}
		if err == nil {
			_, err = tree.Rollback(context.Background(), c, nil)
		}
		if _, gone := os.Lstat(filepath.Join(tree.store.work(), "aside/1/f")); err == nil && gone != nil {
			err = gone
		}
		return errors.Join(err, tree.Close())
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range testkit.Size(150, 3000) {
				if err := use(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	t.Log(opened.Load(), "times")
}
