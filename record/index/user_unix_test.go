// SPDX-License-Identifier: Apache-2.0

//go:build unix

package index

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// somebody is a user without rights.
const somebody = 65534

// dropPrivileges makes the process that of a user for whom rights count.
func dropPrivileges() error {
	if os.Geteuid() != 0 {
		return nil
	}
	return syscall.Setuid(somebody)
}

// giveAway gives a folder and all that is in it to that user.
func giveAway(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, somebody, somebody)
	})
	if err != nil {
		t.Fatal(err)
	}
}
