// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/files"
	"github.com/drover-agents/drover/workspace/files/filestest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openDirFS(t testing.TB, dir string, opts *files.Options) *files.DirFS {
	t.Helper()
	fsys, err := files.OpenDirFS(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() })
	return fsys
}

func TestDirFS_PassesTheSuite(t *testing.T) {
	filestest.Run(t, func(t *testing.T, opts *files.Options) filestest.System {
		dir := t.TempDir()
		return filestest.System{
			FS:      openDirFS(t, dir, opts),
			Symlink: func(target, name string) error { return os.Symlink(target, filepath.Join(dir, name)) },
		}
	})
}

func TestMemFS_PassesTheSuite(t *testing.T) {
	filestest.Run(t, func(_ *testing.T, opts *files.Options) filestest.System {
		fsys := files.NewMemFS(opts)
		return filestest.System{FS: fsys, Symlink: fsys.Symlink}
	})
}

func TestRecorder_PassesTheSuite(t *testing.T) {
	filestest.Run(t, func(_ *testing.T, opts *files.Options) filestest.System {
		fsys := files.NewMemFS(opts)
		return filestest.System{FS: files.NewRecorder(fsys), Symlink: fsys.Symlink}
	})
}

func TestReadOnly_PassesTheSuite(t *testing.T) {
	mem, dir := files.NewMemFS(nil), openDirFS(t, t.TempDir(), nil)
	filestest.RunReadOnly(t, mem, files.ReadOnly(mem))
	filestest.RunReadOnly(t, dir, files.ReadOnly(dir))
}

func TestRecorder_ListsChangedPaths(t *testing.T) {
	fsys := files.NewMemFS(nil)
	put(t, fsys, "old/a", "")
	put(t, fsys, "old/b", "")
	put(t, fsys, "other", "")
	if err := fsys.Symlink("old", "link"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		do   func(fsys files.FS) error
		want []string
	}{
		{"a file with its folders", func(f files.FS) error { return f.WriteFile("new/sub/f", nil, nil) }, []string{"new", "new/sub", "new/sub/f"}},
		{"a file that is there", func(f files.FS) error { return f.WriteFile("old/a", nil, nil) }, []string{"old/a"}},
		{"a file behind a link", func(f files.FS) error { return f.WriteFile("link/a", nil, nil) }, []string{"old/a"}},
		{"folders", func(f files.FS) error { return f.Mkdir("link/x/y") }, []string{"old/x", "old/x/y"}},
		{"a folder that is there", func(f files.FS) error { return f.Mkdir("old") }, nil},
		{"a removal", func(f files.FS) error { return f.Remove("link/x") }, []string{"old/x"}},
		{"a move", func(f files.FS) error { return f.Rename("other", "moved/here") }, []string{"moved", "moved/here", "other"}},
		{"a removed link", func(f files.FS) error { return f.Remove("link") }, []string{"link"}},
		{"a refusal", func(f files.FS) error { _ = f.WriteFile("old", nil, nil); _ = f.Remove("none"); return nil }, nil},
	}
	for _, test := range tests {
		view := files.NewRecorder(fsys)
		if err := test.do(view); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, view.Written()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func put(t testing.TB, fsys files.FS, name, content string) {
	t.Helper()
	if err := fsys.WriteFile(name, []byte(content), nil); err != nil {
		t.Fatal(err)
	}
}

func TestWith_ContextCarriesAFileSystem(t *testing.T) {
	if _, ok := files.From(t.Context()); ok {
		t.Error("a bare context has a file system")
	}
	fsys := files.NewMemFS(nil)
	if got, ok := files.From(files.With(t.Context(), fsys)); !ok || got != files.FS(fsys) {
		t.Errorf("From = %v, %v; want what was put in", got, ok)
	}
}

func TestGrep_AcceptsAnyLimit(t *testing.T) {
	fsys := files.NewMemFS(nil)
	put(t, fsys, "a", "needle")
	for limit, want := range map[int64]int{math.MaxInt64: 1, -1: 1, 6: 1, 5: 0} {
		found, err := files.Grep(t.Context(), fsys, files.GrepOptions{Pattern: "needle", MaxFile: limit})
		if err != nil || len(found.Hits) != want || len(found.Skipped) != 1-want {
			t.Errorf("with MaxFile %d: %+v, %v; want %d hits", limit, found, err, want)
		}
	}
}

func TestFS_OpenFileIsReadOnly(t *testing.T) {
	dir := openDirFS(t, t.TempDir(), nil)
	put(t, dir, "d/a", "content")
	for name, fsys := range map[string]files.FS{"folder": dir, "view": files.ReadOnly(dir), "recorder": files.NewRecorder(dir)} {
		for _, at := range []string{"d", "d/a"} {
			file, err := fsys.Open(at)
			if err != nil {
				t.Fatal(err)
			}
			switch file.(type) {
			case interface{ Chmod(fs.FileMode) error }, interface{ Chdir() error }, interface{ Fd() uintptr }, io.Writer:
				t.Errorf("%s: %s can be changed through %T", name, at, file)
			}
			if _, ok := file.(io.ReadSeeker); !ok {
				t.Errorf("%s: %s cannot be sought in", name, at)
			}
			must(t, file.Close())
		}
	}
}

// What is deeper than anything new may be can still be written, and a link is no way to make more of it.
func TestDirFS_NameLimitsApplyToNewFilesOnly(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "1/2/3"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "1/2/3/old"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("1/2/3", filepath.Join(dir, "short")); err != nil {
		t.Fatal(err)
	}
	fsys := openDirFS(t, dir, &files.Options{MaxDepth: 3})
	if err := fsys.WriteFile("1/2/3/old", []byte("new"), nil); err != nil {
		t.Errorf("writing what is there: %v", err)
	}
	if err := fsys.WriteFile("short/new", nil, nil); !errors.Is(err, files.ErrLimit) {
		t.Errorf("making something through a link: %v, want a limit", err)
	}
	if err := fsys.Mkdir("short/new"); !errors.Is(err, files.ErrLimit) {
		t.Errorf("making a folder through a link: %v, want a limit", err)
	}
}

func TestOf_OneForEachWorkspace(t *testing.T) {
	w, err := workspace.Open(t.Context(), &workspace.Options{TempDir: t.TempDir(), NoCheckpoints: true})
	if err != nil {
		t.Fatal(err)
	}
	one, err := files.Of(w)
	two, err2 := files.Of(w)
	if err != nil || err2 != nil || one != two {
		t.Errorf("Of() = %v, %v; want the same one", err, err2)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := one.ReadDir("."); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a file system of a closed workspace returns %v", err)
	}
}

func TestOf_KeepsTheWorkspaceReachable(t *testing.T) {
	fsys, err := func() (files.FS, error) {
		w, err := workspace.Open(t.Context(), &workspace.Options{TempDir: t.TempDir(), NoCheckpoints: true})
		if err != nil {
			return nil, err
		}
		return files.Of(w)
	}()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond) // the collector works on its own
	}
	if err := fsys.WriteFile("a.txt", []byte("x"), nil); err != nil {
		t.Error(err)
	}
}
