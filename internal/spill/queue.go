// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// DefaultMemory is the number of bytes kept in memory if no limit is given.
const DefaultMemory = 16 << 20

// itemCost is what an item takes in memory besides its data.
const itemCost = 48

// batchBytes is how much PopBatch hands over at once: what it hands over no longer counts as queued.
const batchBytes = 128 << 10

// ErrClosed is returned by Push after Close or Discard.
var ErrClosed = errors.New("spill: queue is closed")

// An Item is one entry of a [Queue]. The queue owns Data until Pop hands it over.
type Item struct {
	Data []byte
	Tag  uint64 // the caller's own
}

func (it Item) cost() int64 { return int64(len(it.Data)) + itemCost }

// Options configures a [Queue]. The zero value is ready to use.
type Options struct {
	// Memory is how many bytes of items are kept in memory. Zero means [DefaultMemory].
	Memory int
	// Dir is where the temporary files go. Empty means os.TempDir.
	Dir string
	// SegmentSize is how large one temporary file may grow. Zero means 64 MiB.
	SegmentSize int64
	// Paced lets Push wait a moment for a consumer at work, so that less memory is used. See [Queue.Hurry].
	Paced bool
}

// A Queue is a first-in first-out queue. Make one with [New].
type Queue struct {
	mem int64

	mu      sync.Mutex
	in      []Item // pushed, not yet seen by a consumer; all older than what is on disk
	disk    disk
	spilled int
	closed  bool
	err     error         // after everything that is queued
	wake    chan struct{} // capacity 1; filled when a waiting consumer should look again
	waiting bool
	pushed  int64 // items ever
	pace    pace
	pacing  sync.Mutex // held by the one producer that works
	hurry   atomic.Bool

	len   atomic.Int64 // items in in, out and on disk
	bytes atomic.Int64 // cost of the items in in and out

	popMu sync.Mutex // held by the one consumer that works
	out   []Item     // taken from in as a whole, so that most Pops do not meet the producer
	next  int        // index in out
}

// New returns an empty queue.
func New(opts Options) *Queue {
	if opts.Memory <= 0 {
		opts.Memory = DefaultMemory
	}
	if opts.SegmentSize <= 0 {
		opts.SegmentSize = 64 << 20
	}
	q := &Queue{
		mem:  int64(opts.Memory),
		disk: disk{dir: opts.Dir, segmentSize: opts.SegmentSize},
		wake: make(chan struct{}, 1),
	}
	q.pace.init()
	q.hurry.Store(!opts.Paced)
	return q
}

// Push appends an item. It returns [ErrClosed] after Close, and the error of the disk if the item
// did not fit into memory and could not be written; the consumer gets that error too.
func (q *Queue) Push(it Item) error {
	q.pacing.Lock()
	defer q.pacing.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return cmp.Or(q.disk.err, ErrClosed)
	}
	if q.disk.count == 0 && (q.bytes.Load()+it.cost() <= q.mem || q.len.Load() == 0) {
		q.in = append(q.in, it)
		q.bytes.Add(it.cost())
	} else if err := q.disk.write(it); err != nil {
		q.closed = true
		q.err = err
		q.wakeLocked()
		return err
	} else {
		q.spilled++
	}
	q.pushed++
	q.len.Add(1)
	q.wakeLocked()
	if !q.hurry.Load() {
		q.giveWayLocked(it.cost())
	}
	return nil
}

// Hurry makes Push never wait from now on.
func (q *Queue) Hurry() { q.hurry.Store(true) }

func (q *Queue) wakeLocked() {
	if !q.waiting {
		return
	}
	q.waiting = false
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Pop removes the oldest item. It waits until there is one, the queue is closed and empty, or ctx
// ends. The data of the item then belongs to the caller. Pop is made for one consumer: a second one
// waits for the first, even if its own context ends.
func (q *Queue) Pop(ctx context.Context) (Item, error) {
	q.popMu.Lock()
	defer q.popMu.Unlock()
	for q.next == len(q.out) {
		if err := q.refill(ctx); err != nil {
			return Item{}, err
		}
	}
	it := q.out[q.next]
	q.out[q.next] = Item{}
	q.next++
	q.len.Add(-1)
	q.pace.drained(q.bytes.Add(-it.cost()))
	return it, nil
}

// PopBatch waits as Pop does, then moves as many items into dst as are at hand without touching
// the disk, and returns their number. It costs less than as many Pops.
func (q *Queue) PopBatch(ctx context.Context, dst []Item) (int, error) {
	q.popMu.Lock()
	defer q.popMu.Unlock()
	for q.next == len(q.out) {
		if err := q.refill(ctx); err != nil {
			return 0, err
		}
	}
	n, cost := 0, int64(0)
	for n < len(dst) && q.next < len(q.out) && cost < batchBytes {
		dst[n] = q.out[q.next]
		q.out[q.next] = Item{}
		cost += dst[n].cost()
		q.next++
		n++
	}
	q.len.Add(-int64(n))
	q.pace.drained(q.bytes.Add(-cost))
	return n, nil
}

// refill puts at least one item into q.out, or returns without one after a wake-up.
func (q *Queue) refill(ctx context.Context) error {
	q.mu.Lock()
	switch {
	case len(q.in) > 0:
		q.out, q.in = q.in, q.out[:0]
		q.next = 0
		q.mu.Unlock()
		return nil
	case q.disk.count > 0:
		defer q.mu.Unlock()
		return q.readDiskLocked()
	case q.closed:
		defer q.mu.Unlock()
		q.disk.close()
		if q.err == nil {
			return io.EOF
		}
		return q.err
	}
	q.waiting = true
	q.mu.Unlock()
	select {
	case <-q.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readDiskLocked brings a part of what is on disk back into q.out. The lock is held while reading:
// it is a bounded read of what was just written, and Push writes to the same file.
func (q *Queue) readDiskLocked() error {
	q.out, q.next = q.out[:0], 0
	limit := min(q.mem/2, readBatch)
	for q.disk.count > 0 && (len(q.out) == 0 || q.bytes.Load() < limit) {
		it, err := q.disk.read()
		if err != nil {
			q.closed = true
			q.err = err
			q.len.Add(-int64(q.disk.count))
			q.disk.close()
			break
		}
		q.out = append(q.out, it)
		q.bytes.Add(it.cost())
	}
	return nil
}

// Close ends the queue: Push fails from now on, and the consumer gets err, or io.EOF if err is
// nil, after the items that are queued. Only the first call counts.
func (q *Queue) Close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.err = err
	q.wakeLocked()
}

// Discard closes the queue with [ErrClosed], drops what no consumer has taken yet and gives the
// disk space back. A consumer may still get the few items that were being handed over.
func (q *Queue) Discard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.in {
		q.bytes.Add(-it.cost())
	}
	q.len.Add(-int64(len(q.in) + q.disk.count))
	q.in = nil
	q.disk.close()
	if !q.closed {
		q.closed = true
		q.err = ErrClosed
	}
	q.wakeLocked()
}

// Len returns the number of items that are queued.
func (q *Queue) Len() int { return int(q.len.Load()) }

// Bytes returns what the queued items take in memory.
func (q *Queue) Bytes() int { return int(q.bytes.Load()) }

// Spilled returns the number of items that ever went through the disk.
func (q *Queue) Spilled() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.spilled
}
