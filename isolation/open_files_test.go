// SPDX-License-Identifier: Apache-2.0

//go:build unix

package isolation_test

import (
	"syscall"
	"testing"
)

// lowerOpenFiles bounds how many files this process may have open, until the test is over.
func lowerOpenFiles(t *testing.T, limit uint64) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	lower := before
	lower.Cur = min(lower.Cur, limit)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
}
