// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

func (r *Root) lstat(path string) (Entry, error) {
	dir, _ := split(path)
	e, err := r.look(path, true, need{r, dir, toPass})
	if !errors.Is(err, unix.EACCES) {
		return e, err
	}
	attrs, _ := r.xattrs(path) // none, if they are the secret of another user
	e, err = r.look(path, false, need{r, dir, toPass})
	e.Xattrs = attrs
	return e, err
}

// xattrs reads the attributes of a file that even its owner may not read, too.
func (r *Root) xattrs(path string) (string, error) {
	e, err := r.look(path, true, need{r, path, toRead})
	return e.Xattrs, err
}

// look looks at a path, while n is given if it has to be.
func (r *Root) look(path string, attrs bool, n need) (e Entry, err error) {
	err = try(func() error {
		fd, err := openBeneath(r.fd, path, unix.O_PATH|unix.O_NOFOLLOW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		e, err = entryOf(fd, path, attrs)
		return err
	}, n)
	return e, err
}

// entryOf looks at what is open, also with O_PATH.
func entryOf(fd int, path string, attrs bool) (Entry, error) {
	var st unix.Statx_t
	if err := statx(fd, &noName, unix.AT_EMPTY_PATH, &st); err != nil {
		return Entry{}, err
	}
	e := entry(&st, path)
	var err error
	if e.Kind == Link {
		e.Target, err = readLink(fd, &noName)
	} else if attrs {
		e.Xattrs, err = readXattrs(fd, &noName, e.Kind)
	}
	return e, err
}

// noName is the empty name, which means the open file itself.
var noName byte

const wanted = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_UID | unix.STATX_GID |
	unix.STATX_MTIME | unix.STATX_CTIME | unix.STATX_INO | unix.STATX_SIZE

// statx takes the name as it is in a list of names, so that nothing has to be copied.
func statx(dir int, name *byte, flags int, st *unix.Statx_t) error {
	for {
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(flags),
			wanted, uintptr(unsafe.Pointer(st)), 0)
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

func entry(st *unix.Statx_t, path string) Entry {
	e := Entry{
		Path: path, Kind: kindOf(st.Mode), Perm: permOf(st.Mode), ModTime: nanos(st.Mtime), UID: st.Uid, GID: st.Gid,
		Stamp: Stamp{
			Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino, Links: uint64(st.Nlink), Changed: nanos(st.Ctime),
		},
	}
	if e.Kind == File {
		e.Size = int64(st.Size)
	}
	return e
}

// nanos is bounded by the first and the last time of an int64 of nanoseconds, in 1677 and 2262. File systems have
// later ones, and every user can give them to a file.
func nanos(t unix.StatxTimestamp) int64 {
	const second = 1_000_000_000
	switch {
	case t.Sec < math.MinInt64/second:
		return math.MinInt64
	case t.Sec >= math.MaxInt64/second:
		return math.MaxInt64
	}
	return t.Sec*second + int64(t.Nsec)
}

func kindOf(mode uint16) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Dir
	case unix.S_IFLNK:
		return Link
	case unix.S_IFIFO:
		return Pipe
	case unix.S_IFSOCK:
		return Socket
	}
	return Device
}

func permOf(mode uint16) fs.FileMode {
	perm := fs.FileMode(mode & 0o777)
	if mode&unix.S_ISUID != 0 {
		perm |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		perm |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		perm |= fs.ModeSticky
	}
	return perm
}

func modeOf(perm fs.FileMode) uint32 {
	mode := uint32(perm.Perm())
	if perm&fs.ModeSetuid != 0 {
		mode |= unix.S_ISUID
	}
	if perm&fs.ModeSetgid != 0 {
		mode |= unix.S_ISGID
	}
	if perm&fs.ModeSticky != 0 {
		mode |= unix.S_ISVTX
	}
	return mode
}

func readLink(dir int, name *byte) (string, error) {
	var buf [unix.PathMax]byte // no target is longer
	n, _, errno := unix.Syscall6(unix.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), 0, 0)
	if errno != 0 {
		return "", errno
	}
	return string(buf[:n]), nil
}

func (r *Root) openFile(path string) (*os.File, Entry, error) {
	fd := -1
	var before, after Entry
	err := try(func() (err error) {
		fd, before, err = r.openRegular(path)
		return err
	}, need{r, path, toRead})
	if fd < 0 {
		return nil, Entry{}, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(r.dir, path))
	if err == nil {
		after, err = r.lookOpen(fd, path)
	}
	switch {
	case err != nil:
	case after.Kind != File:
		err = ErrNotFile
	case after.Stamp.Ino != before.Stamp.Ino || after.Stamp.Dev != before.Stamp.Dev:
		err = unix.ESTALE
	}
	if err != nil {
		_ = f.Close()
		return nil, Entry{}, err
	}
	return f, after, nil
}

// lookOpen looks at an open file, once its mode is back to what it was.
func (r *Root) lookOpen(fd int, path string) (e Entry, err error) {
	err = try(func() (err error) {
		e, err = entryOf(fd, path, true)
		return err
	})
	if errors.Is(err, unix.EACCES) {
		return r.lstat(path)
	}
	return e, err
}

// openRegular checks the kind before it opens: opening a pipe or a device affects other processes.
func (r *Root) openRegular(path string) (int, Entry, error) {
	p, err := r.hold(path)
	if err != nil {
		return -1, Entry{}, err
	}
	defer p.close()
	name, err := unix.BytePtrFromString(p.name)
	if err != nil {
		return -1, Entry{}, err
	}
	var st unix.Statx_t
	if err := statx(p.dir, name, unix.AT_SYMLINK_NOFOLLOW, &st); err != nil {
		return -1, Entry{}, err
	}
	e := entry(&st, path)
	if e.Kind != File {
		return -1, Entry{}, ErrNotFile
	}
	fd, err := openReading(p, e)
	return fd, e, err
}

// openReading opens a file without a trace in its access time, where that is allowed.
func openReading(p heldName, e Entry) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK
	if uid := os.Geteuid(); uid == 0 || uid == int(e.UID) {
		fd, err := openName(p.dir, p.name, flags|unix.O_NOATIME)
		if !errors.Is(err, unix.EPERM) {
			return fd, err
		}
	}
	return openName(p.dir, p.name, flags)
}
