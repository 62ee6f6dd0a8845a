// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package filetree

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

func (r *Root) create(path string) (f *os.File, err error) {
	err = r.in(path, func(dir *os.Root, name string) (err error) {
		f, err = dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		return err
	})
	return f, err
}

func (r *Root) mkdir(path string, perm fs.FileMode) error {
	return r.in(path, func(dir *os.Root, name string) error { return dir.Mkdir(name, perm.Perm()) })
}

func (r *Root) symlink(target, path string) error {
	return r.in(path, func(dir *os.Root, name string) error { return dir.Symlink(target, name) })
}

func (r *Root) mkfifo(string, fs.FileMode) error { return errors.ErrUnsupported }

// link and rename need both folders in one root. They are checked for links before.
func (r *Root) link(old, path string) error {
	return r.both(old, path, r.root.Link)
}

func (r *Root) both(old, path string, do func(old, path string) error) error {
	if err := cmp.Or(r.reach(old), r.reach(path)); err != nil {
		return err
	}
	return do(filepath.FromSlash(old), filepath.FromSlash(path))
}

// reach fails if a folder of a path is a link, or not there.
func (r *Root) reach(path string) error {
	return r.in(path, func(*os.Root, string) error { return nil })
}

func (r *Root) rename(old string, to *Root, path string, replace bool) error {
	if now, err := to.lstat(path); err == nil {
		if !replace {
			return fs.ErrExist
		}
		if was, err := r.lstat(old); err == nil && (was.Kind == Dir || now.Kind == Dir) {
			if err := to.remove(path); err != nil {
				return err
			}
		}
	}
	if r == to {
		return r.both(old, path, r.root.Rename)
	}
	if err := cmp.Or(r.reach(old), to.reach(path)); err != nil {
		return err
	}
	return os.Rename(filepath.Join(r.dir, filepath.FromSlash(old)), filepath.Join(to.dir, filepath.FromSlash(path)))
}

func (r *Root) remove(path string) error {
	return r.in(path, func(dir *os.Root, name string) error { return dir.Remove(name) })
}

func (r *Root) removeAll(path string) error {
	err := r.in(path, func(dir *os.Root, name string) error { return dir.RemoveAll(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// setMeta leaves links alone, since this system's calls would follow them.
func (r *Root) setMeta(path string, want Entry) error {
	return r.in(path, func(dir *os.Root, name string) error {
		now, err := entryIn(dir, name, path)
		if err != nil {
			return err
		}
		if now.Kind != want.Kind {
			return ErrKind
		}
		if now.Kind == Link {
			return nil
		}
		if now.UID != want.UID || now.GID != want.GID {
			_ = dir.Lchown(name, int(want.UID), int(want.GID)) // if this process may
		}
		if err := dir.Chmod(name, want.Perm); err != nil {
			return err
		}
		if now.ModTime == want.ModTime {
			return nil
		}
		return dir.Chtimes(name, time.Time{}, time.Unix(0, want.ModTime))
	})
}
