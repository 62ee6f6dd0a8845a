// SPDX-License-Identifier: Apache-2.0

package cliinstall

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/drover-agents/drover/internal/filelock"
)

// lockPoll is how often a waiting process looks whether the install is done; an install takes seconds.
const lockPoll = 50 * time.Millisecond

// lock takes the lock file at path, waiting for other processes and goroutines that have it.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(ctx, f, lockPoll); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = errors.Join(filelock.Unlock(f), f.Close()) }, nil
}
