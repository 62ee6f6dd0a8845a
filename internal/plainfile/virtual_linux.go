// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// virtual are the file systems whose files are made up when they are read. Such a file can be endless, can wait
// for an event, and can hold the environment of a process.
var virtual = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.NSFS_MAGIC,
}

func isVirtual(file *os.File) bool {
	var stat unix.Statfs_t
	err := unix.Fstatfs(int(file.Fd()), &stat)
	return err == nil && slices.Contains(virtual, int64(stat.Type)) //nolint:unconvert // not int64 on all platforms
}
