// SPDX-License-Identifier: Apache-2.0

//go:build unix

package claudetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
)

// slotWait is how long a test waits for a slot. Other packages may have long queues.
const slotWait = 10 * time.Minute

// held is the slot of this test program, which its tests share: they run one after the other, and two
// programs that each wait for a second slot would wait for ever.
var held struct {
	sync.Mutex
	slot  *os.File
	users int
}

// takeSlot waits for one of the machine's slots, unless this program has one, and gives it back when the
// last test that uses it is over.
func takeSlot(t testing.TB) {
	t.Helper()
	held.Lock()
	defer held.Unlock()
	if held.users == 0 {
		slot, err := acquireSlot(slotFolder(), runtime.NumCPU(), slotWait)
		if err != nil {
			t.Fatalf("claudetest: %s", advice.Text(err))
		}
		held.slot = slot
	}
	held.users++
	t.Cleanup(giveSlotBack)
}

func giveSlotBack() {
	held.Lock()
	defer held.Unlock()
	if held.users--; held.users == 0 {
		_ = held.slot.Close()
	}
}

// acquireSlot waits for one of the slots in dir, which are files that are locked while in use, so
// that a test program that dies releases its slots. It tries at least once. Waiting programs are in a
// queue, a lock too: else a program that takes slot after slot would leave none to the others.
func acquireSlot(dir string, slots int, wait time.Duration) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(wait)
	queue := awaitLock(filepath.Join(dir, "queue"), wait)
	if queue != nil {
		defer func() { _ = queue.Close() }()
	}
	for queue != nil {
		for n := range slots {
			if f := lockSlot(filepath.Join(dir, fmt.Sprint(n)), syscall.LOCK_NB); f != nil {
				return f, nil
			}
		}
		if !time.Now().Before(deadline) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil, advice.Wrap(fmt.Errorf("no slot to start the CLI within %s", wait), "see which test programs hold the files in %s", dir)
}

// awaitLock waits for a lock, and returns nil if it takes too long. A lock that comes later is let go.
func awaitLock(path string, wait time.Duration) *os.File {
	if f := lockSlot(path, syscall.LOCK_NB); f != nil || wait == 0 {
		return f
	}
	got := make(chan *os.File)
	late := make(chan struct{})
	go func() {
		f := lockSlot(path, 0)
		select {
		case got <- f:
		case <-late:
			_ = f.Close()
		}
	}()
	select {
	case f := <-got:
		return f
	case <-time.After(wait):
		close(late)
		return nil
	}
}

func slotFolder() string {
	if dir := os.Getenv("DROVER_SLOTS"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("drover-slots-%d", os.Getuid()))
}

// lockSlot locks a file: at once or not at all with LOCK_NB, else when it can be had.
func lockSlot(path string, how int) *os.File {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); { // signals of the runtime come in between
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|how)
	}
	if err != nil {
		_ = f.Close()
		return nil
	}
	return f
}
