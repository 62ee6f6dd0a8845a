// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package doctor

import (
	"fmt"

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
