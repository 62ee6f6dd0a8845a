// SPDX-License-Identifier: Apache-2.0

package persist

import "sync/atomic"

// A block is an array that many versions share, each seeing a first part of it. A cell is written
// once, by whoever takes it, and only versions made from that write see it: so readers, which stay
// within their own part, need no lock.
type block[E any] struct {
	used  atomic.Int32 // the cells taken by any version
	cells [blockSize]E
}

// put writes the cell after the first n, which are all the caller sees. If another version has
// taken that cell, or there is no block yet, it writes into a copy.
func (b *block[E]) put(n int, cell E) *block[E] {
	if b == nil || !b.used.CompareAndSwap(int32(n), int32(n+1)) {
		b = b.copied(n)
		b.used.Store(int32(n + 1))
	}
	b.cells[n] = cell
	return b
}

// copied returns a block of its own with the first n cells; the others may be in use by others at
// this moment.
func (b *block[E]) copied(n int) *block[E] {
	fresh := new(block[E])
	fresh.used.Store(int32(n))
	if n > 0 {
		copy(fresh.cells[:n], b.cells[:n])
	}
	return fresh
}
