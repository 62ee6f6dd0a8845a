// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"sync/atomic"
	"time"
)

const (
	// softLimit is how many bytes may wait before Push gives way to the consumer.
	softLimit = 128 << 10
	// patience and maxPatience bound one wait of Push. The wait grows with what is queued, because a
	// few large items take the consumer as long as many small ones.
	patience    = 2 * time.Millisecond
	maxPatience = 20 * time.Millisecond
	// expectedRate is how fast a consumer is that is worth waiting for, in bytes a second.
	expectedRate = 256 << 20
)

// A pace keeps a producer from running far ahead of a consumer that is at work, so that memory stays small without
// the disk. A consumer that does not move costs the producer one wait of at most maxPatience until it moves again.
type pace struct {
	// low is the level of bytes at which the waiting producer wants to be woken, or -1.
	low   atomic.Int64
	eased chan struct{} // capacity 1

	credit  int64 // bytes that may be pushed before the next wait
	stuckAt int64 // number of items popped when the consumer did not move, or -1
}

func (p *pace) init() {
	p.low.Store(-1)
	p.eased = make(chan struct{}, 1)
	p.stuckAt = -1
}

// drained is called with the level after each Pop.
func (p *pace) drained(level int64) {
	if low := p.low.Load(); low >= 0 && level <= low && p.low.CompareAndSwap(low, -1) {
		p.eased <- struct{}{} // there is room: only the winner sends, and each wait takes it out
	}
}

// giveWayLocked waits a moment for the consumer if much is queued. It gives up the lock meanwhile.
func (q *Queue) giveWayLocked(cost int64) {
	p := &q.pace
	level := q.bytes.Load()
	if level <= softLimit || q.disk.count > 0 || q.closed {
		p.credit = 0
		return
	}
	if p.credit -= cost; p.credit >= 0 {
		return
	}
	popped := q.poppedLocked()
	if popped == p.stuckAt {
		return
	}
	p.stuckAt = -1
	p.low.Store(max(softLimit/2, level-softLimit))
	q.mu.Unlock()
	p.drained(q.bytes.Load()) // it may have fallen before low was set
	eased := p.wait(min(patience+time.Duration(level)*time.Second/expectedRate, maxPatience))
	q.mu.Lock()
	switch {
	case eased:
		p.credit = softLimit / 2
	case q.poppedLocked() == popped:
		p.stuckAt = popped
	default:
		p.credit = 2 * softLimit
	}
}

// wait reports whether the level fell in time.
func (p *pace) wait(limit time.Duration) bool {
	select {
	case <-p.eased:
		return true
	case <-time.After(limit):
	}
	if p.low.Swap(-1) < 0 {
		<-p.eased // the consumer has taken the request: its answer is on the way
		return true
	}
	return false
}

func (q *Queue) poppedLocked() int64 { return q.pushed - q.len.Load() }
