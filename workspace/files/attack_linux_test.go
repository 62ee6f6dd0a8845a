// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

// makeNull makes a second null device.
func makeNull(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|3) }

// Root may do what others may not; they must find the same file system.
func TestDirFS_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^TestDirFS_(PassesTheSuite|FolderExchanged|PipesAndDevices)")
}

// exchange gives each of two paths what is at the other, in one step.
func exchange(one, two string) error {
	return unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, two, unix.RENAME_EXCHANGE)
}
