// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A lister reads folders one after the other and keeps its buffers: a folder costs one block of text and one of entries.
type lister struct {
	attrs   bool
	dirents []byte // as the kernel writes them
	names   []byte // each with a zero at its end
	spans   []span // where they are, and later where they are in paths
	paths   []byte // in order, each with the folder before and a zero at its end
}

type span struct{ from, to int }

// unread means attributes that the owner cannot read without wider permissions. No encoded attributes equal it.
const unread = "\xff"

// share is how many entries are worth a goroutine.
const share = 1024

// bufferSize takes about a thousand names at once.
const bufferSize = 32 << 10

// listers keeps the buffers between walks, too.
var listers = sync.Pool{New: func() any { return &lister{dirents: make([]byte, bufferSize)} }}

func newLister(attrs bool) *lister {
	l := listers.Get().(*lister)
	l.attrs = attrs
	return l
}

// list returns the entries of a folder, sorted by name. Entries that disappear meanwhile are left out.
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
	r.readSecrets(entries)
	return entries, nil
}

// readSecrets reads again, with more rights, entries of which something could not be read. Secrets of other users stay out.
func (r *Root) readSecrets(entries []Entry) {
	for i := range entries {
		if entries[i].Xattrs != unread {
			continue
		}
		entries[i].Xattrs = ""
		if e, err := r.lstat(entries[i].Path); err == nil {
			entries[i] = e
		}
	}
}

// readNames fills names and spans, sorted.
func (l *lister) readNames(fd int) error {
	l.names, l.spans = l.names[:0], l.spans[:0]
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

// look makes entries of the names. Large folders are shared among goroutines.
func (l *lister) look(fd int, dir string) ([]Entry, error) {
	if len(l.spans) == 0 {
		return nil, nil
	}
	prefix := l.layPaths(dir)
	paths := string(l.paths)
	entries := make([]Entry, len(l.spans))
	if len(l.spans) < 2*share {
		n, err := l.lookAt(fd, prefix, paths, l.spans, entries)
		return entries[:n], err
	}
	parts := (len(l.spans) + share - 1) / share
	found, errs := make([]int, parts), make([]error, parts)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(parts, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < parts; i = int(next.Add(1)) - 1 {
				from, to := i*share, min((i+1)*share, len(l.spans))
				found[i], errs[i] = l.lookAt(fd, prefix, paths, l.spans[from:to], entries[from:to])
			}
		})
	}
	wg.Wait()
	n := 0
	for i := range parts { // what disappeared leaves gaps
		n += copy(entries[n:], entries[i*share:i*share+found[i]])
	}
	return entries[:n], errors.Join(errs...)
}

// lookAt fills the entries from the left, and returns how many there are.
func (l *lister) lookAt(fd, prefix int, paths string, spans []span, entries []Entry) (n int, err error) {
	var st unix.Statx_t
	for _, s := range spans {
		name := &l.paths[s.from]
		err := statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, &st)
		if err == unix.ENOENT { //nolint:errorlint // it is the system call's own, and this is the hot path
			continue
		}
		if err != nil {
			return n, err
		}
		e := &entries[n]
		*e = entry(&st, paths[s.from-prefix:s.to])
		if e.Kind == Link {
			e.Target, err = readLink(fd, name)
		} else if l.attrs {
			e.Xattrs, err = readXattrs(fd, name, e.Kind)
		}
		switch {
		case err == nil:
		case errors.Is(err, unix.EACCES):
			e.Xattrs = unread
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EINVAL): // gone, or no link any more
			continue
		default:
			return n, err
		}
		n++
	}
	return n, nil
}

// layPaths writes the paths in the order of the names, and returns how much comes before each name.
func (l *lister) layPaths(dir string) int {
	l.paths = l.paths[:0]
	prefix := len(dir) + 1
	if dir == "." {
		prefix = 0
	}
	for i, s := range l.spans {
		if prefix > 0 {
			l.paths = append(append(l.paths, dir...), '/')
		}
		from := len(l.paths)
		l.paths = append(append(l.paths, l.name(s)...), 0)
		l.spans[i] = span{from, from + s.to - s.from}
	}
	return prefix
}

func (r *Root) readDir(dir string) ([]Entry, error) {
	l := newLister(true)
	defer listers.Put(l)
	return l.list(r, dir)
}
