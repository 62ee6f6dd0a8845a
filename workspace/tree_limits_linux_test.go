// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

// asChild runs the test that calls it once more in a process of its own, and reports whether this is that
// process.
func asChild(t *testing.T, attr *syscall.SysProcAttr) bool {
	t.Helper()
	if os.Getenv("TREE_LIMITS") == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v")
	cmd.Env = append(os.Environ(), "TREE_LIMITS="+t.Name())
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skip(string(out))
	}
	return false
}

// ownMounts is for processes that mount something, which no other process sees.
func ownMounts(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount: run as root")
	}
	return &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}

func mountSmall(t *testing.T, dir string, size int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skip("cannot mount here: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

func TestTree_WorksWithFewOpenFiles(t *testing.T) {
	if !asChild(t, nil) {
		return
	}
	limit := unix.Rlimit{Cur: 64, Max: 64}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir := t.TempDir()
		for i := range 500 {
			write(t, filepath.Join(dir, fmt.Sprint(i%10), fmt.Sprint(i)), fmt.Sprint(i))
		}
		tree := openTree(t, dir, opts)
		c := checkpoint(t, tree)
		want := snapshot(t, dir)
		for i := range 500 {
			write(t, filepath.Join(dir, fmt.Sprint(i%10), fmt.Sprint(i)), "other")
		}
		checkpoint(t, tree)
		rollback(t, tree, c, nil)
		wantSnapshot(t, dir, want)
		if u := tree.Usage(); u.Watching == opts.NoWatch {
			t.Errorf("watching: %v (%s)", u.Watching, u.WatchProblem)
		}
	})
}

// A full disk of the store: the checkpoint fails, the tree is as it was, and with room all goes on.
func TestCheckpoint_FullDiskOfTheStoreLeavesTheTreeUnchanged(t *testing.T) {
	if !asChild(t, ownMounts(t)) {
		return
	}
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "small")
	mountSmall(t, store, 1<<20)
	write(t, filepath.Join(dir, "f"), "before")
	tree := openTree(t, dir, &TreeOptions{Store: store})
	c := checkpoint(t, tree)
	base := snapshot(t, dir)
	write(t, filepath.Join(dir, "large"), strings.Repeat("0123456789abcdef", 1<<17))
	write(t, filepath.Join(dir, "f"), "after")
	want := snapshot(t, dir)
	if _, err := tree.Checkpoint(context.Background()); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("checkpoint: %v", err)
	}
	wantSnapshot(t, dir, want)
	rolled, err := tree.Rollback(context.Background(), c, nil) // what goes aside needs room in the store
	t.Logf("%+v, %v", rolled, err)
	if err == nil {
		t.Fatal("there was room")
	}
	if _, err := os.Lstat(filepath.Join(dir, "large")); err == nil {
		wantSnapshot(t, dir, want)
	}
	if c2, err := tree.Checkpoint(context.Background()); err == nil {
		files, _ := c2.Files()
		for _, f := range files {
			if strings.Contains(f.Path, ".drover-") {
				t.Errorf("a checkpoint has %s", f.Path)
			}
		}
	}
	if err := unix.Mount("", store, "", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	rollback(t, tree, c, nil)
	wantSnapshot(t, dir, base)
}

// A full disk of the tree: nothing is half done.
func TestRollback_FullDiskOfTheTreeLeavesNoPartialFile(t *testing.T) {
	if !asChild(t, ownMounts(t)) {
		return
	}
	for _, beside := range []bool{false, true} {
		t.Run(fmt.Sprint("store on the same disk: ", beside), func(t *testing.T) {
			disk := filepath.Join(t.TempDir(), "disk")
			mountSmall(t, disk, 4<<20)
			dir, store := filepath.Join(disk, "tree"), t.TempDir()
			if beside {
				store = filepath.Join(disk, "store")
			}
			write(t, filepath.Join(dir, "large"), strings.Repeat("a", 1<<20))
			write(t, filepath.Join(dir, "f"), "before")
			tree := openTree(t, dir, &TreeOptions{Store: store})
			c := checkpoint(t, tree)
			base := snapshot(t, dir)
			write(t, filepath.Join(dir, "large"), strings.Repeat("b", 1<<20))
			write(t, filepath.Join(dir, "f"), "after")
			filler := filepath.Join(disk, "filler")
			_ = os.WriteFile(filler, make([]byte, 4<<20), 0o600) // until it is full
			want := snapshot(t, dir)
			rolled, err := tree.Rollback(context.Background(), c, nil)
			if err == nil {
				t.Fatalf("there was room: %+v", rolled)
			}
			wantSnapshot(t, dir, want)
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			rollback(t, tree, c, nil)
			wantSnapshot(t, dir, base)
		})
	}
}

func TestRollback_ReadOnlyTreeStaysUnchanged(t *testing.T) {
	if !asChild(t, ownMounts(t)) {
		return
	}
	dir := filepath.Join(t.TempDir(), "disk")
	mountSmall(t, dir, 1<<20)
	write(t, filepath.Join(dir, "f"), "before")
	tree := openTree(t, dir, nil)
	c := checkpoint(t, tree)
	write(t, filepath.Join(dir, "f"), "after")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if rolled, err := tree.Rollback(context.Background(), c, nil); !errors.Is(err, syscall.EROFS) {
		t.Errorf("%+v, %v", rolled, err)
	}
	wantContent(t, filepath.Join(dir, "f"), "after")
	checkpoint(t, tree)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	rollback(t, tree, c, nil)
	wantContent(t, filepath.Join(dir, "f"), "before")
}

// What is mounted in a tree is part of it as long as it is there, and never removed with what goes aside.
func TestRollback_MountPointInTheTreeIsNotRemoved(t *testing.T) {
	if !asChild(t, ownMounts(t)) {
		return
	}
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		scratch := t.TempDir()
		dir, outside := filepath.Join(scratch, "tree"), filepath.Join(scratch, "outside")
		write(t, filepath.Join(outside, "precious"), "precious")
		write(t, filepath.Join(dir, "f"), "before")
		opts.TempDir = scratch
		tree, err := OpenTree(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		c := checkpoint(t, tree)
		point := filepath.Join(dir, "new/deep/point")
		write(t, filepath.Join(point, "under"), "under")
		if err := unix.Mount(outside, point, "", unix.MS_BIND, ""); err != nil {
			t.Skip("cannot mount here: ", err)
		}
		write(t, filepath.Join(dir, "f"), "after")
		rolled, err := tree.Rollback(context.Background(), c, nil)
		t.Logf("%+v, %v", rolled, err)
		wantContent(t, filepath.Join(dir, "f"), "before")
		wantContent(t, filepath.Join(outside, "precious"), "precious")
		t.Log(tree.Close())
		wantContent(t, filepath.Join(outside, "precious"), "precious")
		for _, p := range []string{point, filepath.Join(rolled.Aside, "new/deep/point")} {
			_ = unix.Unmount(p, unix.MNT_DETACH)
		}
	})
}

func TestUsage_NamesTheInotifyLimit(t *testing.T) {
	if testkit.RerunAlone(t) { // else the tests beside this one would have no watchers
		return
	}
	var queues []int
	defer func() {
		for _, fd := range queues {
			_ = unix.Close(fd)
		}
	}()
	for range 5000 {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			break
		}
		queues = append(queues, fd)
	}
	if len(queues) == 5000 {
		t.Skip("this user may have more inotify instances than one likes to make")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "before")
	tree := openTree(t, dir, nil)
	c := checkpoint(t, tree)
	if u := tree.Usage(); u.Watching || !strings.Contains(u.WatchProblem, "max_user_instances") {
		t.Errorf("watching: %v (%q)", u.Watching, u.WatchProblem)
	}
	write(t, filepath.Join(dir, "f"), "after")
	rollback(t, tree, c, nil)
	wantContent(t, filepath.Join(dir, "f"), "before")
	for _, fd := range queues {
		_ = unix.Close(fd)
	}
	queues = nil
	checkpoint(t, tree)
	if u := tree.Usage(); !u.Watching || u.WatchProblem != "" {
		t.Errorf("with room again: watching: %v (%q)", u.Watching, u.WatchProblem)
	}
}
