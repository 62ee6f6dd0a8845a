// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"io"
	"io/fs"
	"time"
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
