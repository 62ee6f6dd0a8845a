// SPDX-License-Identifier: Apache-2.0

package filestest

import (
	"io/fs"
	"math"
	"slices"
	"testing"

	"github.com/drover-agents/drover/workspace/files"
)

// A System is a file system to check.
type System struct {
	// FS is empty.
	FS files.FS
	// Symlink makes a symbolic link in it, in a folder that is there. Nil skips what needs links.
	Symlink func(target, name string) error
}

// Run checks every contract on a file system of its own. Open makes it, empty and with the limits that it
// is given, and registers its clean-up with t.
func Run(t *testing.T, open func(t *testing.T, opts *files.Options) System) {
	contracts := []struct {
		name  string
		opts  *files.Options
		links bool
		check func(t *testing.T, s System)
	}{
		{"it is a file system of io/fs", nil, false, ioFS},
		{"it is one of io/fs with links", nil, true, ioFSWithLinks},
		{"bad names are refused with a reason", nil, false, badNames},
		{"a write makes a file and its folders", nil, false, writeNew},
		{"a write replaces the content and keeps the permissions", nil, false, overwrite},
		{"a write can refuse what is there", nil, false, createOnly},
		{"an append adds to the content", nil, false, appendTo},
		{"a file that its owner may not write stays", nil, false, readOnlyFile},
		{"a folder is not written, a file is no folder", nil, false, wrongKind},
		{"caller may reuse its buffers", nil, false, buffers},
		{"an open file stays what it was", nil, false, openStays},
		{"folders are made with those above", nil, false, mkdir},
		{"a removed folder takes everything with it", nil, false, remove},
		{"a rename moves, and replaces only files", nil, false, rename},
		{"names have a depth", &files.Options{MaxDepth: 3}, false, depth},
		{"segments have a length", &files.Options{MaxSegment: 5}, false, segment},
		{"reads have a size", &files.Options{MaxRead: 10}, false, readSize},
		{"writes have a size", &files.Options{MaxWrite: 10}, false, writeSize},
		{"a negative limit means no limit", &files.Options{MaxDepth: -1, MaxSegment: -1, MaxRead: -1, MaxWrite: -1}, false, noLimits},
		{"a limit may be as large as numbers are", &files.Options{
			MaxDepth: math.MaxInt, MaxSegment: math.MaxInt, MaxRead: math.MaxInt64, MaxWrite: math.MaxInt64,
		}, false, noLimits},
		{"default limits", nil, false, defaultLimits},
		{"links inside are followed", nil, true, linksInside},
		{"links that lead out are refused", nil, true, linksOut},
		{"links that lead nowhere", nil, true, linksNowhere},
		{"remove and rename are about the link", nil, true, linksThemselves},
		{"glob", nil, false, glob},
		{"glob does not enter links", nil, true, globLinks},
		{"grep", nil, false, grep},
		{"readers see a whole file while others write", nil, false, wholeFiles},
		{"appends from many goroutines all arrive", nil, false, manyAppends},
		{"only one of many creates a file", nil, false, oneCreates},
		{"many do everything at once", nil, false, manyAtOnce},
	}
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, c.opts)
			if c.links && s.Symlink == nil {
				t.Skip("this system makes no links")
			}
			c.check(t, s)
		})
	}
}

// RunReadOnly checks that a view of a file system can be read and not changed. Writable is what it is a
// view of.
func RunReadOnly(t *testing.T, writable files.FS, view files.FS) {
	put(t, writable, "dir/file", "content")
	want(t, view, "dir/file", "content")
	for name, err := range map[string]error{
		"WriteFile": view.WriteFile("dir/file", nil, nil),
		"new file":  view.WriteFile("new", nil, nil),
		"Mkdir":     view.Mkdir("new"),
		"Remove":    view.Remove("dir"),
		"Rename":    view.Rename("dir", "new"),
	} {
		wantIs(t, name, err, fs.ErrPermission)
	}
	want(t, writable, "dir/file", "content")
	if got := tree(t, writable); !slices.Equal(got, []string{"dir", "dir/file"}) {
		t.Errorf("after refused changes there is %q", got)
	}
}
