// SPDX-License-Identifier: Apache-2.0

//go:build unix

package claudetest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// slotWait is how long a test waits for a slot. Other packages may have long queues.
const slotWait = 10 * time.Minute

// takeSlot waits for one of the machine's slots, which are files that are locked while in use, so
// that a test program that dies gives its slots back.
func takeSlot(t testing.TB) {
	t.Helper()
	dir := slotFolder()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatalf("claudetest: %v", err)
	}
	deadline := time.Now().Add(slotWait)
	for time.Now().Before(deadline) {
		for n := range runtime.NumCPU() {
			if f := lockSlot(filepath.Join(dir, fmt.Sprint(n))); f != nil {
				t.Cleanup(func() { _ = f.Close() })
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("claudetest: no slot to start the CLI within %s\n  next: see which test programs hold the files in %s", slotWait, dir)
}

func slotFolder() string {
	if dir := os.Getenv("DROVER_SLOTS"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("drover-slots-%d", os.Getuid()))
}

func lockSlot(path string) *os.File {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil
	}
	return f
}
