// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"fmt"
	"os"
	"time"
)

// lockPoll is how often a lock that another process holds is tried again. Locks are held for one
// write, so the first try nearly always succeeds.
const lockPoll = 2 * time.Millisecond

// lockFile takes an exclusive lock on f, which closing f releases, or gives up when ctx ends.
func lockFile(ctx context.Context, f *os.File) error {
	for {
		ok, err := tryLock(f)
		if err != nil {
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		if ok {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
