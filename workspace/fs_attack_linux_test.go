// SPDX-License-Identifier: Apache-2.0

package workspace_test

import "syscall"

// makeNull makes a second null device.
func makeNull(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|3) }
