// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/guard"
)

// noon is when these tests happen on a clock that is set by hand.
var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// setClock is a clock that does not move until it is set.
type setClock struct{ now time.Time }

func (c *setClock) clock() guard.Clock { return func() time.Time { return c.now } }

func TestDeadline_ExpiresAtItsExactMoment(t *testing.T) {
	c := &setClock{noon}
	d := c.clock().FromNow(5 * time.Minute)
	cases := []struct {
		name      string
		at        time.Duration
		remaining time.Duration
		expired   bool
	}{
		{"at once", 0, 5 * time.Minute, false},
		{"a nanosecond before", 5*time.Minute - 1, 1, false},
		{"at the moment", 5 * time.Minute, 0, true},
		{"after it", 6 * time.Minute, -time.Minute, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c.now = noon.Add(tc.at)
			if got := d.Remaining(); got != tc.remaining {
				t.Errorf("Remaining() = %v, want %v", got, tc.remaining)
			}
			if got := d.Expired(); got != tc.expired {
				t.Errorf("Expired() = %v, want %v", got, tc.expired)
			}
			if got := errors.Is(d.Check(), guard.ErrDeadlineExceeded); got != tc.expired {
				t.Errorf("Check() = %v, want an error: %v", d.Check(), tc.expired)
			}
		})
	}
}

func TestDeadline_ZeroLimitsNothing(t *testing.T) {
	for name, d := range map[string]guard.Deadline{"zero value": {}, "of the zero time": guard.At(time.Time{})} {
		t.Run(name, func(t *testing.T) {
			if !d.IsZero() || d.Expired() || d.Check() != nil || d.Remaining() != math.MaxInt64 || d.String() != "none" {
				t.Errorf("%+v limits something", d)
			}
			ctx, cancel := d.Context(t.Context())
			if _, limited := ctx.Deadline(); limited || ctx.Err() != nil {
				t.Error("its context has a deadline, or is over")
			}
			cancel()
			if ctx.Err() == nil {
				t.Error("its context cannot be cancelled")
			}
		})
	}
}

func TestDeadline_MayBeInThePast(t *testing.T) {
	d := guard.At(noon.AddDate(-20, 0, 0))
	err := d.Check()
	if !errors.Is(err, guard.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, guard.ErrBudgetExhausted) {
		t.Errorf("Check() = %v, want that the deadline is exceeded", err)
	}
	want := "guard: deadline exceeded: it was 2010-01-02T12:00:00Z\n  next: set a later deadline, or give the work less to do"
	if advice.Text(err) != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	ctx, cancel := d.Context(t.Context())
	defer cancel()
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), guard.ErrDeadlineExceeded) {
		t.Errorf("the context ends with %v, want at once, for the deadline", context.Cause(ctx))
	}
}

func TestDeadline_NowAtTheZeroTimeIsExpired(t *testing.T) {
	zero := guard.Clock(func() time.Time { return time.Time{} })
	if d := zero.FromNow(0); d.IsZero() || !d.Expired() {
		t.Errorf("%v is no deadline, or has not come", d)
	}
}

func TestDeadline_ContextEndsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := guard.FromNow(time.Minute)
		ctx, cancel := d.Context(t.Context())
		defer cancel()
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("it ends too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), guard.ErrDeadlineExceeded) || !d.Expired() {
			t.Errorf("err %v, cause %v, want those of a deadline", ctx.Err(), context.Cause(ctx))
		}
	})
}

func TestDeadline_ContextUsesItsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &setClock{noon}
		ctx, cancel := c.clock().FromNow(time.Minute).Context(t.Context())
		defer cancel()
		start := time.Now()
		<-ctx.Done()
		if got := time.Since(start); got != time.Minute {
			t.Errorf("it ended after %v, want a minute", got)
		}
	})
}

func TestDeadline_EarlierEndOfTheParentIsTheCause(t *testing.T) {
	parent, stop := context.WithCancelCause(t.Context())
	ctx, cancel := guard.FromNow(time.Hour).Context(parent)
	defer cancel()
	enough := errors.New("enough")
	stop(enough)
	if got := context.Cause(ctx); got != enough {
		t.Errorf("cause %v, want %v", got, enough)
	}
}

func TestDeadline_EarlierOfTwo(t *testing.T) {
	none, soon, late := guard.Deadline{}, guard.At(noon), guard.At(noon.Add(time.Hour))
	cases := []struct {
		name       string
		a, b, want guard.Deadline
	}{
		{"none and none", none, none, none},
		{"none and one", none, soon, soon},
		{"one and none", soon, none, soon},
		{"soon and late", soon, late, soon},
		{"late and soon", late, soon, soon},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.a.Earlier(tc.b); !got.Equal(tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDeadline_JSON(t *testing.T) {
	east := time.FixedZone("east", 3600)
	cases := []struct {
		name string
		d    guard.Deadline
		want string
	}{
		{"none", guard.Deadline{}, `{"always":null}`},
		{"a moment", guard.At(noon), `{"deadline":"2030-01-02T12:00:00Z","always":null}`},
		{"of another zone", guard.At(noon.In(east)), `{"deadline":"2030-01-02T12:00:00Z","always":null}`},
		{"with nanoseconds", guard.At(noon.Add(1)), `{"deadline":"2030-01-02T12:00:00.000000001Z","always":null}`},
	}
	type wire struct {
		Deadline guard.Deadline `json:"deadline,omitzero"`
		Always   guard.Deadline `json:"always"`
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			data, err := json.Marshal(wire{Deadline: tc.d})
			if err != nil || string(data) != tc.want {
				t.Fatalf("got %s, %v, want %s", data, err, tc.want)
			}
			var back wire
			if err := json.Unmarshal(data, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wire{Deadline: tc.d}, back); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	for _, bad := range []string{`"tomorrow"`, `7`, `{}`, `"2030-01-02"`} {
		d := guard.At(noon)
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s is read as %v", bad, d)
		}
	}
	d := guard.At(noon)
	if err := json.Unmarshal([]byte("null"), &d); err != nil || !d.IsZero() {
		t.Errorf("null is read as %v, %v, want none", d, err)
	}
	if text := guard.At(noon.In(east)).String(); text != "2030-01-02T12:00:00Z" {
		t.Errorf("String() = %s", text)
	}
}
