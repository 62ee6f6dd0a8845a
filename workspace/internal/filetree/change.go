// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"io/fs"
	"os"
)

// Create makes a new file that only its owner can use, opened for reading and writing.
func (r *Root) Create(path string) (*os.File, error) {
	clean, err := cleanBelow(path)
	if err != nil {
		return nil, err
	}
	f, err := r.create(clean)
	return f, failed("create", path, err)
}

// Mkdir makes a folder. Its permissions are less the process's umask.
func (r *Root) Mkdir(path string, perm fs.FileMode) error {
	return below("mkdir", path, func(path string) error { return r.mkdir(path, perm) })
}

// MkdirAll makes a folder and those above it that are missing.
func (r *Root) MkdirAll(path string, perm fs.FileMode) error {
	clean, err := Clean(path)
	if err != nil {
		return err
	}
	return failed("mkdir", path, r.mkdirAll(clean, perm))
}

// mkdirAll looks from the bottom up, since most folders are there, and then makes from the top down.
func (r *Root) mkdirAll(path string, perm fs.FileMode) error {
	e, err := r.lstat(path)
	if err == nil {
		return isFolder(e)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		if err := r.mkdir(path[:i], perm); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	err = r.mkdir(path, perm)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if e, err = r.lstat(path); err != nil { // another process made something meanwhile
		return err
	}
	return isFolder(e)
}

func isFolder(e Entry) error {
	switch e.Kind {
	case Dir:
		return nil
	case Link:
		return ErrLink
	}
	return fs.ErrExist
}

// Symlink makes a symbolic link. Its target is text, and is not followed.
func (r *Root) Symlink(target, path string) error {
	return below("symlink", path, func(path string) error { return r.symlink(target, path) })
}

// Link gives a file a second name.
func (r *Root) Link(old, path string) error {
	return below("link", old, func(old string) error {
		return below("link", path, func(path string) error { return r.link(old, path) })
	})
}

// Mkfifo makes a pipe. Its permissions are less the process's umask.
func (r *Root) Mkfifo(path string, perm fs.FileMode) error {
	return below("mkfifo", path, func(path string) error { return r.mkfifo(path, perm) })
}

// Rename moves an entry, and replaces what is there unless that is a folder with something in it.
func (r *Root) Rename(old, path string) error { return r.MoveTo(old, r, path) }

// MoveTo is [Root.Rename] into another root. Across file systems it fails with syscall.EXDEV.
func (r *Root) MoveTo(path string, to *Root, newPath string) error {
	return r.move(path, to, newPath, true)
}

// MoveNew moves an entry as [Root.MoveTo] does, but replaces nothing: it fails with fs.ErrExist.
func (r *Root) MoveNew(path string, to *Root, newPath string) error {
	return r.move(path, to, newPath, false)
}

func (r *Root) move(path string, to *Root, newPath string, replace bool) error {
	return below("rename", path, func(path string) error {
		return below("rename", newPath, func(newPath string) error { return r.rename(path, to, newPath, replace) })
	})
}

// Remove removes a file, a link or an empty folder.
func (r *Root) Remove(path string) error { return below("remove", path, r.remove) }

// RemoveAll removes an entry, if it exists, and everything below it, also from folders that allow nothing.
func (r *Root) RemoveAll(path string) error { return below("remove", path, r.removeAll) }

// SetMeta gives the entry at e.Path the permissions, owner, extended attributes and times of e, as far as they differ. The
// owner is changed only if this process may; links have no permissions. An entry of another kind is refused with [ErrKind].
func (r *Root) SetMeta(e Entry) error {
	path, err := Clean(e.Path)
	if err != nil {
		return err
	}
	return failed("set metadata", e.Path, r.setMeta(path, e))
}

// below does something with the cleaned path of an entry below the root. An error that names a path already keeps it.
func below(op, path string, do func(path string) error) error {
	clean, err := cleanBelow(path)
	if err != nil {
		return err
	}
	err = do(clean)
	if _, named := errors.AsType[*fs.PathError](err); named {
		return err
	}
	return failed(op, path, err)
}
