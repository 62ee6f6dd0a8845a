// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"
)

// A lane is the way to the upstreams of one name: at most max calls at once, the runs that wait served
// in turn, and fewer while the upstream has too much to do. No run has the lane for itself: it gets a part
// of the places, and what makes the upstream refuse its calls holds other runs back for a moment only.
type lane struct {
	max int

	mu       sync.Mutex
	inFlight int
	turns    []*turns  // runs that wait, the next one first
	held     time.Time // until then all runs wait
	timer    *time.Timer
	runs     int              // open ones
	users    map[Upstream]int // open runs
}

type laneShare struct {
	inFlight int
	held     time.Time // until then this run waits
}

// How long calls wait because the upstream has refused one of another run: each time, and in all.
const (
	sharedHold     = 5 * time.Second
	sharedPatience = 10 * time.Second
)

// turns are the calls of one run that wait, in order.
type turns struct {
	run     *Run
	waiting []*ticket
}

// A ticket is a call that waits.
type ticket struct {
	patience time.Duration
	goBy     time.Time     // it goes then even if its run is held; zero until it is held back
	sharedBy time.Time     // it goes then even if all runs are held; zero until it is held back
	ready    chan struct{} // closed when it may go
}

func newLane(most int) *lane { return &lane{max: most, users: map[Upstream]int{}} }

// acquire waits for the turn of a call, which must release the lane. A hold lasts at most patience; the rest is returned.
func (l *lane) acquire(ctx context.Context, run *Run, patience time.Duration) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return patience, err
	}
	t := &ticket{patience: patience, ready: make(chan struct{})}
	l.mu.Lock()
	l.holdLocked(run, t, time.Now())
	l.enqueueLocked(run, t)
	l.dispatchLocked()
	l.mu.Unlock()
	select {
	case <-t.ready:
		return l.patienceLeft(t), nil
	case <-ctx.Done():
		l.abandon(run, t)
		return patience, ctx.Err()
	}
}

func (l *lane) patienceLeft(t *ticket) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.goBy.IsZero() {
		return t.patience
	}
	return max(time.Until(t.goBy), 0)
}

func (l *lane) release(run *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.freeLocked(run)
	l.dispatchLocked()
}

func (l *lane) freeLocked(run *Run) {
	l.inFlight--
	run.share.inFlight--
}

// hold lets no call of a run go for d, and none of the others for a moment. It does not shorten an earlier hold.
func (l *lane) hold(run *Run, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	run.share.held = later(run.share.held, now.Add(d))
	l.held = later(l.held, now.Add(min(d, sharedHold)))
	for _, q := range l.turns {
		for _, t := range q.waiting {
			l.holdLocked(q.run, t, now)
		}
	}
	l.dispatchLocked()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// holdLocked notes for how long a ticket may be held back, from the first moment in which it is.
func (l *lane) holdLocked(run *Run, t *ticket, now time.Time) {
	if t.goBy.IsZero() && now.Before(run.share.held) {
		t.goBy = now.Add(t.patience)
	}
	if t.sharedBy.IsZero() && now.Before(l.held) {
		t.sharedBy = now.Add(sharedPatience)
	}
}

// goesAt is when a ticket may go. Its run may still have all its slots.
func (l *lane) goesAt(run *Run, t *ticket) time.Time {
	own, shared := run.share.held, l.held
	if !t.goBy.IsZero() && t.goBy.Before(own) {
		own = t.goBy
	}
	if !t.sharedBy.IsZero() && t.sharedBy.Before(shared) {
		shared = t.sharedBy
	}
	if !t.goBy.IsZero() && t.goBy.Before(shared) {
		shared = t.goBy
	}
	return later(own, shared)
}

func (l *lane) slots() int {
	n := l.max - l.max/4
	if l.runs > 1 {
		n = min(n, l.max-1)
	}
	return max(n, 1)
}

func (l *lane) enqueueLocked(run *Run, t *ticket) {
	for _, q := range l.turns {
		if q.run == run {
			q.waiting = append(q.waiting, t)
			return
		}
	}
	l.turns = append(l.turns, &turns{run, []*ticket{t}})
}

// abandon gives up a ticket, or the slot that it got meanwhile.
func (l *lane) abandon(run *Run, t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-t.ready:
		l.freeLocked(run)
	default:
		i := slices.IndexFunc(l.turns, func(q *turns) bool { return q.run == run })
		q := l.turns[i]
		q.waiting = slices.DeleteFunc(q.waiting, func(other *ticket) bool { return other == t })
		if len(q.waiting) == 0 {
			l.turns = slices.Delete(l.turns, i, i+1)
		}
	}
	l.dispatchLocked()
}

// dispatchLocked starts the calls that may start, and sets a timer for the next moment when a call may.
func (l *lane) dispatchLocked() {
	now := time.Now()
	for l.inFlight < l.max {
		t := l.nextLocked(now)
		if t == nil {
			break
		}
		l.inFlight++
		close(t.ready)
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if wake := l.wakeLocked(); !wake.IsZero() {
		l.timer = time.AfterFunc(wake.Sub(now), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.dispatchLocked()
		})
	}
}

// nextLocked takes the next ticket that may go. Its run goes to the end of the turns.
func (l *lane) nextLocked(now time.Time) *ticket {
	for i, q := range l.turns {
		if q.run.share.inFlight >= l.slots() {
			continue
		}
		k := slices.IndexFunc(q.waiting, func(t *ticket) bool { return !now.Before(l.goesAt(q.run, t)) })
		if k < 0 {
			continue
		}
		t := q.waiting[k]
		q.waiting = slices.Delete(q.waiting, k, k+1)
		l.turns = slices.Delete(l.turns, i, i+1)
		if len(q.waiting) > 0 {
			l.turns = append(l.turns, q)
		}
		q.run.share.inFlight++
		return t
	}
	return nil
}

// wakeLocked is when a delayed ticket may go; zero if there is no ticket, or no slot.
func (l *lane) wakeLocked() (wake time.Time) {
	if l.inFlight >= l.max {
		return wake
	}
	for _, q := range l.turns {
		if q.run.share.inFlight >= l.slots() {
			continue
		}
		for _, t := range q.waiting {
			if at := l.goesAt(q.run, t); wake.IsZero() || at.Before(wake) {
				wake = at
			}
		}
	}
	return wake
}

// enter and leave count the runs that use an upstream. After the last one its idle connections are closed.
func (l *lane) enter(u Upstream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs++
	if reflect.TypeOf(u).Comparable() {
		l.users[u]++
	}
}

func (l *lane) leave(u Upstream) {
	if !l.lastOf(u) {
		return
	}
	if c, ok := u.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (l *lane) lastOf(u Upstream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs--
	l.dispatchLocked() // one run fewer may mean more slots for another
	if !reflect.TypeOf(u).Comparable() {
		return true
	}
	l.users[u]--
	if l.users[u] > 0 {
		return false
	}
	delete(l.users, u)
	return true
}
