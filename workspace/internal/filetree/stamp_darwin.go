// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"io/fs"
	"syscall"
)

// stamp adds the fields that only this system has.
func stamp(e *Entry, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID = st.Uid, st.Gid
		e.Stamp = Stamp{Dev: uint64(st.Dev), Ino: st.Ino, Links: uint64(st.Nlink), Changed: st.Ctimespec.Nano()}
	}
}
