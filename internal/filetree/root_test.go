// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"os"
	"path/filepath"
	"testing"
)

func openTemp(t testing.TB) *Root {
	t.Helper()
	r, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestSmoke(t *testing.T) {
	r := openTemp(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	check(r.MkdirAll("a/b/c", 0o755))
	f, err := r.Create("a/b/f")
	check(err)
	f.WriteString("hello")
	check(f.Close())
	check(r.Symlink("f", "a/b/l"))
	check(r.Link("a/b/f", "a/h"))
	check(r.Mkfifo("a/p", 0o600))
	check(os.WriteFile(filepath.Join(r.Dir(), "a-b"), nil, 0o644))
	all, err := r.Walk(t.Context(), nil)
	check(err)
	for _, e := range all {
		t.Logf("%+v", e)
	}
	e, _ := r.Lstat("a/b/l")
	e.ModTime = 12345
	check(r.SetMeta(e))
	got, _ := r.Lstat("a/b/l")
	if !got.Same(e) {
		t.Errorf("%+v", got)
	}
	e, _ = r.Lstat("a/b/f")
	e.ModTime = 12345
	e.Perm |= os.ModeSetuid
	e.UID = 5
	e.Xattrs = encodeXattrs(map[string]string{"user.x": "y"})
	check(r.SetMeta(e))
	got, _ = r.Lstat("a/b/f")
	if !got.Same(e) {
		t.Errorf("%+v", got)
	}
	check(r.Rename("a/h", "a/b/f"))
	check(r.Rename("a/b/f", "a/b/c"))
	_, _, err = r.OpenFile("a/b/l")
	t.Log(err)
	_, _, err = r.OpenFile("a/p")
	t.Log(err)
	g, ge, err := r.OpenFile("a/b/c")
	check(err)
	t.Log(ge)
	g.Close()
	check(r.RemoveAll("a"))
	all, _ = r.Walk(t.Context(), nil)
	for _, e := range all {
		t.Logf("%+v", e)
	}
}
