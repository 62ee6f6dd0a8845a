// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// onlyOurs refuses a folder that others can write to.
func onlyOurs(dir string) error {
	var s unix.Stat_t
	if err := unix.Stat(dir, &s); err != nil {
		return &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	reason := ""
	switch {
	case s.Uid != 0 && int(s.Uid) != os.Geteuid():
		reason = "belongs to another user, who could make write-backs do anything"
	case s.Mode&0o022 != 0:
		reason = "can be written to by others, who could make write-backs do anything"
	default:
		return nil
	}
	return &SecurityError{Path: dir, Reason: reason, Next: "set State to a folder that only you can write to"}
}

// canWrite returns why nothing can be made in a folder. That may change at any time: the check only makes the error early.
func canWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
