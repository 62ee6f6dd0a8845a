// SPDX-License-Identifier: Apache-2.0

package filestest

import (
	"errors"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/files"
)

func ioFS(t *testing.T, s System) {
	put(t, s.FS, "empty", "")
	put(t, s.FS, "a/b/file.txt", "text\n")
	put(t, s.FS, "a/ünïcode and space", "x")
	if err := s.FS.Mkdir("a/none"); err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(s.FS, "empty", "a/b/file.txt", "a/ünïcode and space", "a/none"); err != nil {
		t.Error(err)
	}
}

func ioFSWithLinks(t *testing.T, s System) {
	put(t, s.FS, "a/file", "text\n")
	link(t, s, "a/file", "to-file")
	link(t, s, "../a", "a/to-folder")
	if err := fstest.TestFS(s.FS, "a/file", "to-file", "a/to-folder"); err != nil {
		t.Error(err)
	}
}

func badNames(t *testing.T, s System) {
	put(t, s.FS, "a/b", "x")
	tests := []struct {
		name     string
		security bool
	}{
		{"", false},
		{"/a", true},
		{"/", true},
		{"..", true},
		{"../a", true},
		{"a/../../b", true},
		{"a/..", true},
		{"./a", false},
		{"a/.", false},
		{"a//b", false},
		{"a/", false},
		{"a\x00b", false},
		{"a/\xff", false},
	}
	for _, test := range tests {
		for op, err := range everyCall(s.FS, test.name) {
			wantIs(t, op+" "+test.name, err, fs.ErrInvalid)
			if got := errors.Is(err, workspace.ErrSecurity); got != test.security {
				t.Errorf("%s %q is a SecurityError: %v, want %v (%v)", op, test.name, got, test.security, err)
			}
		}
	}
	if got := tree(t, s.FS); !slices.Equal(got, []string{"a", "a/b"}) {
		t.Errorf("after refused calls there is %q", got)
	}
}

func everyCall(fsys files.FS, name string) map[string]error {
	errs := map[string]error{
		"WriteFile":   fsys.WriteFile(name, nil, nil),
		"Mkdir":       fsys.Mkdir(name),
		"Remove":      fsys.Remove(name),
		"Rename from": fsys.Rename(name, "new"),
		"Rename to":   fsys.Rename("a/b", name),
	}
	_, errs["Open"] = fsys.Open(name)
	_, errs["Stat"] = fsys.Stat(name)
	_, errs["Lstat"] = fsys.Lstat(name)
	_, errs["ReadLink"] = fsys.ReadLink(name)
	_, errs["ReadDir"] = fsys.ReadDir(name)
	_, errs["ReadFile"] = fsys.ReadFile(name)
	return errs
}

func writeNew(t *testing.T, s System) {
	put(t, s.FS, "a/b/c", "content")
	want(t, s.FS, "a/b/c", "content")
	if got := tree(t, s.FS); !slices.Equal(got, []string{"a", "a/b", "a/b/c"}) {
		t.Errorf("there is %q, want the file and its folders", got)
	}
	wantPerm(t, s.FS, "a/b/c", 0o644)
	const bytes = "\x00\r\n\r\ufeff\xff\x1a\n"
	put(t, s.FS, "a/b/c", bytes)
	want(t, s.FS, "a/b/c", bytes)
	if err := s.FS.WriteFile("run", nil, &files.WriteOptions{Perm: 0o700}); err != nil {
		t.Fatal(err)
	}
	wantPerm(t, s.FS, "run", 0o700)
}

func wantPerm(t *testing.T, fsys files.FS, name string, perm fs.FileMode) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return // has no such bits
	}
	if info, err := fsys.Stat(name); err != nil || info.Mode() != perm {
		t.Errorf("Stat(%q) = %v, %v; want mode %v", name, info, err, perm)
	}
}

func overwrite(t *testing.T, s System) {
	if err := s.FS.WriteFile("run", []byte("long content"), &files.WriteOptions{Perm: 0o750}); err != nil {
		t.Fatal(err)
	}
	if err := s.FS.WriteFile("run", []byte("short"), &files.WriteOptions{Perm: 0o600}); err != nil {
		t.Fatal(err)
	}
	want(t, s.FS, "run", "short")
	wantPerm(t, s.FS, "run", 0o750)
	put(t, s.FS, "run", "")
	want(t, s.FS, "run", "")
}

func createOnly(t *testing.T, s System) {
	create := &files.WriteOptions{CreateOnly: true}
	if err := s.FS.WriteFile("a/b", []byte("first"), create); err != nil {
		t.Fatal(err)
	}
	wantIs(t, "second create", s.FS.WriteFile("a/b", []byte("second"), create), fs.ErrExist)
	wantIs(t, "create of a folder", s.FS.WriteFile("a", nil, create), fs.ErrExist)
	want(t, s.FS, "a/b", "first")
	if got := tree(t, s.FS); !slices.Equal(got, []string{"a", "a/b"}) {
		t.Errorf("there is %q, want nothing else", got)
	}
}

func appendTo(t *testing.T, s System) {
	more := &files.WriteOptions{Append: true, Perm: 0o700}
	for _, line := range []string{"one\n", "", "two\n"} {
		if err := s.FS.WriteFile("dir/log", []byte(line), more); err != nil {
			t.Fatal(err)
		}
	}
	want(t, s.FS, "dir/log", "one\ntwo\n")
	wantPerm(t, s.FS, "dir/log", 0o700)
}

func readOnlyFile(t *testing.T, s System) {
	if err := s.FS.WriteFile("fixed", []byte("x"), &files.WriteOptions{Perm: 0o444}); err != nil {
		t.Fatal(err)
	}
	for _, more := range []bool{false, true} {
		err := s.FS.WriteFile("fixed", []byte("y"), &files.WriteOptions{Append: more})
		wantIs(t, "write", err, fs.ErrPermission)
	}
	want(t, s.FS, "fixed", "x")
	if err := s.FS.Remove("fixed"); err != nil {
		t.Errorf("Remove = %v; it is the folder's to give", err)
	}
}

func wrongKind(t *testing.T, s System) {
	put(t, s.FS, "dir/file", "x")
	bad := map[string]error{
		"write of a folder":      s.FS.WriteFile("dir", nil, nil),
		"write of the root":      s.FS.WriteFile(".", nil, nil),
		"write below a file":     s.FS.WriteFile("dir/file/x", nil, nil),
		"folder below a file":    s.FS.Mkdir("dir/file/x/y"),
		"removal of the root":    s.FS.Remove("."),
		"move of the root":       s.FS.Rename(".", "new"),
		"move into itself":       s.FS.Rename("dir", "dir/sub/dir"),
		"move of a file to root": s.FS.Rename("dir/file", "."),
	}
	_, bad["read of a folder"] = s.FS.ReadFile("dir")
	_, bad["listing of a file"] = s.FS.ReadDir("dir/file")
	_, bad["target of a file"] = s.FS.ReadLink("dir/file")
	for what, err := range bad {
		wantIs(t, what, err, fs.ErrInvalid)
	}
	wantIs(t, "folder on a file", s.FS.Mkdir("dir/file"), fs.ErrExist)
	if got := tree(t, s.FS); !slices.Equal(got, []string{"dir", "dir/file"}) {
		t.Errorf("after refused calls there is %q", got)
	}
}

func buffers(t *testing.T, s System) {
	data := []byte("content")
	if err := s.FS.WriteFile("file", data, nil); err != nil {
		t.Fatal(err)
	}
	clear(data)
	got, err := s.FS.ReadFile("file")
	if err != nil {
		t.Fatal(err)
	}
	clear(got)
	want(t, s.FS, "file", "content")
}

func openStays(t *testing.T, s System) {
	put(t, s.FS, "file", "before")
	file, err := s.FS.Open("file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	put(t, s.FS, "file", "after")
	if err := s.FS.Remove("file"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(file); err != nil || string(got) != "before" {
		t.Errorf("open file reads %q, %v; want what it was", got, err)
	}
}

func mkdir(t *testing.T, s System) {
	for _, name := range []string{"a/b/c", "a/b", "a/b/c", "."} {
		if err := s.FS.Mkdir(name); err != nil {
			t.Errorf("Mkdir(%q) = %v", name, err)
		}
	}
	if got := tree(t, s.FS); !slices.Equal(got, []string{"a", "a/b", "a/b/c"}) {
		t.Errorf("there is %q", got)
	}
}

func remove(t *testing.T, s System) {
	put(t, s.FS, "a/b/c", "x")
	put(t, s.FS, "a/d", "x")
	put(t, s.FS, "ab", "x")
	if err := s.FS.Remove("a"); err != nil {
		t.Fatal(err)
	}
	wantIs(t, "second removal", s.FS.Remove("a"), fs.ErrNotExist)
	wantIs(t, "removal below nothing", s.FS.Remove("a/b"), fs.ErrNotExist)
	if got := tree(t, s.FS); !slices.Equal(got, []string{"ab"}) {
		t.Errorf("there is %q", got)
	}
}

func rename(t *testing.T, s System) {
	put(t, s.FS, "a/one", "1")
	put(t, s.FS, "two", "2")
	if err := s.FS.Mkdir("empty"); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		from, to string
		err      error
	}{
		{"two", "two", nil},
		{"a/one", "two", nil},
		{"two", "new/folder/three", nil},
		{"none", "x", fs.ErrNotExist},
		{"new/folder/three", "a", fs.ErrExist},
		{"a", "new", fs.ErrExist},
		{"a", "new/folder/three", fs.ErrExist},
		{"new", "empty", fs.ErrExist},
		{"new", "moved/new", nil},
	}
	for _, step := range steps {
		err := s.FS.Rename(step.from, step.to)
		if step.err != nil {
			wantIs(t, "Rename "+step.from+" "+step.to, err, step.err)
		} else if err != nil {
			t.Errorf("Rename(%q, %q) = %v", step.from, step.to, err)
		}
	}
	want(t, s.FS, "moved/new/folder/three", "1")
	wanted := []string{"a", "empty", "moved", "moved/new", "moved/new/folder", "moved/new/folder/three"}
	if diff := cmp.Diff(wanted, tree(t, s.FS)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func depth(t *testing.T, s System) {
	put(t, s.FS, "1/2/3", "x")
	for op, err := range map[string]error{
		"WriteFile": s.FS.WriteFile("1/2/4/4", nil, nil),
		"Mkdir":     s.FS.Mkdir("a/b/c/d"),
		"Rename":    s.FS.Rename("1/2/3", "a/b/c/d"),
	} {
		wantLimit(t, op, err, "MaxDepth", 4, 3)
	}
	if got := tree(t, s.FS); !slices.Equal(got, []string{"1", "1/2", "1/2/3"}) {
		t.Errorf("there is %q", got)
	}
	_, err := s.FS.Stat("1/2/3/4/5")
	if err == nil || errors.Is(err, files.ErrLimit) {
		t.Errorf("Stat of a deep name = %v; the limit is for what is made", err)
	}
}

func segment(t *testing.T, s System) {
	put(t, s.FS, "ünïcö/12345", "x")
	for op, err := range map[string]error{
		"WriteFile": s.FS.WriteFile("a/ünïcöd", nil, nil),
		"Mkdir":     s.FS.Mkdir("ünïcöd/a"),
		"Rename":    s.FS.Rename("ünïcö", "123456"),
	} {
		wantLimit(t, op, err, "MaxSegment", 6, 5)
	}
}

func readSize(t *testing.T, s System) {
	put(t, s.FS, "ten", "0123456789")
	put(t, s.FS, "eleven", "0123456789X")
	want(t, s.FS, "ten", "0123456789")
	_, err := s.FS.ReadFile("eleven")
	wantLimit(t, "ReadFile", err, "MaxRead", 11, 10)
	file, err := s.FS.Open("eleven")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got, err := io.ReadAll(file); err != nil || len(got) != 11 {
		t.Errorf("an open file reads %q, %v; it has no limit", got, err)
	}
}

func writeSize(t *testing.T, s System) {
	put(t, s.FS, "file", "0123456789")
	wantLimit(t, "WriteFile", s.FS.WriteFile("file", []byte("0123456789X"), nil), "MaxWrite", 11, 10)
	wantLimit(t, "append", s.FS.WriteFile("file", []byte("X"), &files.WriteOptions{Append: true}), "MaxWrite", 11, 10)
	want(t, s.FS, "file", "0123456789")
}

func noLimits(t *testing.T, s System) {
	name := strings.Repeat("d/", 20) + strings.Repeat("n", 100)
	put(t, s.FS, name, "x")
	want(t, s.FS, name, "x")
}

func defaultLimits(t *testing.T, s System) {
	deep, long := strings.Repeat("d/", 16)+"f", strings.Repeat("ü", 81)
	put(t, s.FS, deep[2:], "x")
	put(t, s.FS, long[utf8.RuneLen('ü'):], "x")
	wantLimit(t, "deep", s.FS.WriteFile(deep, nil, nil), "MaxDepth", 17, 16)
	wantLimit(t, "long", s.FS.WriteFile(long, nil, nil), "MaxSegment", 81, 80)
	wantLimit(t, "large", s.FS.WriteFile("f", make([]byte, 32<<20+1), nil), "MaxWrite", 32<<20+1, 32<<20)
}
