// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// stampsTell reports whether the file system of a folder is one of which it is known that each write,
// also the first one through a mapping, changes the time of the inode.
func stampsTell(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return true
	}
	return false
}

// unchanged reports whether an open file is unchanged since it was checked.
func (t *Tree) unchanged(f *os.File, e filetree.Entry) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Ctim.Nano() == e.Stamp.Changed && st.Mtim.Nano() == e.ModTime && st.Size == e.Size
}

func isPrivate(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

func openFiles() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 256
	}
	return int(min(limit.Cur, 1<<20))
}
