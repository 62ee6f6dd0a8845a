// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// freeSpace is how many bytes this user may still write below dir.
func freeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("asking for free space: %w", err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// doctorWidth is that of the terminal that out writes to, or 0 if it is none.
func doctorWidth(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
