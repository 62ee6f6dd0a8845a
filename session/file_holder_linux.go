// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// lockHolder returns the process that has the lock on f, or zero. The system's own list knows it; a number
// written to a file could be that of a process long gone.
func lockHolder(f *os.File) int {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return 0
	}
	list, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	file := fmt.Appendf(nil, "%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	for line := range bytes.Lines(list) {
		// 1: FLOCK ADVISORY WRITE <pid> <device>:<inode> 0 EOF; those that wait have an arrow.
		words := bytes.Fields(line)
		if len(words) >= 6 && string(words[1]) == "FLOCK" && bytes.Equal(words[5], file) {
			pid, _ := strconv.Atoi(string(words[4]))
			return max(pid, 0)
		}
	}
	return 0
}
