// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package watchdog

import "golang.org/x/sys/unix"

func spaceOf(path string) space {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return space{}
	}
	return space{true, int64(s.Bavail) * int64(s.Bsize), int64(s.Ffree)} //nolint:unconvert // the types differ between systems
}
