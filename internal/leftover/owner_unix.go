// SPDX-License-Identifier: Apache-2.0

//go:build unix

package leftover

import (
	"io/fs"
	"os"
	"syscall"
)

// OwnFile reports whether the file belongs to the user of this process.
func OwnFile(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
