// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"
)

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// readNow reads once without waiting. An empty pipe is an error.
func readNow(f *os.File, b []byte) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int
	var readErr error
	err = raw.Read(func(fd uintptr) bool {
		n, readErr = syscall.Read(int(fd), b)
		return true
	})
	return max(n, 0), errors.Join(err, readErr)
}
