// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dirents yields the names in what getdents wrote, as they stand there: zero-terminated.
func dirents(buf []byte, yield func(name []byte)) {
	const header = int(unsafe.Offsetof(unix.Dirent{}.Name))
	for len(buf) >= header {
		size := int(binary.NativeEndian.Uint16(buf[unsafe.Offsetof(unix.Dirent{}.Reclen):]))
		if size < header || size > len(buf) {
			return
		}
		name := buf[header:size]
		buf = buf[size:]
		n := 0
		for n < len(name) && name[n] != 0 {
			n++
		}
		name = name[:n]
		if s := string(name); s == "." || s == ".." || s == "" {
			continue
		}
		yield(name)
	}
}

// readNames reads the names in a folder.
func readNames(fd int) ([]string, error) {
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := again(func() (int, error) { return unix.Getdents(fd, buf) })
		if n <= 0 || err != nil {
			return names, gone(err)
		}
		dirents(buf[:n], func(name []byte) { names = append(names, string(name)) })
	}
}

func (r *Root) readDir(dir string) ([]Entry, error) { return r.list(dir, true) }

func (r *Root) list(dir string, attrs bool) (entries []Entry, err error) {
	err = try(func() error {
		fd, err := openBeneath(r.fd, dir, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		entries = entries[:0]
		names, err := readNames(fd)
		if err != nil {
			return err
		}
		for _, name := range names {
			e, err := lookAt(fd, name, join(dir, name), attrs)
			if errors.Is(err, unix.ENOENT) {
				continue
			}
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return nil
	}, need{r, dir, toList})
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return entries, err
}

func lookAt(dir int, name, path string, attrs bool) (Entry, error) {
	fd, err := openName(dir, name, unix.O_PATH)
	if err != nil {
		return Entry{}, err
	}
	defer unix.Close(fd)
	return entryOf(fd, path, attrs)
}

func (r *Root) walk(ctx context.Context, o WalkOptions) (all []Entry, err error) {
	var visit func(dir string) error
	visit = func(dir string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := r.list(dir, !o.NoXattrs)
		if err != nil {
			return failed("walk", dir, err)
		}
		var errs []error
		for _, e := range entries {
			if o.Skip != nil && o.Skip(e) {
				continue
			}
			all = append(all, e)
			if e.Kind == Dir {
				errs = append(errs, visit(e.Path))
			}
		}
		return errors.Join(errs...)
	}
	err = visit(o.From)
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all, err
}
