// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unwritten reports whether no process has the file open for writing at this moment, neither by a handle nor by a
// mapping whose handle was closed. The file must be open for reading only. A file that is mapped privately through a
// handle for writing counts as open, though it cannot be written so.
//
// It takes a read lease and gives it back at once. Only the owner of a file may do that, or a process with
// CAP_LEASE; all others get an error. So does every process on layered and network file systems: on overlayfs a
// mapping is not held against the file that was opened. A process that opens the file for writing within that moment
// of about a microsecond waits until it is over; with O_NONBLOCK it gets EWOULDBLOCK. The kernel then sends a signal
// to this process; SIGURG is chosen, which Go programs get at any time and which others ignore.
func Unwritten(f *os.File) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var known error
	if err := conn.Control(func(fd uintptr) { known = checkComplete(int(fd)) }); err != nil || known != nil {
		return false, errors.Join(err, known)
	}
	return unwritten(f)
}

// unwritten is Unwritten for files of which the file system is known.
func unwritten(f *os.File) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var errno syscall.Errno
	if err := conn.Control(func(fd uintptr) { errno = tryLease(fd) }); err != nil {
		return false, err
	}
	switch errno {
	case 0:
		return true, nil
	case unix.EAGAIN:
		return false, nil
	default:
		return false, fmt.Errorf("treewatch: cannot ask whether %s is being written: %w", f.Name(), errno)
	}
}

// tryLease uses raw calls: the scheduler must not run between taking the lease and giving it back.
func tryLease(fd uintptr) syscall.Errno {
	_, _, _ = syscall.RawSyscall(unix.SYS_FCNTL, fd, unix.F_SETSIG, uintptr(unix.SIGURG))
	if _, _, errno := syscall.RawSyscall(unix.SYS_FCNTL, fd, unix.F_SETLEASE, unix.F_RDLCK); errno != 0 {
		return errno
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_FCNTL, fd, unix.F_SETLEASE, unix.F_UNLCK)
	return errno
}
