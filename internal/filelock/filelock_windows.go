// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedByte is beyond any content, because a locked byte cannot be read or written by others.
func lockedByte() *windows.Overlapped {
	return &windows.Overlapped{Offset: 0xfffffffe, OffsetHigh: 0x7fffffff}
}

func try(f *os.File) (bool, error) { return tryAs(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func share(f *os.File) (bool, error) { return tryAs(f, 0) }

func tryAs(f *os.File, how uint32) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, lockedByte())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockedByte())
}
