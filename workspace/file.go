// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/drover-agents/drover/internal/safetext"
)

// A File is a file, a folder or a link of a [Tree] at a [Checkpoint]. It does not change until that is released.
type File struct {
	// Path is relative to the tree, with slashes.
	Path string
	// Mode has the type and the permission bits.
	Mode fs.FileMode
	// Size is that of a regular file, and zero for all else.
	Size    int64
	ModTime time.Time
	// Hash is the SHA-256 of the content in hexadecimal, for regular files.
	Hash string
	// Target is where a symbolic link leads.
	Target string

	open func() (io.ReadCloser, error)
}

// String is the mode, the size in bytes, and the path.
func (f File) String() string { return fmt.Sprintf("%s %d %s", f.Mode, f.Size, safetext.Line(f.Path)) }

// Open opens the content of a regular file.
func (f *File) Open() (io.ReadCloser, error) {
	if f.open == nil {
		return nil, &fs.PathError{Op: "open", Path: f.Path, Err: fs.ErrInvalid}
	}
	return f.open()
}

// A Change is what became of a path between two checkpoints. Before is nil if it was created, After if it
// was deleted; otherwise they differ in content, mode, type or time.
type Change struct {
	Path          string
	Before, After *File
}

// String is "created", "changed" or "deleted", and the path.
func (c Change) String() string {
	what := "changed"
	switch {
	case c.Before == nil:
		what = "created"
	case c.After == nil:
		what = "deleted"
	}
	return what + " " + safetext.Line(c.Path)
}
