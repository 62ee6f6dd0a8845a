// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

// swapper exchanges a folder for a link that leads outside, and back, as fast as it can. It returns how
// to stop it, which reports how often it did.
func swapper(t *testing.T, dir, folder, link string) (stop func() int) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	quit, done := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-quit:
				done <- n
				return
			default:
				_ = unix.Renameat2(fd, folder, fd, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	return func() int {
		close(quit)
		n := <-done
		_ = unix.Close(fd)
		return n
	}
}

// TestRoot_SwappedFolderDoesNotEscape is the attack that all the handles are for: a folder of the path is a
// folder at one moment and a link to the outside at the next.
func TestRoot_SwappedFolderDoesNotEscape(t *testing.T) {
	test := func(t *testing.T) {
		for _, op := range []string{
			"Lstat", "ReadDir", "Walk", "OpenFile", "Xattrs", "Create", "Mkdir", "MkdirAll", "Symlink", "Link",
			"Mkfifo", "Rename", "MoveNew", "Remove", "RemoveAll", "SetMeta",
		} {
			t.Run(op, func(t *testing.T) { attack(t, attacks[op]) })
		}
	}
	test(t)
	oldKernel(t, test)
}

// attacks has for each operation a round: it fails or succeeds inside, and reports what it read.
var attacks = map[string]func(t *testing.T, r *Root) (saw string){
	"Lstat": func(_ *testing.T, r *Root) string {
		e, _ := r.Lstat("a/dir/sub/link")
		return e.Target
	},
	"ReadDir": func(_ *testing.T, r *Root) (saw string) {
		entries, _ := r.ReadDir("a/dir/sub")
		return strings.Join(paths(entries), " ")
	},
	"Walk": func(t *testing.T, r *Root) string {
		entries, _ := r.Walk(t.Context(), nil)
		return strings.Join(paths(entries), " ")
	},
	"OpenFile": func(t *testing.T, r *Root) string {
		f, _, err := r.OpenFile("a/dir/sub/file")
		if err != nil {
			return ""
		}
		defer f.Close()
		b := make([]byte, 100)
		n, _ := f.Read(b)
		return string(b[:n])
	},
	"Xattrs": func(_ *testing.T, r *Root) string { attrs, _ := r.Xattrs("a/dir/sub/file"); return attrs },
	"Create": func(_ *testing.T, r *Root) string {
		f, err := r.Create("a/dir/sub/new")
		_ = opened(f, Entry{}, err)
		_ = r.Remove("a/dir/sub/new")
		return ""
	},
	"Mkdir":    func(_ *testing.T, r *Root) string { _ = r.Mkdir("a/dir/sub/new", 0o755); return undo(r) },
	"MkdirAll": func(_ *testing.T, r *Root) string { _ = r.MkdirAll("a/dir/sub/new/x", 0o755); return undo(r) },
	"Symlink":  func(_ *testing.T, r *Root) string { _ = r.Symlink("x", "a/dir/sub/new"); return undo(r) },
	"Link": func(_ *testing.T, r *Root) string {
		_ = r.Link("a/dir/sub/file", "stolen")
		_ = r.Link("mine", "a/dir/sub/new")
		defer r.Remove("stolen")
		f, _, err := r.OpenFile("stolen")
		if err != nil {
			return undo(r)
		}
		defer f.Close()
		b := make([]byte, 100)
		n, _ := f.Read(b)
		return undo(r) + string(b[:n])
	},
	"Mkfifo": func(_ *testing.T, r *Root) string { _ = r.Mkfifo("a/dir/sub/new", 0o600); return undo(r) },
	"Rename": func(_ *testing.T, r *Root) string {
		_ = r.Rename("mine", "a/dir/sub/file")
		_ = r.Rename("a/dir/sub/file", "mine")
		return ""
	},
	"MoveNew": func(_ *testing.T, r *Root) string {
		_ = r.MoveNew("mine", r, "a/dir/sub/new")
		_ = r.MoveNew("a/dir/sub/new", r, "mine")
		return ""
	},
	"Remove":    func(_ *testing.T, r *Root) string { _ = r.Remove("a/dir/sub/file"); return "" },
	"RemoveAll": func(_ *testing.T, r *Root) string { _ = r.RemoveAll("a/dir/sub/deep"); return "" },
	"SetMeta": func(_ *testing.T, r *Root) string {
		_ = r.SetMeta(Entry{Path: "a/dir/sub/file", Perm: 0o777, ModTime: 1, Xattrs: encodeXattrs(map[string]string{"user.x": "y"})})
		_ = r.SetMeta(Entry{Path: "a/dir/sub/file", Perm: 0o700, ModTime: 2})
		return ""
	},
}

func undo(r *Root) string { _ = r.RemoveAll("a/dir/sub/new"); return "" }

func attack(t *testing.T, round func(t *testing.T, r *Root) string) {
	outside, r := openTemp(t), openTemp(t)
	must(t, outside.MkdirAll("sub/deep/secret", 0o755), outside.Symlink("secret", "sub/link"))
	write(t, outside, "sub/file", "secret")
	write(t, outside, "sub/secret", "secret")
	_ = unix.Setxattr(filepath.Join(outside.Dir(), "sub/file"), "user.secret", []byte("secret"), 0)
	must(t, r.MkdirAll("a/dir/sub/deep/own", 0o755), r.Symlink(outside.Dir(), "a/evil"), r.Symlink("own", "a/dir/sub/link"))
	write(t, r, "a/dir/sub/file", "own")
	write(t, r, "mine", "own")
	before := all(t, outside)
	stop := swapper(t, filepath.Join(r.Dir(), "a"), "dir", "evil")
	deadline := time.Now().Add(time.Duration(testkit.Size(40, 2000)) * time.Millisecond)
	for time.Now().Before(deadline) {
		if saw := round(t, r); strings.Contains(saw, "secret") {
			t.Errorf("something outside was read: %q", saw)
			break
		}
	}
	if swaps := stop(); swaps < 10 {
		t.Logf("only %d swaps", swaps)
	}
	if diff := cmp.Diff(before, all(t, outside)); diff != "" {
		t.Errorf("something outside was changed (-before +after):\n%s", diff)
	}
	if b, err := os.ReadFile(filepath.Join(outside.Dir(), "sub/file")); string(b) != "secret" || err != nil {
		t.Errorf("the secret has become %q, %v", b, err)
	}
}

// TestOpenFile_SwappedFileIsOpenedOrRefused swaps the last element for a link and a pipe.
func TestOpenFile_SwappedFileIsOpenedOrRefused(t *testing.T) {
	outside := openTemp(t)
	write(t, outside, "file", "secret")
	for _, other := range []string{"link", "pipe"} {
		r := openTemp(t)
		write(t, r, "file", "own")
		must(t, r.Symlink(filepath.Join(outside.Dir(), "file"), "link"), r.Mkfifo("pipe", 0o600))
		stop := swapper(t, r.Dir(), "file", other)
		for range testkit.Size(2000, 100_000) {
			f, e, err := r.OpenFile("file")
			if err != nil {
				continue
			}
			b := make([]byte, 10)
			n, _ := f.Read(b)
			_ = f.Close()
			if string(b[:n]) != "own" || e.Kind != File {
				t.Fatalf("got %q of a %s, want what is in the file", b[:n], e.Kind)
			}
		}
		stop()
	}
}

// A folder that is moved out of the root and back while its path is followed is there, or not there.
func TestRoot_FolderMovedOutAndBack(t *testing.T) {
	scratch := t.TempDir()
	dir, away := filepath.Join(scratch, "tree"), filepath.Join(scratch, "away")
	must(t, os.MkdirAll(filepath.Join(dir, "d/e/f/g"), 0o755))
	r, err := Open(dir)
	must(t, err)
	defer r.Close()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
				_ = os.Rename(filepath.Join(dir, "d"), away)
				_ = os.Rename(away, filepath.Join(dir, "d"))
			}
		}
	}()
	for range testkit.Size(30_000, 1_000_000) {
		if _, err := r.Lstat("d/e/f/g"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
			break
		}
	}
	close(quit)
	<-done
}
