// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filelock_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/internal/filelock"
)

// Between fork and exec a new process has a copy of every open file, as a duplicate is one.
func TestUnlock_FreesAFileWithACopyInAStartingProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	checkTry(t, "first", f, true)
	copied, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(copied)
	if err := filelock.Unlock(f); err != nil {
		t.Error(err)
	}
	f.Close()
	checkTry(t, "second", open(t, path), true)
}
