// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// freeSpace is how many bytes this user may still write below dir.
func freeSpace(dir string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, fmt.Errorf("asking for free space: %w", err)
	}
	return free, nil
}
