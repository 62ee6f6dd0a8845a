// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openTemp(t testing.TB) *Root {
	t.Helper()
	return openDir(t, t.TempDir())
}

func openDir(t testing.TB, dir string) *Root {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// must stops the test at an error that it is not about.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// write makes a file with that content.
func write(t testing.TB, r *Root, path, content string) {
	t.Helper()
	f, err := r.Create(path)
	must(t, err)
	_, err = f.WriteString(content)
	must(t, err, f.Close())
}

// read returns a file's content.
func read(t testing.TB, r *Root, path string) string {
	t.Helper()
	f, _, err := r.OpenFile(path)
	must(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	must(t, err)
	return string(b)
}

func lstat(t testing.TB, r *Root, path string) Entry {
	t.Helper()
	e, err := r.Lstat(path)
	must(t, err)
	return e
}

// operations has every method that takes a path.
var operations = map[string]func(r *Root, path string) error{
	"Lstat":   func(r *Root, path string) error { _, err := r.Lstat(path); return err },
	"ReadDir": func(r *Root, path string) error { _, err := r.ReadDir(path); return err },
	"Walk": func(r *Root, path string) error {
		_, err := r.Walk(context.Background(), &WalkOptions{From: path})
		return err
	},
	"OpenFile":  func(r *Root, path string) error { return opened(r.OpenFile(path)) },
	"Xattrs":    func(r *Root, path string) error { _, err := r.Xattrs(path); return err },
	"Create":    func(r *Root, path string) error { f, err := r.Create(path); return opened(f, Entry{}, err) },
	"Mkdir":     func(r *Root, path string) error { return r.Mkdir(path, 0o755) },
	"MkdirAll":  func(r *Root, path string) error { return r.MkdirAll(path, 0o755) },
	"Symlink":   func(r *Root, path string) error { return r.Symlink("target", path) },
	"Link from": func(r *Root, path string) error { return r.Link(path, "new") },
	"Link to":   func(r *Root, path string) error { return r.Link("file", path) },
	"Mkfifo":    func(r *Root, path string) error { return r.Mkfifo(path, 0o600) },
	"Rename":    func(r *Root, path string) error { return r.Rename(path, "new") },
	"Rename to": func(r *Root, path string) error { return r.Rename("file", path) },
	"MoveTo":    func(r *Root, path string) error { return r.MoveTo(path, r, "new") },
	"MoveNew":   func(r *Root, path string) error { return r.MoveNew("file", r, path) },
	"Remove":    func(r *Root, path string) error { return r.Remove(path) },
	"RemoveAll": func(r *Root, path string) error { return r.RemoveAll(path) },
	"SetMeta":   func(r *Root, path string) error { return r.SetMeta(Entry{Path: path, Kind: File, Perm: 0o600}) },
}

func opened(f *os.File, _ Entry, err error) error {
	if f != nil {
		return errors.Join(err, f.Close())
	}
	return err
}

func TestRoot_PathsThatLeaveItAreRefused(t *testing.T) {
	cases := map[string]struct {
		path string
		want error
	}{
		"climbs out":           {"../outside/secret", ErrPath},
		"climbs out in midway": {"folder/../../outside/secret", ErrPath},
		"climbs and returns":   {"folder/../file", ErrPath},
		"only climbs":          {"..", ErrPath},
		"is absolute":          {"/etc/passwd", ErrPath},
		"is empty":             {"", ErrPath},
		"has a zero byte":      {"fi\x00le", ErrPath},
		"goes through a link":  {"link/secret", ErrLink},
		"goes deeper through":  {"link/sub/secret", ErrLink},
		"through a link aside": {"sibling/file", ErrLink},
	}
	for name, c := range cases {
		for op, do := range operations {
			if c.path == "" && op == "Walk" {
				continue // there it means the root
			}
			t.Run(op+" of what "+name, func(t *testing.T) {
				top := openTemp(t)
				must(t, top.MkdirAll("outside/sub", 0o755), top.MkdirAll("root/folder", 0o755))
				write(t, top, "outside/secret", "secret")
				write(t, top, "outside/sub/secret", "secret")
				r := openDir(t, filepath.Join(top.Dir(), "root"))
				write(t, r, "file", "content")
				must(t, r.Symlink("../outside", "link"), r.Symlink("folder", "sibling"))
				before := all(t, top)
				if err := do(r, c.path); !errors.Is(err, c.want) {
					t.Errorf("got error %v, want %v", err, c.want)
				}
				if diff := cmp.Diff(before, all(t, top)); diff != "" {
					t.Errorf("a refusal changed something (-before +after):\n%s", diff)
				}
			})
		}
	}
}

func TestRoot_CannotBeCreatedMovedOrRemovedItself(t *testing.T) {
	for _, op := range []string{"Create", "Mkdir", "Symlink", "Link to", "Mkfifo", "Rename", "Rename to", "Remove", "RemoveAll"} {
		for _, path := range []string{".", "./", "./."} {
			r := openTemp(t)
			write(t, r, "file", "content")
			if err := operations[op](r, path); !errors.Is(err, ErrPath) {
				t.Errorf("%s of %q: got error %v, want %v", op, path, err, ErrPath)
			}
		}
	}
}

func TestLstat_OfTheRootItself(t *testing.T) {
	r := openTemp(t)
	e := lstat(t, r, ".")
	if e.Kind != Dir || e.Path != "." {
		t.Errorf("got %+v, want a folder with the path \".\"", e)
	}
	e.ModTime = 1_000_000_001
	must(t, r.SetMeta(e))
	if got := lstat(t, r, "."); !got.Same(e) {
		t.Errorf("got %+v, want %+v", got, e)
	}
}

func TestRoot_CleansPaths(t *testing.T) {
	r := openTemp(t)
	must(t, r.MkdirAll("a//b/./c/", 0o755))
	write(t, r, "./a/b//f", "content")
	if got := lstat(t, r, "a/./b/f").Path; got != "a/b/f" {
		t.Errorf("got path %q, want %q", got, "a/b/f")
	}
}

func TestRoot_ClosedDoesNothing(t *testing.T) {
	for op, do := range operations {
		r := openTemp(t)
		write(t, r, "file", "content")
		must(t, r.Close())
		if err := do(r, "file"); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: got error %v, want %v", op, err, fs.ErrClosed)
		}
		must(t, r.Close())
	}
}

func TestOpen_RefusesFilesAndMissingPaths(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, name := range []string{"file", "missing"} {
		if r, err := Open(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was opened", name)
			_ = r.Close()
		}
	}
}

func TestRoot_StaysWithItsFolderAfterARename(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "a"), 0o755), os.Mkdir(filepath.Join(dir, "other"), 0o755))
	r := openDir(t, filepath.Join(dir, "a"))
	must(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	must(t, os.Symlink("other", filepath.Join(dir, "a")))
	write(t, r, "file", "content")
	if _, err := os.Stat(filepath.Join(dir, "b", "file")); err != nil {
		t.Errorf("the file is not in the folder that was opened: %v", err)
	}
}
