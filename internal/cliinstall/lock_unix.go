// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cliinstall

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock on f if nobody has it. The lock ends with the process at the latest.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
