// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
)

// ErrSecurity and ErrBudget are what [SecurityError] and [BudgetError] are, for errors.Is.
var (
	ErrSecurity = errors.New("workspace: not allowed")
	ErrBudget   = errors.New("workspace: over the budget")
)

// A SecurityError means that a path leads out of the folders that the workspace may use.
type SecurityError struct {
	// Path is what was refused, Reason why, Next what to do about it.
	Path, Reason, Next string
	// Err is the cause, if there is one.
	Err error
}

func (e *SecurityError) Error() string {
	text := fmt.Sprintf("workspace: %q %s", e.Path, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Advice implements [advice.Adviser].
func (e *SecurityError) Advice() string { return e.Next }

// Is reports whether target is [ErrSecurity].
func (e *SecurityError) Is(target error) bool { return target == ErrSecurity }

func (e *SecurityError) Unwrap() error { return e.Err }

// A BudgetError means that a mount, or the store, has more bytes than allowed.
type BudgetError struct {
	// Path is the mount, or the file that a checkpoint had no room for. Bytes is a lower bound, and Limit the maximum.
	Path         string
	Bytes, Limit int64
	// Store means that the checkpoints are too large, and not a mount.
	Store bool
}

func (e *BudgetError) Error() string {
	if e.Store {
		return fmt.Sprintf("workspace: the checkpoints have no room for %q: %d bytes, of %d", e.Path, e.Bytes, e.Limit)
	}
	return fmt.Sprintf("workspace: Mount exceeds byte budget: %d > %d (%s)", e.Bytes, e.Limit, e.Path)
}

// Advice implements [advice.Adviser].
func (e *BudgetError) Advice() string {
	if e.Store {
		return "raise TreeOptions.MaxDisk, or release checkpoints"
	}
	return "raise MaxBytes, or leave files out with Exclude"
}

// Is reports whether target is [ErrBudget].
func (e *BudgetError) Is(target error) bool { return target == ErrBudget }
