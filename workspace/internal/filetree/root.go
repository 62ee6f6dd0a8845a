// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"os"
	"path/filepath"
)

// A Root is a folder that is held open. Its methods take paths relative to it, with slashes. They refuse paths that
// climb out, and those of which a folder has become a link. They may be called by several goroutines at once.
//
// If permissions forbid an operation, and the file or folder belongs to this user, they are widened for the moment
// and then set back. Such an entry looks touched, though only the time of its last change differs.
type Root struct {
	dir    string
	strict bool
	handle // what the system holds
}

// Open opens a folder. The last element of its path may be a link; what is below may not.
func Open(dir string) (*Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &Root{dir: abs}
	if err := r.open(abs); err != nil {
		return nil, failed("open", dir, err)
	}
	return r, nil
}

// OpenStrict opens a folder without ever widening a permission: what this user may not read is not read.
func OpenStrict(dir string) (*Root, error) {
	r, err := Open(dir)
	if err == nil {
		r.strict = true
	}
	return r, err
}

// Dir is the path by which the folder was opened, absolute.
func (r *Root) Dir() string { return r.dir }

// Close gives up the handle. Running operations fail with fs.ErrClosed.
func (r *Root) Close() error { return r.close() }

// Lstat looks at one entry.
func (r *Root) Lstat(path string) (Entry, error) {
	clean, err := Clean(path)
	if err != nil {
		return Entry{}, err
	}
	e, err := r.lstat(clean)
	return e, failed("lstat", path, err)
}

// ReadDir looks at the entries of a folder, sorted by name.
func (r *Root) ReadDir(dir string) ([]Entry, error) {
	clean, err := Clean(dir)
	if err != nil {
		return nil, err
	}
	entries, err := r.readDir(clean)
	return entries, failed("readdir", dir, err)
}

// OpenFile opens a regular file and looks at what was opened. All else is refused with [ErrNotFile], and nothing blocks.
func (r *Root) OpenFile(path string) (*os.File, Entry, error) {
	clean, err := Clean(path)
	if err != nil {
		return nil, Entry{}, err
	}
	f, e, err := r.openFile(clean)
	return f, e, failed("open", path, err)
}

// Xattrs reads the extended attributes of an entry, as [Entry] has them.
func (r *Root) Xattrs(path string) (string, error) {
	clean, err := Clean(path)
	if err != nil {
		return "", err
	}
	attrs, err := r.xattrs(clean)
	return attrs, failed("xattrs", path, err)
}
