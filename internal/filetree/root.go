// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

var errNotYet = errors.New("filetree: not built yet")

// A Root is a folder that is held open. Its methods take paths relative to it, with slashes. They refuse
// paths that climb out, and those of which a folder has become a link.
type Root struct{ dir string }

// Open opens a folder. The last element of its path may be a link; what is below may not.
func Open(dir string) (*Root, error) { return nil, errNotYet }

// Dir is the path by which the folder was opened, absolute.
func (r *Root) Dir() string { return r.dir }

// Close gives up the handle.
func (r *Root) Close() error { return nil }

// Lstat looks at one entry.
func (r *Root) Lstat(path string) (Entry, error) { return Entry{}, errNotYet }

// ReadDir looks at the entries of a folder, sorted by name.
func (r *Root) ReadDir(dir string) ([]Entry, error) { return nil, errNotYet }

// WalkOptions narrows a [Root.Walk]. Nil and the zero value walk everything.
type WalkOptions struct {
	// Skip reports an entry that is left out, with everything below it. Folders that it reports are
	// never opened. It is called from several goroutines.
	Skip func(e Entry) bool
	// From is where to begin. Empty means the root.
	From string
	// NoXattrs leaves the extended attributes out, which cost a system call for each entry.
	NoXattrs bool
}

// Walk looks at everything below the root, the root itself left out, and returns it sorted by path: what
// is in a folder comes after it. What disappears meanwhile is left out. Folders that cannot be read are
// reported in the error, with all else in the list.
func (r *Root) Walk(ctx context.Context, opts *WalkOptions) ([]Entry, error) { return nil, errNotYet }

// OpenFile opens a regular file for reading, and looks at what was opened. Anything else is refused, and
// nothing blocks.
func (r *Root) OpenFile(path string) (*os.File, Entry, error) { return nil, Entry{}, errNotYet }

// Create makes a new file that only its owner can use, opened for writing.
func (r *Root) Create(path string) (*os.File, error) { return nil, errNotYet }

// Mkdir makes a folder.
func (r *Root) Mkdir(path string, perm fs.FileMode) error { return errNotYet }

// MkdirAll makes a folder and those above it that are missing.
func (r *Root) MkdirAll(path string, perm fs.FileMode) error { return errNotYet }

// Symlink makes a symbolic link. Its target is text, which nobody follows here.
func (r *Root) Symlink(target, path string) error { return errNotYet }

// Link gives a file a second name.
func (r *Root) Link(old, path string) error { return errNotYet }

// Mkfifo makes a pipe.
func (r *Root) Mkfifo(path string, perm fs.FileMode) error { return errNotYet }

// Rename moves an entry, and replaces what is there unless that is a folder with something in it.
func (r *Root) Rename(old, path string) error { return errNotYet }

// MoveTo moves an entry into another root. Across file systems it fails with syscall.EXDEV.
func (r *Root) MoveTo(path string, to *Root, newPath string) error { return errNotYet }

// Remove removes a file, a link or an empty folder.
func (r *Root) Remove(path string) error { return errNotYet }

// RemoveAll removes an entry and everything below it, also from folders that allow nothing.
func (r *Root) RemoveAll(path string) error { return errNotYet }

// SetMeta gives the entry at e.Path the permissions, owner, extended attributes and times of e, as far as
// they differ. The owner is changed only if this process may; links have no permissions.
func (r *Root) SetMeta(e Entry) error { return errNotYet }
