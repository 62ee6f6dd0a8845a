// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/fsuite"
)

func openDirFS(t testing.TB, dir string, opts *workspace.FSOptions) *workspace.DirFS {
	t.Helper()
	fsys, err := workspace.OpenDirFS(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() })
	return fsys
}

func TestAFolderIsAFileSystem(t *testing.T) {
	fsuite.Run(t, func(t *testing.T, opts *workspace.FSOptions) fsuite.System {
		dir := t.TempDir()
		return fsuite.System{
			FS:      openDirFS(t, dir, opts),
			Symlink: func(target, name string) error { return os.Symlink(target, filepath.Join(dir, name)) },
		}
	})
}

func TestMemoryIsAFileSystem(t *testing.T) {
	fsuite.Run(t, func(_ *testing.T, opts *workspace.FSOptions) fsuite.System {
		fsys := workspace.NewMemFS(opts)
		return fsuite.System{FS: fsys, Symlink: fsys.Symlink}
	})
}

func TestARecorderIsAFileSystem(t *testing.T) {
	fsuite.Run(t, func(_ *testing.T, opts *workspace.FSOptions) fsuite.System {
		fsys := workspace.NewMemFS(opts)
		return fsuite.System{FS: workspace.NewRecorder(fsys), Symlink: fsys.Symlink}
	})
}

func TestAViewIsReadOnly(t *testing.T) {
	mem, dir := workspace.NewMemFS(nil), openDirFS(t, t.TempDir(), nil)
	fsuite.RunReadOnly(t, mem, workspace.ReadOnly(mem))
	fsuite.RunReadOnly(t, dir, workspace.ReadOnly(dir))
}

func TestARecorderKnowsWhatWasWritten(t *testing.T) {
	fsys := workspace.NewMemFS(nil)
	put(t, fsys, "old/a", "")
	put(t, fsys, "old/b", "")
	put(t, fsys, "other", "")
	if err := fsys.Symlink("old", "link"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		do   func(fsys workspace.FS) error
		want []string
	}{
		{"a file with its folders", func(f workspace.FS) error { return f.WriteFile("new/sub/f", nil, nil) }, []string{"new", "new/sub", "new/sub/f"}},
		{"a file that is there", func(f workspace.FS) error { return f.WriteFile("old/a", nil, nil) }, []string{"old/a"}},
		{"a file behind a link", func(f workspace.FS) error { return f.WriteFile("link/a", nil, nil) }, []string{"old/a"}},
		{"folders", func(f workspace.FS) error { return f.Mkdir("link/x/y") }, []string{"old/x", "old/x/y"}},
		{"a folder that is there", func(f workspace.FS) error { return f.Mkdir("old") }, nil},
		{"a removal", func(f workspace.FS) error { return f.Remove("link/x") }, []string{"old/x"}},
		{"a move", func(f workspace.FS) error { return f.Rename("other", "moved/here") }, []string{"moved", "moved/here", "other"}},
		{"a removed link", func(f workspace.FS) error { return f.Remove("link") }, []string{"link"}},
		{"a refusal", func(f workspace.FS) error { _ = f.WriteFile("old", nil, nil); _ = f.Remove("none"); return nil }, nil},
	}
	for _, test := range tests {
		view := workspace.NewRecorder(fsys)
		if err := test.do(view); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, view.Written()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func put(t testing.TB, fsys workspace.FS, name, content string) {
	t.Helper()
	if err := fsys.WriteFile(name, []byte(content), nil); err != nil {
		t.Fatal(err)
	}
}

func TestAContextCarriesAFileSystem(t *testing.T) {
	if _, ok := workspace.FSFrom(t.Context()); ok {
		t.Error("a bare context has a file system")
	}
	fsys := workspace.NewMemFS(nil)
	if got, ok := workspace.FSFrom(workspace.WithFS(t.Context(), fsys)); !ok || got != workspace.FS(fsys) {
		t.Errorf("FSFrom = %v, %v; want what was put in", got, ok)
	}
}

func TestGrepTakesAnyLimit(t *testing.T) {
	fsys := workspace.NewMemFS(nil)
	put(t, fsys, "a", "needle")
	for limit, want := range map[int64]int{math.MaxInt64: 1, -1: 1, 6: 1, 5: 0} {
		found, err := workspace.Grep(t.Context(), fsys, workspace.GrepOptions{Pattern: "needle", MaxFile: limit})
		if err != nil || len(found.Hits) != want || len(found.Skipped) != 1-want {
			t.Errorf("with MaxFile %d: %+v, %v; want %d hits", limit, found, err, want)
		}
	}
}

func TestAnOpenFileCanOnlyBeRead(t *testing.T) {
	dir := openDirFS(t, t.TempDir(), nil)
	put(t, dir, "d/a", "content")
	for name, fsys := range map[string]workspace.FS{"folder": dir, "view": workspace.ReadOnly(dir), "recorder": workspace.NewRecorder(dir)} {
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
func TestLimitsOfNamesAreForNewOnes(t *testing.T) {
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
	files := openDirFS(t, dir, &workspace.FSOptions{MaxDepth: 3})
	if err := files.WriteFile("1/2/3/old", []byte("new"), nil); err != nil {
		t.Errorf("writing what is there: %v", err)
	}
	if err := files.WriteFile("short/new", nil, nil); !errors.Is(err, workspace.ErrLimit) {
		t.Errorf("making something through a link: %v, want a limit", err)
	}
	if err := files.Mkdir("short/new"); !errors.Is(err, workspace.ErrLimit) {
		t.Errorf("making a folder through a link: %v, want a limit", err)
	}
}
