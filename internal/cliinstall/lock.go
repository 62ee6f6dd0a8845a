// SPDX-License-Identifier: Apache-2.0

package cliinstall

import (
	"context"
	"fmt"
	"os"
	"time"
)

// lockPoll is how often a waiting process looks whether the install is done; an install takes
// seconds.
const lockPoll = 50 * time.Millisecond

// lock takes the lock file at path, waiting for other processes and goroutines that have it.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		got, err := tryLock(f)
		if got {
			return func() { _ = f.Close() }, nil
		}
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("waiting for %s: %w", path, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}
