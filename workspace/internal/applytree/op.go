// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"os"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

type op struct {
	Path string
	// Expect, Want and Hash are those of the step; Now is what was found just before the journal.
	Expect, Now, Want *filetree.Entry
	Hash              string
	// Displace means that the present entry goes aside. Covered means that it goes with a folder above.
	Displace, Covered bool
	// Stage is the name in the stage folder of the entry that is renamed in, and Staged is that entry. An op is
	// done if and only if the name is gone.
	Stage  string
	Staged filetree.Entry
	// From is the path of the staged file until the op begins, if it is moved within the tree.
	From string
	// Link is the path that the file is a hard link to.
	Link string
	// Meta means that only permissions, owner and times are set, of an entry that is not a folder.
	Meta bool

	write func(dst *os.File) error
	// skip is set by trouble: the path is left as it is.
	skip bool
}

// look returns the entry at a path, and nil if it does not exist, or if a parent is no longer a folder.
func look(r *filetree.Root, path string) (*filetree.Entry, error) {
	e, err := r.Lstat(path)
	if filetree.Absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// difference describes how the present entry differs from the expected one, and is "" if it does not.
func difference(expect, now *filetree.Entry) string {
	switch {
	case expect == nil && now == nil:
		return ""
	case expect == nil:
		return "was made meanwhile"
	case now == nil:
		return "was removed meanwhile"
	case expect.Kind != now.Kind:
		return "has become a " + now.Kind.String() + " meanwhile"
	case !untouched(expect, now):
		return "was changed meanwhile"
	}
	return ""
}

// untouched compares a path at two moments. The times of a folder change with its entries, which are compared
// themselves. We touch a file of several names by renaming another name, and one that its owner may not read by reading it.
func untouched(before, now *filetree.Entry) bool {
	switch {
	case before.Kind != now.Kind:
		return false
	case now.Kind == filetree.Dir:
		return before.Perm == now.Perm && before.UID == now.UID && before.GID == now.GID
	case before.Stamp.Links > 1 || now.Stamp.Links > 1 || now.Perm&0o400 == 0:
		return sameFile(before, now)
	}
	return before.Stamp == now.Stamp && sameFile(before, now)
}

// sameFile is like untouched, for a look before and one after we renamed the file, which changes its stamp.
func sameFile(before, now *filetree.Entry) bool {
	return before.Kind == now.Kind && sameInode(before, now) &&
		before.Size == now.Size && before.ModTime == now.ModTime
}

func sameInode(a, b *filetree.Entry) bool { return a.Stamp.Ino == b.Stamp.Ino }

func at(e *filetree.Entry, path string) filetree.Entry {
	moved := *e
	moved.Path = path
	return moved
}
