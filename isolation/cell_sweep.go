// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"sync"
	"time"
)

// sweepShare bounds what sweeping costs a program that starts many cells, as a divisor of its time. A
// sweep takes a fraction of a millisecond, but some ten where a temporary folder has ten thousand entries.
const sweepShare = 20

type pacer struct {
	mu   sync.Mutex
	rest time.Time // not before
}

// try does the work unless it is running, or ended only recently for the time that it takes.
func (p *pacer) try(work func()) {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	began := time.Now()
	if began.Before(p.rest) {
		return
	}
	work()
	now := time.Now()
	p.rest = now.Add(sweepShare * now.Sub(began))
}

var (
	homeSweeps  sync.Map // folder and prefix -> *pacer
	groupSweeps pacer
)

// sweepHomes removes the homes of crashed programs. A home that cannot be removed now is tried again by a later run.
func sweepHomes(parent, prefix string) (err error) {
	p, _ := homeSweeps.LoadOrStore([2]string{parent, prefix}, &pacer{})
	p.(*pacer).try(func() { _, err = SweepHomes(parent, prefix) })
	return err
}
