// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/files"
)

// FuzzNames gives any text as a name and as the target of a link: a folder and memory must answer alike,
// and nothing may happen outside of the root.
func FuzzNames(f *testing.F) {
	for _, seed := range [][2]string{
		{"a/b", "a"},
		{"../x", ".."},
		{"/etc", "/"},
		{"l/x", "../.."},
		{"l/../x", "a/../.."},
		{"l", "l"},
		{"a/./b", "."},
		{"a\\b", "..\\x"},
		{"a//b", ""},
		{"l/l/l", "l2/.."},
		{"\xff", "\xff"},
		{"l/x/y", "a/none/.."},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, target string) {
		base := t.TempDir()
		root := filepath.Join(base, "root")
		dir, mem := makeFuzzed(t, root, target)
		for op := range fuzzedCalls {
			got, want := fuzzedCalls[op](dir, name), fuzzedCalls[op](mem, name)
			if classOf(got) != classOf(want) {
				t.Errorf("call %d of %q with a link to %q: a folder returns %v, memory %v", op, name, target, got, want)
			}
		}
		if entries, err := os.ReadDir(base); err != nil || len(entries) != 1 {
			t.Errorf("%q with a link to %q left %v outside", name, target, entries)
		}
	})
}

var fuzzedCalls = []func(fsys files.FS, name string) error{
	func(fsys files.FS, name string) error { _, err := fsys.Stat(name); return err },
	func(fsys files.FS, name string) error { _, err := fsys.ReadFile(name); return err },
	func(fsys files.FS, name string) error { return fsys.WriteFile(name, []byte("x"), nil) },
	func(fsys files.FS, name string) error { return fsys.Mkdir(name) },
	func(fsys files.FS, name string) error { return fsys.Rename("a/b", name) },
	func(fsys files.FS, name string) error { return fsys.Remove(name) },
}

func makeFuzzed(t *testing.T, root, target string) (files.FS, files.FS) {
	t.Helper()
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, mem := openDirFS(t, root, nil), files.NewMemFS(nil)
	for _, fsys := range []files.FS{dir, mem} {
		put(t, fsys, "a/b", "b")
		put(t, fsys, "c", "c")
	}
	for link, target := range map[string]string{"l": target, "a/l2": "../l"} {
		if err := os.Symlink(target, filepath.Join(root, filepath.FromSlash(link))); err != nil {
			t.Skip("the system has no such link")
		}
		if err := mem.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	return dir, mem
}

// classOf is what callers can distinguish errors by.
func classOf(err error) string {
	for _, class := range []error{workspace.ErrSecurity, files.ErrLimit, fs.ErrNotExist, fs.ErrExist, fs.ErrPermission} {
		if errors.Is(err, class) {
			return class.Error()
		}
	}
	if err != nil {
		return "another error"
	}
	return "none"
}
