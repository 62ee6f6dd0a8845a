// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// SyncDir makes the names in a directory durable, except on Windows and some file systems, which have no such call.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
