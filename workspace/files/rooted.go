// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"
	"sync"
)

// A fileStore has the files of a [rooted]. Reading methods take names that were checked, and follow links that stay
// inside. Writing ones take names without links, one at a time under a lock. None of them may leave the root, even
// if a folder is exchanged for a link meanwhile.
type fileStore interface {
	linkReader
	open(name string) (fs.File, error)
	stat(name string) (fs.FileInfo, error)
	readDir(name string) ([]fs.DirEntry, error)
	// write puts a file where it is named, in one step. Old is what is there, or nil.
	write(name string, data []byte, old fs.FileInfo, opts WriteOptions) error
	mkdir(name string) error // one folder, in one that is there
	removeAll(name string) error
	rename(oldName, newName string) error
}

// rooted is an [FS] over a store: all rules and limits are here, so that every store keeps the same.
type rooted struct {
	files fileStore
	opts  Options
	mu    sync.Mutex // held by the goroutine that writes
}

func newRooted(files fileStore, opts *Options) *rooted {
	return &rooted{files: files, opts: opts.withDefaults()}
}

// Open opens a file or a folder for reading.
func (r *rooted) Open(name string) (fs.File, error) {
	return read("open", name, r.files.open)
}

// Stat looks at what a name leads to.
func (r *rooted) Stat(name string) (fs.FileInfo, error) {
	return read("stat", name, r.files.stat)
}

// Lstat looks at a name, which may be a link.
func (r *rooted) Lstat(name string) (fs.FileInfo, error) {
	return read("lstat", name, r.files.Lstat)
}

// ReadLink returns the target of a link, wherever it leads.
func (r *rooted) ReadLink(name string) (string, error) {
	return read("readlink", name, r.files.ReadLink)
}

// ReadDir returns the entries of a folder, sorted by name.
func (r *rooted) ReadDir(name string) ([]fs.DirEntry, error) {
	return read("readdir", name, r.files.readDir)
}

// ReadFile returns the content of a file, which may have MaxRead bytes.
func (r *rooted) ReadFile(name string) ([]byte, error) {
	return read("read", name, r.readFile)
}

func read[T any](op, name string, do func(string) (T, error)) (T, error) {
	var none T
	if err := checkName(op, name); err != nil {
		return none, err
	}
	got, err := do(name)
	if err != nil {
		return none, pathError(op, name, bareError(err))
	}
	return got, nil
}

func (r *rooted) readFile(name string) ([]byte, error) {
	file, err := r.files.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errIsFolder
	case r.opts.MaxRead < 0:
		return io.ReadAll(file)
	case info.Size() > r.opts.MaxRead:
		return nil, &LimitError{Path: name, Option: "MaxRead", Got: info.Size(), Limit: r.opts.MaxRead}
	}
	// It may be larger than its size, or grow meanwhile.
	return readUpTo(file, name, r.opts.MaxRead)
}

func readUpTo(file io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, min(limit, math.MaxInt64-1)+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &LimitError{Path: name, Option: "MaxRead", Got: int64(len(data)), Limit: limit}
	}
	return data, err
}

// WriteFile writes a file.
func (r *rooted) WriteFile(name string, data []byte, opts *WriteOptions) error {
	full := WriteOptions{Perm: 0o644}
	if opts != nil {
		full = *opts
		full.Perm = cmp.Or(opts.Perm.Perm(), 0o644)
	}
	return r.change("write", name, func(name string) error {
		name, err := resolve(r.files, name, !full.CreateOnly) // a link takes the name too
		if err != nil {
			return err
		}
		old, err := r.writable(name, full.CreateOnly)
		if err != nil {
			return err
		}
		if old == nil {
			if err := r.opts.checkNew(name); err != nil {
				return err
			}
		}
		size := int64(len(data))
		if old != nil && full.Append {
			size += old.Size()
		}
		if r.opts.MaxWrite >= 0 && size > r.opts.MaxWrite {
			return &LimitError{Path: name, Option: "MaxWrite", Got: size, Limit: r.opts.MaxWrite}
		}
		if err := r.mkdirAll(path.Dir(name)); err != nil {
			return err
		}
		return r.files.write(name, data, old, full)
	})
}

// writable looks at what a write would replace: a file, or nothing.
func (r *rooted) writable(name string, createOnly bool) (fs.FileInfo, error) {
	old, err := r.files.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case createOnly:
		return nil, fs.ErrExist
	case old.IsDir():
		return nil, errIsFolder
	case !old.Mode().IsRegular():
		return nil, errNoFile
	case old.Mode().Perm()&0o200 == 0:
		return nil, errReadOnly
	}
	return old, nil
}

// Mkdir makes a folder and those above it.
func (r *rooted) Mkdir(name string) error {
	return r.change("mkdir", name, func(name string) error {
		name, err := resolve(r.files, name, true)
		if err != nil {
			return err
		}
		return r.mkdirAll(name)
	})
}

func (r *rooted) mkdirAll(name string) error {
	info, err := r.files.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fs.ErrExist
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := r.opts.checkNew(name); err != nil {
		return err
	}
	if err := r.mkdirAll(path.Dir(name)); err != nil {
		return err
	}
	if err := r.files.mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Remove removes a file, a link, or a folder with everything in it.
func (r *rooted) Remove(name string) error {
	return r.change("remove", name, func(name string) error {
		name, err := resolve(r.files, name, false)
		if err != nil {
			return err
		}
		if name == "." {
			return errRoot
		}
		if _, err := r.files.Lstat(name); err != nil {
			return err
		}
		return r.files.removeAll(name)
	})
}

// Rename moves a file, a link or a folder.
func (r *rooted) Rename(oldName, newName string) error {
	if err := checkName("rename", oldName); err != nil {
		return err
	}
	return r.change("rename", newName, func(newName string) error {
		from, err := resolve(r.files, oldName, false)
		if err != nil {
			return err
		}
		to, err := resolve(r.files, newName, false)
		if err != nil {
			return err
		}
		return r.move(from, to)
	})
}

func (r *rooted) move(from, to string) error {
	old, err := r.files.Lstat(from)
	switch {
	case err != nil:
		return err
	case from == "." || to == ".":
		return errRoot
	case from == to:
		return nil
	case strings.HasPrefix(to, from+"/"):
		return errInside
	}
	switch there, err := r.files.Lstat(to); {
	case errors.Is(err, fs.ErrNotExist):
		if err := r.opts.checkNew(to); err != nil {
			return err
		}
	case err != nil:
		return err
	case old.IsDir() || there.IsDir():
		return fs.ErrExist
	}
	if err := r.mkdirAll(path.Dir(to)); err != nil {
		return err
	}
	return r.files.rename(from, to)
}

// change checks a name and lets one change happen at a time.
func (r *rooted) change(op, name string, do func(name string) error) error {
	if err := checkName(op, name); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := do(name); err != nil {
		return pathError(op, name, bareError(err))
	}
	return nil
}
