// SPDX-License-Identifier: Apache-2.0

package persist

import "sync/atomic"

// A block is an array of which each of many versions sees a first part. A cell is written once, and only versions
// made from that write see it: readers, which stay within their own part, need no lock.
type block[E any] struct {
	used  atomic.Int32 // the cells taken by any version
	cells []E          // 32 at the end, fewer in a block that has just begun: most lists are short
}

// begun is how many cells a block for the first n items of a list has.
func begun(n int) int {
	switch {
	case n <= 1:
		return 1
	case n <= 4:
		return 4
	}
	return blockSize
}

// put writes the cell after the first n, which are all the caller sees. If another version has
// taken that cell, or there is no room, it writes into a copy with that much room.
func (b *block[E]) put(n, room int, cell E) *block[E] {
	if b == nil || n == len(b.cells) || !b.used.CompareAndSwap(int32(n), int32(n+1)) {
		b = b.copied(n, room)
		b.used.Store(int32(n + 1))
	}
	b.cells[n] = cell
	return b
}

// copied returns a block of its own with the first n cells; the others may be in use by others at this moment.
func (b *block[E]) copied(n, room int) *block[E] {
	fresh := &block[E]{cells: make([]E, room)}
	fresh.used.Store(int32(n))
	if n > 0 {
		copy(fresh.cells[:n], b.cells[:n])
	}
	return fresh
}
