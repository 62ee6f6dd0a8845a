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
// in turn, and nobody while the upstream has too much to do.
type lane struct {
	max int

	mu       sync.Mutex
	inFlight int
	turns    []*turns // runs that wait, the next one first
	held     time.Time
	timer    *time.Timer
	users    map[Upstream]int // open runs
}

// turns are the calls of one run that wait, in order.
type turns struct {
	run     *Run
	waiting []*ticket
}

// A ticket is a call that waits.
type ticket struct {
	patience time.Duration
	goBy     time.Time     // it goes then even if the lane is held; zero until it is held back
	ready    chan struct{} // closed when it may go
}

func newLane(most int) *lane { return &lane{max: most, users: map[Upstream]int{}} }

// acquire waits for the turn of a call, which must release the lane after it. A held lane holds it
// back for at most patience; what is left of that is returned.
func (l *lane) acquire(ctx context.Context, run *Run, patience time.Duration) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return patience, err
	}
	t := &ticket{patience: patience, ready: make(chan struct{})}
	l.mu.Lock()
	if !l.held.IsZero() && time.Now().Before(l.held) {
		t.goBy = time.Now().Add(patience)
	}
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

// release gives the place of a call to the next one.
func (l *lane) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	l.dispatchLocked()
}

// hold lets nobody go for d. It does not shorten an earlier hold.
func (l *lane) hold(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if until := now.Add(d); until.After(l.held) {
		l.held = until
	}
	for _, q := range l.turns {
		for _, t := range q.waiting {
			if t.goBy.IsZero() {
				t.goBy = now.Add(t.patience)
			}
		}
	}
	l.dispatchLocked()
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

// abandon gives up a ticket, or the place if it came meanwhile.
func (l *lane) abandon(run *Run, t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-t.ready:
		l.inFlight--
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

// dispatchLocked lets go whoever may, and wakes up when that changes with time.
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
	if wake := l.wakeLocked(now); !wake.IsZero() {
		l.timer = time.AfterFunc(wake.Sub(now), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.dispatchLocked()
		})
	}
}

// nextLocked takes the next ticket that may go. Its run goes to the end of the turns.
func (l *lane) nextLocked(now time.Time) *ticket {
	held := now.Before(l.held)
	for i, q := range l.turns {
		k := slices.IndexFunc(q.waiting, func(t *ticket) bool { return !held || t.impatient(now) })
		if k < 0 {
			continue
		}
		t := q.waiting[k]
		q.waiting = slices.Delete(q.waiting, k, k+1)
		l.turns = slices.Delete(l.turns, i, i+1)
		if len(q.waiting) > 0 {
			l.turns = append(l.turns, q)
		}
		return t
	}
	return nil
}

func (t *ticket) impatient(now time.Time) bool { return !t.goBy.IsZero() && !now.Before(t.goBy) }

// wakeLocked is when somebody who is held back may go; zero if there is nobody, or no place.
func (l *lane) wakeLocked(now time.Time) time.Time {
	if len(l.turns) == 0 || l.inFlight >= l.max || !now.Before(l.held) {
		return time.Time{}
	}
	wake := l.held
	for _, q := range l.turns {
		for _, t := range q.waiting {
			if t.goBy.Before(wake) {
				wake = t.goBy
			}
		}
	}
	return wake
}

// enter and leave count the runs that use an upstream. After the last one its idle connections are
// closed.
func (l *lane) enter(u Upstream) {
	if !reflect.TypeOf(u).Comparable() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users[u]++
}

func (l *lane) leave(u Upstream) {
	if reflect.TypeOf(u).Comparable() && !l.lastOf(u) {
		return
	}
	if c, ok := u.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (l *lane) lastOf(u Upstream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users[u]--
	if l.users[u] > 0 {
		return false
	}
	delete(l.users, u)
	return true
}
