// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// modes is held for writing while permissions are wider than they should be, so that no goroutine takes them for the
// true ones, and for reading by every reader.
var modes sync.RWMutex

// The rights that an owner needs.
const (
	toRead   = 0o400
	toPass   = 0o100
	toList   = 0o500
	toChange = 0o300
)

// A need is an entry, and what has to be allowed there. In the folders above it, passing has to be.
type need struct {
	root *Root
	path string
	bits uint32
}

// parentOf is the need of what an operation changes.
func (r *Root) parentOf(path string) need {
	dir, _ := split(path)
	return need{r, dir, toChange}
}

// try runs an operation. If it is not permitted, it runs again while all needs are given.
func try(op func() error, needs ...need) error {
	modes.RLock()
	err := op()
	modes.RUnlock()
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	modes.Lock()
	defer modes.Unlock()
	var w widened
	for _, n := range needs {
		w.give(n)
	}
	if len(w) == 0 {
		return err
	}
	err = op()
	return errors.Join(err, w.restore())
}

// widened has what was given, and what was there before.
type widened []struct {
	fd   int // with O_PATH
	mode uint32
}

// give widens permissions as needed, of folders that belong to this user. Otherwise the operation fails with its own error.
func (w *widened) give(n need) {
	if n.root.strict {
		return
	}
	fd, err := duplicate(n.root.fd)
	if err != nil {
		return
	}
	for rest := n.path; rest != "." && rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		w.add(fd, toPass)
		next, err := openName(fd, name, unix.O_PATH)
		w.release(fd)
		if err != nil {
			return
		}
		fd = next
	}
	w.add(fd, n.bits)
	w.release(fd)
}

// add gives the bits to what is open, if it is ours and lacks them.
func (w *widened) add(fd int, bits uint32) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Geteuid() || st.Mode&bits == bits {
		return
	}
	if kind := kindOf(uint16(st.Mode)); kind != Dir && (kind != File || bits != toRead) {
		return
	}
	if chmod(fd, st.Mode&0o7777|bits) == nil {
		*w = append(*w, struct {
			fd   int
			mode uint32
		}{fd, st.Mode & 0o7777})
	}
}

// release closes a descriptor that is not needed for going back.
func (w widened) release(fd int) {
	if n := len(w); n == 0 || w[n-1].fd != fd {
		_ = unix.Close(fd)
	}
}

// restore sets everything back, the last first: what was given twice gets its first mode.
func (w widened) restore() error {
	var errs []error
	for _, was := range slices.Backward(w) {
		errs = append(errs, chmod(was.fd, was.mode), unix.Close(was.fd))
	}
	return errors.Join(errs...)
}

// chmod changes the mode of what is open, also with O_PATH. It must not be a link.
func chmod(fd int, mode uint32) error {
	err := unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		return unix.Chmod(procPath(fd), mode)
	}
	return err
}

// procPath is a path to what is open, for system calls that take nothing else.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
