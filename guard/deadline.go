// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/drover-agents/drover/tool"
)

// ErrDeadlineExceeded is matched by the errors of whatever is not begun, or is ended, because its
// deadline has come. They match [context.DeadlineExceeded] too.
var ErrDeadlineExceeded = errors.New("guard: deadline exceeded")

// A Clock tells the time. Nil is the real one, which [FromNow] and [At] use; make deadlines with the
// methods of another one where they must not differ from run to run.
type Clock func() time.Time

func (c Clock) now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c()
}

// FromNow makes a deadline that comes after d. With a d of zero or less it has come already.
func (c Clock) FromNow(d time.Duration) Deadline {
	at := c.now().Add(d)
	if at.IsZero() { // which would mean none; a clock of a test may begin there
		at = at.Add(-1)
	}
	return Deadline{at: at, clock: c}
}

// At makes a deadline of a moment; see the function [At].
func (c Clock) At(t time.Time) Deadline {
	if t.IsZero() {
		return Deadline{}
	}
	return Deadline{at: t, clock: c}
}

// A Deadline is the moment at which work must be over. The zero value is no deadline. It is a plain
// value: copy it, keep it in a [Budget], write it to JSON.
type Deadline struct {
	at    time.Time
	clock Clock
}

// FromNow makes a deadline that comes after d. With a d of zero or less it has come already.
func FromNow(d time.Duration) Deadline { return Clock(nil).FromNow(d) }

// At makes a deadline of a moment; the zero time is no deadline. The moment may be past, because a
// stored deadline may be read again after its end. Code that begins work calls [Deadline.Check]
// first. No least time ahead is asked for; what has a millisecond left may begin.
func At(t time.Time) Deadline { return Clock(nil).At(t) }

// IsZero reports whether there is no deadline.
func (d Deadline) IsZero() bool { return d.at.IsZero() }

// Time returns the moment, which is zero if there is no deadline.
func (d Deadline) Time() time.Time { return d.at }

// Equal reports whether both are the same moment, or both none.
func (d Deadline) Equal(other Deadline) bool { return d.at.Equal(other.at) }

// Remaining returns the time that is left, negative once it is past; for no deadline it is the longest duration there is.
func (d Deadline) Remaining() time.Duration {
	if d.IsZero() {
		return math.MaxInt64
	}
	return d.at.Sub(d.clock.now())
}

// Expired reports whether the deadline has come: nothing remains.
func (d Deadline) Expired() bool { return d.Remaining() <= 0 }

// Check returns an error that matches [ErrDeadlineExceeded] if the deadline has come.
func (d Deadline) Check() error {
	if d.Expired() {
		return &deadlineError{d.at}
	}
	return nil
}

// Context returns a context that ends at the deadline, with a cause that matches [ErrDeadlineExceeded]. If ctx ends before,
// for whatever reason, that is the cause. Without a deadline only cancel and ctx end it.
func (d Deadline) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.IsZero() {
		return context.WithCancel(ctx)
	}
	// The timer runs on the real clock; what it waits for is measured on the deadline's own.
	return context.WithDeadlineCause(ctx, time.Now().Add(d.Remaining()), &deadlineError{d.at})
}

// Earlier returns the one that comes first. No deadline is later than every other.
func (d Deadline) Earlier(other Deadline) Deadline {
	if d.IsZero() || !other.IsZero() && other.at.Before(d.at) {
		return other
	}
	return d
}

// String returns the moment in UTC as RFC 3339 writes it, or "none".
func (d Deadline) String() string {
	if d.IsZero() {
		return "none"
	}
	return d.at.UTC().Format(time.RFC3339Nano)
}

// MarshalJSON gives the moment in UTC as a string of RFC 3339, and null for no deadline.
func (d Deadline) MarshalJSON() ([]byte, error) {
	if d.IsZero() {
		return []byte("null"), nil
	}
	return d.at.UTC().MarshalJSON()
}

// UnmarshalJSON reads what MarshalJSON gives. What it reads goes by the real clock.
func (d *Deadline) UnmarshalJSON(data []byte) error {
	var t time.Time // which null leaves as it is
	if err := t.UnmarshalJSON(data); err != nil {
		return err
	}
	*d = At(t)
	return nil
}

type deadlineError struct{ at time.Time }

func (e *deadlineError) Error() string {
	return ErrDeadlineExceeded.Error() + ": it was " + e.at.UTC().Format(time.RFC3339Nano)
}

func (e *deadlineError) Advice() string { return "set a later deadline, or give the work less to do" }

func (e *deadlineError) Is(target error) bool {
	return target == ErrDeadlineExceeded || target == context.DeadlineExceeded
}

var deadlineKey = tool.NewKey[Deadline]("deadline")

// WithDeadline returns a context with the deadline for [DeadlineFrom]. It does not end the context; [Deadline.Context] does.
func WithDeadline(ctx context.Context, d Deadline) context.Context { return deadlineKey.With(ctx, d) }

// DeadlineFrom returns the deadline that a tool handler's work has; the zero value without a deadline.
func DeadlineFrom(ctx context.Context) Deadline {
	d, _ := deadlineKey.From(ctx)
	return d
}
