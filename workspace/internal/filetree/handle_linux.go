// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A handle is the file descriptor of the root, which allows nothing but to begin paths there.
type handle struct{ fd int }

func (r *Root) open(dir string) (err error) {
	r.fd, err = again(func() (int, error) {
		return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	return err
}

// close waits until the descriptor is unused: the system reuses its number for other files.
func (r *Root) close() error {
	modes.Lock()
	defer modes.Unlock()
	if r.fd < 0 {
		return nil
	}
	err := unix.Close(r.fd)
	r.fd = -1
	return err
}

// again repeats a system call that was interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// maxPath is the longest path that a system call takes, less the zero at its end.
const maxPath = unix.PathMax - 1

// beneath keeps a path below the folder where it begins, and out of links.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// noOpenat2 is set where the kernel is older than that call.
var noOpenat2 atomic.Bool

// openBeneath opens a clean path below a folder without following a link in it. With O_NOFOLLOW and
// O_PATH the last element may be a link, which is then what is opened.
func openBeneath(dir int, path string, flags int) (int, error) {
	if path == "." && flags&unix.O_PATH != 0 {
		return duplicate(dir) // to open "." one would have to be allowed to pass
	}
	start := dir
	for len(path) > maxPath {
		cut := strings.LastIndexByte(path[:maxPath], '/')
		if cut < 0 {
			break // a name that no system takes
		}
		next, err := openPart(dir, path[:cut], unix.O_PATH|unix.O_DIRECTORY)
		if dir != start {
			_ = unix.Close(dir)
		}
		if err != nil {
			return -1, err
		}
		dir, path = next, path[cut+1:]
	}
	fd, err := openPart(dir, path, flags)
	if dir != start {
		_ = unix.Close(dir)
	}
	return fd, err
}

func duplicate(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) }

// movedAway reports that a folder of a path was moved out of the root while the kernel resolved the path. It is
// tried again; in the end it does not exist.
func movedAway(err error) bool { return errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EAGAIN) }

const maxMoves = 10

// openPart opens a path that is short enough for one system call.
func openPart(dir int, path string, flags int) (int, error) {
	if noOpenat2.Load() {
		return openSteps(dir, path, flags)
	}
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: beneath}
	open := func() (int, error) { return unix.Openat2(dir, path, &how) }
	fd, err := again(open)
	for try := 0; movedAway(err) && try < maxMoves; try++ {
		fd, err = again(open)
	}
	switch {
	case movedAway(err):
		return -1, unix.ENOENT
	case errors.Is(err, unix.ENOSYS):
		noOpenat2.Store(true)
		return openSteps(dir, path, flags)
	case errors.Is(err, unix.EPERM): // by a filter of system calls, or truly: then it is returned again
		return openSteps(dir, path, flags)
	}
	return fd, err
}

// openSteps opens a path element by element.
func openSteps(dir int, path string, flags int) (int, error) {
	start := dir
	for {
		name, rest, more := strings.Cut(path, "/")
		mode := flags
		if more {
			mode = unix.O_PATH | unix.O_DIRECTORY
		}
		next, err := openName(dir, name, mode)
		if dir != start {
			_ = unix.Close(dir)
		}
		if err != nil || !more {
			return next, err
		}
		dir, path = next, rest
	}
}

// openName opens what a folder has by that name. A link fails with ELOOP, also where a folder is asked for.
func openName(dir int, name string, flags int) (int, error) {
	fd, err := again(func() (int, error) {
		return unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.ENOTDIR) {
		var st unix.Stat_t
		if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return -1, unix.ELOOP
		}
	}
	return fd, err
}

// A heldName is a name in a folder that is held open.
type heldName struct {
	dir  int
	name string
	root int // the root's own descriptor, which stays open
}

func (r *Root) hold(path string) (heldName, error) {
	dir, name := split(path)
	if dir == "." {
		return heldName{dir: r.fd, name: name, root: r.fd}, nil
	}
	fd, err := openBeneath(r.fd, dir, unix.O_PATH|unix.O_DIRECTORY)
	return heldName{dir: fd, name: name, root: r.fd}, err
}

func (p heldName) close() {
	if p.dir != p.root {
		_ = unix.Close(p.dir)
	}
}
