// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func (r *Root) change(path string, op func(p heldName) error, more ...need) error {
	return try(func() error {
		p, err := r.hold(path)
		if err != nil {
			return err
		}
		defer p.close()
		return op(p)
	}, append(more, r.parentOf(path))...)
}

func (r *Root) create(path string) (f *os.File, err error) {
	err = r.change(path, func(p heldName) error {
		fd, err := again(func() (int, error) {
			return unix.Openat(p.dir, p.name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		})
		if err == nil {
			f = os.NewFile(uintptr(fd), filepath.Join(r.dir, path))
		}
		return err
	})
	if err != nil && f != nil {
		_ = f.Close()
		return nil, err
	}
	return f, err
}

func (r *Root) mkdir(path string, perm fs.FileMode) error {
	return r.change(path, func(p heldName) error { return unix.Mkdirat(p.dir, p.name, modeOf(perm)) })
}

func (r *Root) symlink(target, path string) error {
	return r.change(path, func(p heldName) error { return unix.Symlinkat(target, p.dir, p.name) })
}

func (r *Root) mkfifo(path string, perm fs.FileMode) error {
	return r.change(path, func(p heldName) error { return unix.Mknodat(p.dir, p.name, unix.S_IFIFO|modeOf(perm), 0) })
}

func (r *Root) link(old, path string) error {
	dir, _ := split(old)
	return r.change(path, func(p heldName) error {
		from, err := r.hold(old)
		if err != nil {
			return err
		}
		defer from.close()
		return unix.Linkat(from.dir, from.name, p.dir, p.name, 0)
	}, need{r, dir, toPass})
}

func (r *Root) rename(old string, to *Root, path string, replace bool) error {
	return to.change(path, func(p heldName) error {
		from, err := r.hold(old)
		if err != nil {
			return err
		}
		defer from.close()
		if replace {
			return renameOver(from, p)
		}
		return renameNew(from, p)
	}, r.parentOf(old), need{r, old, toChange}) // a folder's entry ".." is changed too
}

// renameOver replaces also a file by a folder, and an empty folder by a file, by way of an exchange.
func renameOver(from, to heldName) error {
	err := unix.Renameat(from.dir, from.name, to.dir, to.name)
	switch {
	case err == nil:
		return dropTwin(from, to)
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.ENOTDIR):
		return err
	}
	flags := 0
	if errors.Is(err, unix.EISDIR) {
		flags = unix.AT_REMOVEDIR
	}
	if err := exchange(from, to); err != nil {
		return err
	}
	if err := unix.Unlinkat(from.dir, from.name, flags); err != nil {
		return errors.Join(err, exchange(from, to))
	}
	return nil
}

func exchange(a, b heldName) error {
	return unix.Renameat2(a.dir, a.name, b.dir, b.name, unix.RENAME_EXCHANGE)
}

// dropTwin removes the old name if both names were the same file's: then the kernel has done nothing.
func dropTwin(from, to heldName) error {
	var a, b unix.Stat_t
	if unix.Fstatat(from.dir, from.name, &a, unix.AT_SYMLINK_NOFOLLOW) != nil || a.Nlink < 2 {
		return nil
	}
	if unix.Fstatat(to.dir, to.name, &b, unix.AT_SYMLINK_NOFOLLOW) != nil || a.Ino != b.Ino || a.Dev != b.Dev {
		return nil
	}
	if from.name == to.name && sameFolder(from.dir, to.dir) {
		return nil // one name, not two
	}
	return unix.Unlinkat(from.dir, from.name, 0)
}

func sameFolder(a, b int) bool {
	var x, y unix.Stat_t
	return unix.Fstat(a, &x) != nil || unix.Fstat(b, &y) != nil || x.Ino == y.Ino && x.Dev == y.Dev
}

// renameNew looks first only where the file system cannot do both at once.
func renameNew(from, to heldName) error {
	err := unix.Renameat2(from.dir, from.name, to.dir, to.name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	var st unix.Stat_t
	switch look := unix.Fstatat(to.dir, to.name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case look == nil:
		return unix.EEXIST
	case !errors.Is(look, unix.ENOENT):
		return look
	}
	return unix.Renameat(from.dir, from.name, to.dir, to.name)
}

func (r *Root) remove(path string) error {
	return r.change(path, func(p heldName) error {
		err := unlink(p.dir, p.name)
		if errors.Is(err, unix.EISDIR) {
			return unix.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// unlink removes an entry that is not a folder. For folders it fails with EISDIR.
func unlink(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if !errors.Is(err, unix.EPERM) { // the error of other systems for folders
		return err
	}
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	return err
}
