// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A lister reads folders, one after the other, and keeps its buffers between them: names are copied
// twice, and otherwise a folder costs one block of text and one of entries.
type lister struct {
	attrs   bool
	dirents []byte // as the kernel writes them
	names   []byte // each with a zero at its end
	spans   []span // where they are
	paths   []byte // in order, each with the folder before and a zero at its end
	secret  []int  // entries whose attributes cannot be read just so
}

// A span is where a name begins and ends.
type span struct{ from, to int }

// bufferSize takes about a thousand names at once.
const bufferSize = 32 << 10

// list looks at the entries of a folder, sorted by name. What disappears meanwhile is left out.
func (l *lister) list(r *Root, dir string) (entries []Entry, err error) {
	err = try(func() error {
		fd, err := openBeneath(r.fd, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOATIME)
		if errors.Is(err, unix.EPERM) {
			fd, err = openBeneath(r.fd, dir, unix.O_RDONLY|unix.O_DIRECTORY)
		}
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := l.readNames(fd); err != nil {
			return err
		}
		entries, err = l.look(fd, dir)
		return err
	}, need{r, dir, toList})
	if err != nil {
		return nil, err
	}
	for _, i := range l.secret {
		if e, err := r.lstat(entries[i].Path); err == nil {
			entries[i] = e
		}
	}
	return entries, nil
}

// readNames fills names and spans, sorted.
func (l *lister) readNames(fd int) error {
	l.names, l.spans = l.names[:0], l.spans[:0]
	if l.dirents == nil {
		l.dirents = make([]byte, bufferSize)
	}
	for {
		n, err := again(func() (int, error) { return unix.Getdents(fd, l.dirents) })
		if err != nil && !errors.Is(err, unix.ENOENT) { // a folder that was removed has nothing
			return err
		}
		if n <= 0 {
			break
		}
		l.take(l.dirents[:n])
	}
	compare := func(a, b span) int { return bytes.Compare(l.name(a), l.name(b)) }
	slices.SortFunc(l.spans, compare)
	// Some file systems name an entry twice when it is renamed meanwhile.
	l.spans = slices.CompactFunc(l.spans, func(a, b span) bool { return compare(a, b) == 0 })
	return nil
}

func (l *lister) name(s span) []byte { return l.names[s.from:s.to] }

// take copies the names out of what the kernel wrote.
func (l *lister) take(buf []byte) {
	const header = int(unsafe.Offsetof(unix.Dirent{}.Name))
	for len(buf) > header {
		size := int(binary.NativeEndian.Uint16(buf[unsafe.Offsetof(unix.Dirent{}.Reclen):]))
		if size <= header || size > len(buf) {
			return
		}
		name := buf[header:size]
		buf = buf[size:]
		name = name[:max(0, bytes.IndexByte(name, 0))]
		if len(name) == 0 || string(name) == "." || string(name) == ".." {
			continue
		}
		from := len(l.names)
		l.names = append(append(l.names, name...), 0)
		l.spans = append(l.spans, span{from, from + len(name)})
	}
}

// look makes entries of the names.
func (l *lister) look(fd int, dir string) ([]Entry, error) {
	l.secret = l.secret[:0]
	if len(l.spans) == 0 {
		return nil, nil
	}
	prefix := l.layPaths(dir)
	paths := string(l.paths)
	entries := make([]Entry, 0, len(l.spans))
	var st unix.Statx_t
	at := 0
	for _, s := range l.spans {
		from, to := at, at+prefix+s.to-s.from
		at = to + 1
		name := &l.paths[from+prefix]
		err := statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, &st)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e := entry(&st, paths[from:to])
		if e.Kind == Link {
			e.Target, err = readLink(fd, name)
		} else if l.attrs {
			e.Xattrs, err = readXattrs(fd, name, e.Kind)
		}
		switch {
		case errors.Is(err, unix.EACCES):
			l.secret = append(l.secret, len(entries))
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EINVAL): // gone, or no link any more
			continue
		case err != nil:
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// layPaths writes the paths in the order of the names, and returns how much comes before each name.
func (l *lister) layPaths(dir string) int {
	l.paths = l.paths[:0]
	prefix := len(dir) + 1
	if dir == "." {
		prefix = 0
	}
	for _, s := range l.spans {
		if prefix > 0 {
			l.paths = append(append(l.paths, dir...), '/')
		}
		l.paths = append(append(l.paths, l.name(s)...), 0)
	}
	return prefix
}

func (r *Root) readDir(dir string) ([]Entry, error) {
	l := lister{attrs: true}
	return l.list(r, dir)
}
