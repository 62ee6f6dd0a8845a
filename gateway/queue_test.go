// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestLane_HoldEndsWithThePatienceOfACall(t *testing.T) {
	cases := []struct {
		name             string
		patience         time.Duration
		want, wantLeft   time.Duration
		extendedAfterSix bool
	}{
		{"the hold ends first", 30 * time.Second, 10 * time.Second, 20 * time.Second, false},
		{"the patience ends first", 4 * time.Second, 4 * time.Second, 0, false},
		{"another call is refused meanwhile", 12 * time.Second, 12 * time.Second, 0, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, run := newLane(1), &Run{}
				l.hold(run, 10*time.Second)
				if tc.extendedAfterSix {
					time.AfterFunc(6*time.Second, func() { l.hold(run, time.Minute) })
				}
				began := time.Now()
				left, err := l.acquire(t.Context(), run, tc.patience)
				if got := time.Since(began); err != nil || got != tc.want || left != tc.wantLeft {
					t.Errorf("it waited %s with %s left (%v), want %s and %s", got, left, err, tc.want, tc.wantLeft)
				}
			})
		})
	}
}

// Who waits already when the lane is held has his whole patience from then on.
func TestLane_HoldDelaysWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, run, other := newLane(1), &Run{}, &Run{}
		if _, err := l.acquire(t.Context(), other, 0); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Hour, func() {
			l.hold(run, 10*time.Second)
			l.release(other)
		})
		began := time.Now()
		left, err := l.acquire(t.Context(), run, 25*time.Second)
		if got, want := time.Since(began), time.Hour+10*time.Second; err != nil || got != want || left != 15*time.Second {
			t.Errorf("it waited %s with %s left (%v), want %s and 15s", got, left, err, want)
		}
	})
}

func TestLane_AbandonedTicketReturnsItsSlot(t *testing.T) {
	l, run := newLane(1), &Run{}
	first, second := &ticket{ready: make(chan struct{})}, &ticket{ready: make(chan struct{})}
	l.enqueueLocked(run, first)
	l.dispatchLocked()
	l.enqueueLocked(run, second)
	l.abandon(run, first) // which has its turn already
	select {
	case <-second.ready:
	default:
		t.Fatal("the place of who gave up is lost")
	}
	l.abandon(run, second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.acquire(ctx, run, 0); err == nil || l.inFlight != 0 || len(l.turns) != 0 {
		t.Errorf("got %v, with %d in flight and %d waiting", err, l.inFlight, len(l.turns))
	}
}

// idle is an upstream that counts how often its idle connections are closed.
type idle struct{ closed int }

func (*idle) Name() string                                    { return "idle" }
func (*idle) Wire() *Wire                                     { return WireAnthropic }
func (*idle) RoundTrip(*http.Request) (*http.Response, error) { return nil, http.ErrNotSupported }
func (u *idle) CloseIdleConnections()                         { u.closed++ }

func TestGateway_LastRunClosesIdleConnections(t *testing.T) {
	u, g := new(idle), New(nil)
	var runs []*Run
	for range 2 {
		run, err := g.Open(RunOptions{Upstream: u})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	for i, run := range runs {
		for range 2 { // a second Close changes nothing
			if err := run.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if u.closed != i {
			t.Errorf("after %d of 2 runs they were closed %d times", i+1, u.closed)
		}
	}
}
