// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// mountSmall puts a small disk at dir until the end of the test.
func mountSmall(t *testing.T, dir string, size int) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("no disk of a test can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
}
