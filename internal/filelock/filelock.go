// SPDX-License-Identifier: Apache-2.0

// Package filelock gives one user of a file at a time exclusive use, in one process or in several.
//
// A lock is exclusive and belongs to the open file: a second open of the same file is another user. It excludes only users
// who lock too; reading and writing stay possible. The system releases it when the process ends, however it ends. On
// systems without such locks (anything but Linux, the BSDs, macOS and Windows) every lock is granted at once.
package filelock

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Try takes the lock of f if it is free, and reports whether it did.
func Try(f *os.File) (bool, error) {
	ok, err := try(f)
	if err != nil {
		return false, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return ok, nil
}

// Free reports whether no user has the lock of f. Any number of processes may look at the same time. A [Try] at that moment may fail
// though no user has the lock; a [Lock] waits.
func Free(f *os.File) (bool, error) {
	ok, err := share(f)
	if ok {
		err = unlock(f)
	}
	if err != nil {
		return false, fmt.Errorf("looking at the lock of %s: %w", f.Name(), err)
	}
	return ok, nil
}

// Lock takes the lock of f, looking every poll whether it is free, or gives up when ctx ends.
func Lock(ctx context.Context, f *os.File, poll time.Duration) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("waiting for the lock of %s: %w", f.Name(), err)
		}
		if ok, err := Try(f); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

// Unlock releases the lock of f. Call it before closing f: closing alone releases the lock too, but
// not while a program that the process is starting at that moment still holds its copy of f.
func Unlock(f *os.File) error {
	if err := unlock(f); err != nil {
		return fmt.Errorf("unlocking %s: %w", f.Name(), err)
	}
	return nil
}
