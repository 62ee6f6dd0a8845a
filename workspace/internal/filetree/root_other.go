// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package filetree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// A handle is the system's own rooted folder. That follows links which stay below it; see folder.
type handle struct{ root *os.Root }

func (r *Root) open(dir string) (err error) {
	r.root, err = os.OpenRoot(dir)
	return err
}

func (r *Root) close() error { return r.root.Close() }

// folder opens a folder element by element, and looks before and after, so that none is a link. The caller closes it.
func (r *Root) folder(path string) (*os.Root, error) {
	dir, err := r.root.OpenRoot(".")
	if err != nil || path == "." {
		return dir, err
	}
	for name := range strings.SplitSeq(path, "/") {
		next, err := step(dir, name)
		_ = dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

func step(dir *os.Root, name string) (*os.Root, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		return nil, ErrLink
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := next.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = ErrLink
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

func (r *Root) in(path string, do func(dir *os.Root, name string) error) error {
	dir, name := split(path)
	folder, err := r.folder(dir)
	if err != nil {
		return err
	}
	return errors.Join(do(folder, name), folder.Close())
}

func (r *Root) lstat(path string) (e Entry, err error) {
	err = r.in(path, func(dir *os.Root, name string) (err error) {
		e, err = entryIn(dir, name, path)
		return err
	})
	return e, err
}

func entryIn(dir *os.Root, name, path string) (Entry, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return Entry{}, err
	}
	e := entry(info, path)
	if e.Kind == Link {
		e.Target, err = dir.Readlink(name)
	}
	return e, err
}

func entry(info fs.FileInfo, path string) Entry {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	e := Entry{Path: path, Kind: KindOf(info.Mode()), Perm: info.Mode() & bits, ModTime: info.ModTime().UnixNano()}
	if e.Kind == File {
		e.Size = info.Size()
	}
	e.Stamp.Changed = e.ModTime
	stamp(&e, info)
	return e
}

func (r *Root) xattrs(path string) (string, error) {
	_, err := r.lstat(path)
	return "", err
}

func (r *Root) readDir(path string) (entries []Entry, err error) {
	dir, err := r.folder(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	for _, name := range names {
		e, lookErr := entryIn(dir, name, join(path, name))
		if lookErr == nil {
			entries = append(entries, e)
		} else if !errors.Is(lookErr, fs.ErrNotExist) {
			err = errors.Join(err, lookErr)
		}
	}
	return entries, err
}

func (r *Root) walk(ctx context.Context, o WalkOptions) (all []Entry, err error) {
	todo := []string{o.From}
	for len(todo) > 0 && ctx.Err() == nil {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		entries, listErr := r.readDir(dir)
		if listErr != nil && (dir == o.From || !errors.Is(listErr, fs.ErrNotExist)) {
			err = errors.Join(err, failed("walk", dir, listErr))
		}
		for _, e := range entries {
			if o.Skip != nil && o.Skip(e) {
				continue
			}
			all = append(all, e)
			if e.Kind == Dir {
				todo = append(todo, e.Path)
			}
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all, errors.Join(err, ctx.Err())
}

func (r *Root) openFile(path string) (f *os.File, e Entry, err error) {
	err = r.in(path, func(dir *os.Root, name string) error {
		before, err := dir.Lstat(name)
		if err != nil {
			return err
		}
		if !before.Mode().IsRegular() {
			return ErrNotFile
		}
		if f, err = dir.Open(name); err != nil {
			return err
		}
		after, err := f.Stat()
		if err == nil && !os.SameFile(before, after) {
			err = ErrNotFile
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		e = entry(after, path)
		return nil
	})
	if err != nil {
		return nil, Entry{}, err
	}
	return f, e, nil
}
