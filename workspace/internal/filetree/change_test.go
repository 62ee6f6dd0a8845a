// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoot_NeverReplacesExistingEntries(t *testing.T) {
	for _, op := range []string{"Create", "Mkdir", "Symlink", "Link to", "Mkfifo", "MoveNew"} {
		for _, there := range []string{"other", "folder", "link"} {
			r := openTemp(t)
			write(t, r, "file", "content")
			write(t, r, "other", "other")
			must(t, r.Mkdir("folder", 0o755), r.Symlink("file", "link"))
			if err := operations[op](r, there); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s onto a %s: got error %v, want %v", op, there, err, fs.ErrExist)
			}
			if got := read(t, r, "file") + read(t, r, "other"); got != "contentother" {
				t.Errorf("%s onto a %s: got %q, want %q", op, there, got, "contentother")
			}
		}
	}
}

func TestCreate_MakesAPrivateFile(t *testing.T) {
	r := openTemp(t)
	write(t, r, "file", "content")
	if e := lstat(t, r, "file"); e.Perm != 0o600 || e.Size != 7 || e.Kind != File {
		t.Errorf("got %+v, want a file of 7 bytes with mode 0600", e)
	}
}

func TestMkdirAll_FailsAtAnEntryThatIsNotAFolder(t *testing.T) {
	r := openTemp(t)
	write(t, r, "file", "content")
	must(t, r.Symlink(".", "link"))
	for path, want := range map[string]error{
		"file": fs.ErrExist, "file/sub": syscall.ENOTDIR, "link": ErrLink, "link/sub": ErrLink, ".": nil,
	} {
		if err := r.MkdirAll(path, 0o755); !errors.Is(err, want) {
			t.Errorf("%s: got error %v, want %v", path, err, want)
		}
	}
}

func TestRename_Cases(t *testing.T) {
	cases := map[string]struct {
		old, path string
		want      []string
		err       error
	}{
		"to a new name":                      {"file", "new", []string{"empty", "full", "full/file", "link", "new", "other", "twin"}, nil},
		"into a folder":                      {"file", "full/new", []string{"empty", "full", "full/file", "full/new", "link", "other", "twin"}, nil},
		"over a file":                        {"file", "other", []string{"empty", "full", "full/file", "link", "other", "twin"}, nil},
		"over a link, which is not followed": {"other", "link", []string{"empty", "file", "full", "full/file", "link", "twin"}, nil},
		"over its own second name":           {"file", "twin", []string{"empty", "full", "full/file", "link", "other", "twin"}, nil},
		"to where it is":                     {"file", "file", []string{"empty", "file", "full", "full/file", "link", "other", "twin"}, nil},
		"a file over an empty folder":        {"file", "empty", []string{"empty", "full", "full/file", "link", "other", "twin"}, nil},
		"a folder over an empty folder":      {"full", "empty", []string{"empty", "empty/file", "file", "link", "other", "twin"}, nil},
		"a folder over a file":               {"full", "other", []string{"empty", "file", "link", "other", "other/file", "twin"}, nil},
		"a folder over a link":               {"full", "link", []string{"empty", "file", "link", "link/file", "other", "twin"}, nil},
		"a file over a full folder":          {"file", "full", nil, syscall.ENOTEMPTY},
		"a folder over a full folder":        {"empty", "full", nil, syscall.ENOTEMPTY},
		"a folder into itself":               {"full", "full/sub", nil, syscall.EINVAL},
		"what is not there":                  {"missing", "other", nil, fs.ErrNotExist},
		"to a missing folder":                {"file", "missing/new", nil, fs.ErrNotExist},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := openTemp(t)
			must(t, r.Mkdir("empty", 0o755), r.Mkdir("full", 0o755), r.Symlink("file", "link"))
			write(t, r, "file", "content")
			write(t, r, "other", "other")
			write(t, r, "full/file", "full")
			must(t, r.Link("file", "twin"))
			want := c.want
			if c.err != nil {
				want = paths(all(t, r))
			}
			was, _ := r.Lstat(c.old)
			if err := r.Rename(c.old, c.path); !errors.Is(err, c.err) {
				t.Errorf("got error %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(want, paths(all(t, r))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.err == nil && lstat(t, r, c.path).Stamp.Ino != was.Stamp.Ino {
				t.Error("something else is there now")
			}
		})
	}
}

func TestMoveNew_ToAnotherRoot(t *testing.T) {
	a, b := openTemp(t), openTemp(t)
	must(t, a.MkdirAll("folder/sub", 0o755))
	write(t, a, "folder/sub/file", "content")
	write(t, b, "there", "other")
	if err := a.MoveNew("folder", b, "there"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got error %v, want %v", err, fs.ErrExist)
	}
	must(t, a.MoveTo("folder/sub", b, "there"))
	if got := read(t, b, "there/file"); got != "content" {
		t.Errorf("got %q, want %q", got, "content")
	}
	if diff := cmp.Diff([]string{"folder"}, paths(all(t, a))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRemove_Cases(t *testing.T) {
	for path, want := range map[string]error{
		"file": nil, "link": nil, "empty": nil, "full": syscall.ENOTEMPTY, "missing": fs.ErrNotExist, "file/sub": syscall.ENOTDIR,
	} {
		r := openTemp(t)
		must(t, r.Mkdir("empty", 0o755), r.Mkdir("full", 0o755), r.Symlink("full", "link"))
		write(t, r, "file", "content")
		write(t, r, "full/file", "content")
		if err := r.Remove(path); !errors.Is(err, want) {
			t.Errorf("%s: got error %v, want %v", path, err, want)
		}
		if _, err := r.Lstat(path); want == nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
		if got := read(t, r, "full/file"); got != "content" {
			t.Errorf("%s: what the link leads to has become %q", path, got)
		}
	}
}

func TestOpenFile_OpensRegularFilesOnly(t *testing.T) {
	r := openTemp(t)
	write(t, r, "file", "content")
	must(t, r.Mkdir("folder", 0o755), r.Symlink("file", "link"), r.Symlink("missing", "dangling"))
	for path, want := range map[string]error{
		"folder": ErrNotFile, ".": ErrNotFile, "link": ErrNotFile, "dangling": ErrNotFile, "missing": fs.ErrNotExist,
	} {
		if err := opened(r.OpenFile(path)); !errors.Is(err, want) {
			t.Errorf("%s: got error %v, want %v", path, err, want)
		}
	}
	f, e, err := r.OpenFile("file")
	must(t, err)
	defer f.Close()
	if diff := cmp.Diff(lstat(t, r, "file"), e); diff != "" {
		t.Errorf("(-lstat +OpenFile):\n%s", diff)
	}
}
