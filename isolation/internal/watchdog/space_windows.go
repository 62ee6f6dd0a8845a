// SPDX-License-Identifier: Apache-2.0

package watchdog

import "golang.org/x/sys/windows"

func spaceOf(path string) space {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return space{}
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return space{}
	}
	return space{known: true, free: int64(free)}
}
