// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
)

// lock takes every right from an entry, and gives them back at the end.
func lock(t *testing.T, r *Root, paths ...string) {
	t.Helper()
	for _, path := range paths {
		full := filepath.Join(r.Dir(), path)
		must(t, os.Chmod(full, 0))
		t.Cleanup(func() { _ = os.Chmod(full, 0o700) })
	}
}

// lockedTree has a folder that allows nothing in another, with a file that allows nothing.
func lockedTree(t *testing.T) *Root {
	r := openTemp(t)
	must(t, r.MkdirAll("outer/inner", 0o755))
	write(t, r, "outer/inner/file", "content")
	write(t, r, "outer/other", "other")
	_ = unix.Setxattr(filepath.Join(r.Dir(), "outer/inner/file"), "user.key", []byte("value"), 0)
	lock(t, r, "outer/inner/file", "outer/inner", "outer", ".")
	return r
}

func TestWalk_FindsEntriesInLockedFolders(t *testing.T) {
	r := lockedTree(t)
	got := all(t, r)
	if diff := cmp.Diff([]string{"outer", "outer/inner", "outer/inner/file", "outer/other"}, paths(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, e := range got {
		if want := lstat(t, r, e.Path); !want.Same(e) {
			t.Errorf("got %+v from Walk, want %+v", e, want)
		}
		if e.Path != "outer/other" && e.Perm != 0 {
			t.Errorf("%s: got mode %v, want none", e.Path, e.Perm)
		}
	}
	if got, err := r.ReadDir("outer"); err != nil || len(got) != 2 {
		t.Errorf("got %d entries and error %v, want 2", len(got), err)
	}
}

func TestOpenFile_ReadsLockedFiles(t *testing.T) {
	r := lockedTree(t)
	f, e, err := r.OpenFile("outer/inner/file")
	must(t, err)
	defer f.Close()
	if diff := cmp.Diff(lstatLocked(t, r, "outer/inner/file"), e, cmp.Comparer(Entry.Same)); diff != "" {
		t.Errorf("(-lstat +OpenFile):\n%s", diff)
	}
	if got := read(t, r, "outer/inner/file"); got != "content" {
		t.Errorf("got %q, want %q", got, "content")
	}
}

func lstatLocked(t *testing.T, r *Root, path string) Entry {
	t.Helper()
	e := lstat(t, r, path)
	if e.Perm != 0 {
		t.Errorf("%s has mode %v, want none", path, e.Perm)
	}
	return e
}

func TestRoot_ChangesLockedFolders(t *testing.T) {
	changes := map[string]func(r *Root) error{
		"Create":    func(r *Root) error { f, err := r.Create("outer/inner/new"); return opened(f, Entry{}, err) },
		"Mkdir":     func(r *Root) error { return r.Mkdir("outer/inner/new", 0o755) },
		"MkdirAll":  func(r *Root) error { return r.MkdirAll("outer/inner/new/deep", 0o755) },
		"Symlink":   func(r *Root) error { return r.Symlink("target", "outer/inner/new") },
		"Link":      func(r *Root) error { return r.Link("outer/other", "outer/inner/new") },
		"Mkfifo":    func(r *Root) error { return r.Mkfifo("outer/inner/new", 0o600) },
		"Rename":    func(r *Root) error { return r.Rename("outer/other", "outer/inner/new") },
		"MoveNew":   func(r *Root) error { return r.MoveNew("outer/inner/file", r, "outer/new") },
		"of folder": func(r *Root) error { return r.Rename("outer/inner", "new") },
		"Remove":    func(r *Root) error { return r.Remove("outer/inner/file") },
		"RemoveAll": func(r *Root) error { return r.RemoveAll("outer/inner") },
		"SetMeta": func(r *Root) error {
			e, err := r.Lstat("outer/inner/file")
			e.Perm, e.ModTime, e.Xattrs = 0o040, 42, ""
			return errors.Join(err, r.SetMeta(e))
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			r := lockedTree(t)
			must(t, change(r))
			t.Cleanup(func() { _ = r.RemoveAll("new") })
			for _, path := range []string{".", "outer", "outer/inner", "new"} {
				e, err := r.Lstat(path)
				if err == nil && e.Perm != 0 {
					t.Errorf("%s was left with mode %v", path, e.Perm)
				}
			}
		})
	}
}

func TestRoot_LockedFoldersKeepTheirTimes(t *testing.T) {
	r := lockedTree(t)
	before := lstatLocked(t, r, "outer/inner")
	all(t, r)
	must(t, opened(r.OpenFile("outer/inner/file")))
	if after := lstatLocked(t, r, "outer/inner"); !after.Same(before) {
		t.Errorf("got %+v, want %+v", after, before)
	}
}

// A reader must not report a mode that another goroutine has widened as the true one.
func TestRoot_WidenedModesAreNeverReported(t *testing.T) {
	r := lockedTree(t)
	must(t, os.Chmod(r.Dir(), 0o700)) // so that nothing is in the way of looking at the folder
	var wg sync.WaitGroup
	var quit atomic.Bool
	for range 2 {
		wg.Go(func() {
			for !quit.Load() {
				if err := opened(r.OpenFile("outer/inner/file")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range testkit.Size(3000, 100_000) {
		if e := lstat(t, r, "outer"); e.Perm != 0 {
			t.Errorf("seen with mode %v", e.Perm)
			break
		}
	}
	quit.Store(true)
	wg.Wait()
	lstatLocked(t, r, "outer")
	lstatLocked(t, r, "outer/inner/file")
}

func TestRoot_LocksOfAnotherUserHold(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("nothing is locked for root; TestRoot_AsOrdinaryUser runs this as another")
	}
	r := openDir(t, "/")
	if err := opened(r.OpenFile("etc/shadow")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got error %v, want %v", err, fs.ErrPermission)
	}
	if err := r.Mkdir("etc/new", 0o755); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got error %v, want %v", err, fs.ErrPermission)
	}
}

func TestWalk_ReportsUnreadableFoldersOfAnotherUser(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("nothing is locked for root; TestRoot_AsOrdinaryUser runs this as another")
	}
	r := openDir(t, "/proc/1") // whose folder "fd" is only root's
	skip := func(e Entry) bool { return e.Path != "fd" && e.Path != "attr" }
	got, err := r.Walk(t.Context(), &WalkOptions{Skip: skip, NoXattrs: true})
	if diff := cmp.Diff([]string{"attr", "fd"}, paths(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(advice.Text(err), "fd") {
		t.Errorf("got error %v, want one that names the folder", err)
	}
}

func TestRemoveAll_RemovesLockedTrees(t *testing.T) {
	outside := openTemp(t)
	write(t, outside, "file", "content")
	r := openTemp(t)
	path := "tree"
	for range testkit.Size(300, 1000) {
		path += "/d"
	}
	must(t, r.MkdirAll(path, 0o755))
	write(t, r, path+"/file", "content")
	must(t, r.Symlink(outside.Dir(), path+"/link"), r.Symlink(outside.Dir(), "tree/link"), r.Mkfifo("tree/pipe", 0))
	for dir := path; dir != "tree"; dir, _ = split(dir) {
		e := lstat(t, r, dir)
		e.Perm = fs.FileMode(strings.Count(dir, "/")%8) << 6
		must(t, r.SetMeta(e))
	}
	before := all(t, outside)
	must(t, r.RemoveAll("tree"), r.RemoveAll("tree"), r.RemoveAll("missing/tree"))
	if left := all(t, r); len(left) > 0 {
		t.Errorf("left: %v", paths(left))
	}
	if diff := cmp.Diff(before, all(t, outside)); diff != "" {
		t.Errorf("a link was followed (-before +after):\n%s", diff)
	}
}

func TestRemoveAll_ConcurrentWritersDoNotPreventIt(t *testing.T) {
	r := openTemp(t)
	for range testkit.Size(20, 200) {
		must(t, r.MkdirAll("tree/a/b", 0o755))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 50 {
				_ = os.WriteFile(filepath.Join(r.Dir(), "tree/a/b", string(rune('a'+i%26))), nil, 0o600)
			}
		}()
		err := r.RemoveAll("tree")
		<-done
		if err != nil && !errors.Is(err, unix.ENOTEMPTY) {
			t.Fatal(err)
		}
		must(t, r.RemoveAll("tree"))
	}
}
