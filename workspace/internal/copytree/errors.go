// SPDX-License-Identifier: Apache-2.0

package copytree

import "fmt"

// A Refusal is an entry that must not be copied. Path is relative to the source and empty for the source itself.
type Refusal struct {
	Path, Reason, Next string
	Err                error
}

func (e *Refusal) Error() string {
	text := fmt.Sprintf("copytree: %q %s", e.Path, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Advice implements [advice.Adviser].
func (e *Refusal) Advice() string { return e.Next }

func (e *Refusal) Unwrap() error { return e.Err }

// TooLarge means that there are more bytes than may be copied.
type TooLarge struct{ Bytes, Limit int64 }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("copytree: %d bytes are to be copied, and %d may be", e.Bytes, e.Limit)
}
