// SPDX-License-Identifier: Apache-2.0

//go:build unix

package watchdog

import (
	"os"
	"syscall"
)

func entryOf(info os.FileInfo) entry {
	e := entry{isFolder: info.IsDir(), bytes: info.Size(), apparent: info.Size()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		e.id = fileID{uint64(s.Dev), uint64(s.Ino)} //nolint:unconvert // the types differ between systems
		e.linked = s.Nlink > 1
		e.bytes = int64(s.Blocks) * 512 //nolint:unconvert // the types differ between systems
	}
	return e
}
