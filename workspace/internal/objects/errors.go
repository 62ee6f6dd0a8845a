// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
)

var (
	// ErrNotKept is when a content is asked for that was never put, or was released by all.
	ErrNotKept = errors.New("this content is not kept")
	// ErrDamaged means that a content on the disk was changed by another program.
	ErrDamaged = errors.New("this content was changed on the disk by another program")
	// ErrClosed is when a store is used after Close.
	ErrClosed = errors.New("the store is closed")
)

// A FullError is when a content does not fit below [Options.MaxBytes].
type FullError struct {
	// Size is that of the content, as far as it is known.
	Size int64
	// Used is the present use of the disk, of which Limit is the most.
	Used, Limit int64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("a content of %d bytes does not fit, because %d of %d bytes are used", e.Size, e.Used, e.Limit)
}

// Advice implements [advice.Adviser].
func (e *FullError) Advice() string { return "release what is not needed any more, or raise the limit" }
