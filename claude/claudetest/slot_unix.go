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

// takeSlot waits for one of the machine's slots and gives it back at the end of the test.
func takeSlot(t testing.TB) {
	t.Helper()
	slot, err := acquireSlot(slotFolder(), runtime.NumCPU(), slotWait)
	if err != nil {
		t.Fatalf("claudetest: %v", err)
	}
	t.Cleanup(func() { _ = slot.Close() })
}

// acquireSlot waits for one of the slots in dir, which are files that are locked while in use, so
// that a test program that dies gives its slots back. It tries at least once.
func acquireSlot(dir string, slots int, wait time.Duration) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		for n := range slots {
			if f := lockSlot(filepath.Join(dir, fmt.Sprint(n))); f != nil {
				return f, nil
			}
		}
		if !time.Now().Before(deadline) {
			return nil, fmt.Errorf("no slot to start the CLI within %s\n  next: see which test programs hold the files in %s", wait, dir)
		}
	}
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
