// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"os"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
)

// A lockedFile is a log that is locked until it is closed.
type lockedFile struct{ *os.File }

// Close implements io.Closer.
func (f lockedFile) Close() error { return errors.Join(filelock.Unlock(f.File), f.File.Close()) }

// checkThere returns an error if the path does not lead to the log any more: later appends are lost.
func (s *FileStore) checkThere() error {
	f, ok := s.f.(lockedFile)
	if !ok {
		return nil
	}
	if err := checkSameFile(f.File); err != nil {
		return fmt.Errorf("the log was moved, deleted or replaced while it was open; what it was given since is not at %s: %w", s.path, err)
	}
	return nil
}

// lockLog locks a log, or returns an error that names its holder. The lock is on the log itself: a separate lock
// file could be deleted, and another name of the log would not lead to it.
func lockLog(f *os.File) error {
	ok, err := filelock.Try(f)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	if !ok {
		return advice.Wrap(fmt.Errorf("%w: %s is open for writing in %s", ErrLocked, f.Name(), describeHolder(f)),
			"close it there, or open it with ReadOnly")
	}
	return checkSameFile(f)
}

// checkSameFile checks that the lock is on the file at the path: it may have been replaced before the lock, or since.
func checkSameFile(f *os.File) error {
	mine, err := f.Stat()
	if err != nil {
		return fmt.Errorf("session: locking %s: %w", f.Name(), err)
	}
	there, err := os.Stat(f.Name())
	if err != nil {
		return fmt.Errorf("session: locking %s: %w", f.Name(), err)
	}
	if !os.SameFile(mine, there) {
		return advice.Wrap(fmt.Errorf("session: %s was replaced", f.Name()),
			"open it again, and find out who replaced it: a log has one writer")
	}
	return nil
}

func describeHolder(f *os.File) string {
	switch pid := lockHolder(f); pid {
	case 0:
		return "another process, or elsewhere in this one"
	case os.Getpid():
		return "this process"
	default:
		return fmt.Sprintf("process %d", pid)
	}
}
