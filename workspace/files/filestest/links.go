// SPDX-License-Identifier: Apache-2.0

package filestest

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/files"
)

func linksInside(t *testing.T, s System) {
	put(t, s.FS, "real/file", "before")
	put(t, s.FS, "real/sub/x", "x")
	link(t, s, "real", "dir")
	link(t, s, "../dir/file", "real/again") // through the other one
	link(t, s, "dir/sub/../file", "odd")    // .. of what the link leads to
	for _, name := range []string{"dir/file", "real/again", "odd", "dir/again"} {
		want(t, s.FS, name, "before")
	}
	put(t, s.FS, "real/again", "written")
	put(t, s.FS, "dir/new/file", "new")
	want(t, s.FS, "real/file", "written")
	want(t, s.FS, "real/new/file", "new")
	for name, target := range map[string]string{"real/again": "../dir/file", "dir": "real"} {
		if got, err := s.FS.ReadLink(name); err != nil || got != target {
			t.Errorf("ReadLink(%q) = %q, %v; want %q: the link stays", name, got, err, target)
		}
	}
	if entries, err := s.FS.ReadDir("dir"); err != nil || len(entries) != 4 {
		t.Errorf("ReadDir of a link = %v, %v", entries, err)
	}
	if info, err := s.FS.Stat("dir"); err != nil || !info.IsDir() || info.Name() != "dir" {
		t.Errorf("Stat of a link = %v, %v; want the folder", info, err)
	}
	if info, err := s.FS.Lstat("dir"); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("Lstat of a link = %v, %v; want the link", info, err)
	}
}

func linksOut(t *testing.T, s System) {
	put(t, s.FS, "a/b", "x")
	targets := []string{"..", "../outside", "/", "/etc/passwd", "a/../../outside", "near"}
	link(t, s, ".", "near")
	link(t, s, "near/../..", "far") // what is lexically inside may be outside
	for i, target := range append(targets[:len(targets)-1:len(targets)-1], "far") {
		name := string(rune('p' + i))
		link(t, s, target, name)
		for op, err := range followingCalls(s.FS, name) {
			wantIs(t, op+" through "+target, err, workspace.ErrSecurity)
			if e, ok := errors.AsType[*workspace.SecurityError](err); ok && e.Path != name {
				t.Errorf("%s through %s names %q, want the link", op, target, e.Path)
			}
		}
		if got, err := s.FS.ReadLink(name); err != nil || got != target {
			t.Errorf("ReadLink(%q) = %q, %v; it can be looked at", name, got, err)
		}
		if err := s.FS.Remove(name); err != nil {
			t.Errorf("Remove(%q) = %v; the link itself may go", name, err)
		}
	}
}

// followingCalls are those that follow a link, at the end of the name and before.
func followingCalls(fsys files.FS, name string) map[string]error {
	errs := map[string]error{
		"WriteFile":        fsys.WriteFile(name, nil, nil),
		"WriteFile below":  fsys.WriteFile(name+"/x", nil, nil),
		"Mkdir":            fsys.Mkdir(name + "/x"),
		"Remove":           fsys.Remove(name + "/x"),
		"Rename from":      fsys.Rename(name+"/x", "new"),
		"Rename to":        fsys.Rename("a/b", name+"/x"),
		"WriteFile append": fsys.WriteFile(name+"/x", nil, &files.WriteOptions{Append: true}),
	}
	_, errs["Open"] = fsys.Open(name)
	_, errs["Open below"] = fsys.Open(name + "/x")
	_, errs["Stat"] = fsys.Stat(name)
	_, errs["Lstat"] = fsys.Lstat(name + "/x")
	_, errs["ReadLink"] = fsys.ReadLink(name + "/x")
	_, errs["ReadDir"] = fsys.ReadDir(name)
	_, errs["ReadFile"] = fsys.ReadFile(name)
	return errs
}

func linksNowhere(t *testing.T, s System) {
	put(t, s.FS, "dir/file", "x")
	link(t, s, "dir/new", "later")
	link(t, s, "b", "a")
	link(t, s, "a", "b")
	_, err := s.FS.ReadFile("later")
	wantIs(t, "read of a link to nothing", err, fs.ErrNotExist)
	create := &files.WriteOptions{CreateOnly: true}
	wantIs(t, "create of a link to nothing", s.FS.WriteFile("later", []byte("now"), create), fs.ErrExist)
	_, err = s.FS.Lstat("dir/new")
	wantIs(t, "what it would have led to", err, fs.ErrNotExist)
	put(t, s.FS, "later", "now")
	want(t, s.FS, "dir/new", "now")
	wantIs(t, "create of a link to a file", s.FS.WriteFile("later", []byte("again"), create), fs.ErrExist)
	want(t, s.FS, "dir/new", "now")
	if err := s.FS.WriteFile("a", nil, nil); err == nil {
		t.Error("write to a circle of links = nil, want an error")
	}
	if _, err := s.FS.Open("a/x"); err == nil {
		t.Error("Open through a circle of links = nil, want an error")
	}
}

func linksThemselves(t *testing.T, s System) {
	put(t, s.FS, "dir/file", "x")
	link(t, s, "dir", "one")
	link(t, s, "dir/file", "two")
	if err := s.FS.Rename("one", "sub/three"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.FS.ReadLink("sub/three"); err != nil || got != "dir" {
		t.Errorf("ReadLink = %q, %v; want the link, moved", got, err)
	}
	put(t, s.FS, "plain", "p")
	if err := s.FS.Rename("plain", "two"); err != nil {
		t.Fatal(err)
	}
	want(t, s.FS, "two", "p")
	want(t, s.FS, "dir/file", "x")
	if err := s.FS.Remove("sub/three"); err != nil {
		t.Fatal(err)
	}
	link(t, s, "dir", "four")
	link(t, s, "dir/file", "five")
	for _, name := range []string{"four", "five"} {
		if err := s.FS.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	want(t, s.FS, "dir/file", "x")
	if diff := cmp.Diff([]string{"dir", "dir/file", "sub", "two"}, tree(t, s.FS)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func globLinks(t *testing.T, s System) {
	put(t, s.FS, "dir/x.go", "")
	link(t, s, "../dir", "dir/circle")
	got, err := files.Glob(s.FS, "**/*.go")
	if err != nil || !slices.Equal(got, []string{"dir/x.go"}) {
		t.Errorf("Glob = %q, %v; want each file once", got, err)
	}
}
