// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package workspace

import (
	"io/fs"
	"os"
	"runtime"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// stampsTell is false: contents are compared.
func stampsTell(string) bool { return false }

func (t *Tree) unchanged(_ *os.File, e filetree.Entry) bool {
	after, err := t.root.Lstat(e.Path)
	return err == nil && after == e
}

// isPrivate reports whether only this user can use an entry, according to its mode.
func isPrivate(info fs.FileInfo) bool {
	return runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0
}

func allocated(info fs.FileInfo) int64 { return info.Size() }

// openFiles is how many files this process may have open, which most systems allow.
func openFiles() int { return 256 }
