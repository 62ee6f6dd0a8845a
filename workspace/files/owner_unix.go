// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives the file the owner that it had, as far as this process may.
func keepOwner(file *os.File, old fs.FileInfo) {
	if had, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = file.Chown(int(had.Uid), int(had.Gid))
	}
}
