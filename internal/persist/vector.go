// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"fmt"
	"iter"
)

const (
	blockBits = 5
	blockSize = 1 << blockBits
	blockMask = blockSize - 1
)

// A Vector is an immutable list. The zero value is empty.
//
// Items are in leaves of 32. The last leaf, the tail, hangs on the vector itself; all leaves before
// it are full and are in a tree of 32 branches per node. Appending to the newest version writes
// into memory that no version can see yet, so it costs little more than appending to a slice.
type Vector[T any] struct {
	length int
	tail   *block[T]
	root   *block[ref[T]]
	shift  int // how far a leaf's number is shifted right to find it in root; 0 if root holds leaves
}

// ref is a cell of the tree: a leaf at the lowest level, a branch above it.
type ref[T any] struct {
	branch *block[ref[T]]
	leaf   *block[T]
}

// Len is the number of items.
func (v Vector[T]) Len() int { return v.length }

// At returns item i. Like a slice, it panics if i is out of range.
func (v Vector[T]) At(i int) T {
	if uint(i) >= uint(v.length) {
		outOfRange(i, v.length)
	}
	return v.leaf(i >> blockBits).cells[i&blockMask]
}

// Last returns the newest item and whether there is one.
func (v Vector[T]) Last() (last T, ok bool) {
	if v.length == 0 {
		return last, false
	}
	return v.tail.cells[(v.length-1)&blockMask], true
}

// Append returns the vector with item after all others.
func (v Vector[T]) Append(item T) Vector[T] {
	at := v.length & blockMask
	if at == 0 && v.length > 0 {
		v.pushTail()
	}
	v.tail = v.tail.put(at, begun(v.length+1), item)
	v.length++
	return v
}

// Set returns the vector with item as item i. Like a slice, it panics if i is out of range.
func (v Vector[T]) Set(i int, item T) Vector[T] {
	if uint(i) >= uint(v.length) {
		outOfRange(i, v.length)
	}
	number, at := i>>blockBits, i&blockMask
	if number == v.fullLeaves() {
		v.tail = v.tail.copied((v.length-1)&blockMask+1, begun(v.length))
		v.tail.cells[at] = item
		return v
	}
	leaf := v.leaf(number).copied(blockSize, blockSize)
	leaf.cells[at] = item
	v.root = v.withLeaf(v.root, v.shift, number, leaf)
	return v
}

// Take returns the first n items. Like a slice, it panics if there are fewer. The items left out
// can stay in memory until the result itself is appended to or dropped.
func (v Vector[T]) Take(n int) Vector[T] {
	if uint(n) > uint(v.length) {
		outOfRange(n, v.length)
	}
	if n == 0 {
		return Vector[T]{}
	}
	v.tail = v.leaf((n - 1) >> blockBits)
	v.length = n
	leaves := v.fullLeaves()
	for ; v.shift > 0 && leaves <= 1<<v.shift; v.shift -= blockBits {
		v.root = v.root.cells[0].branch
	}
	if leaves == 0 {
		v.root = nil
	}
	return v
}

// All yields the items in order.
func (v Vector[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, item := range v.From(0) {
			if !yield(item) {
				return
			}
		}
	}
}

// From yields item i and all after it, each with its index; nothing if i is the length or more.
func (v Vector[T]) From(i int) iter.Seq2[int, T] {
	if i < 0 {
		outOfRange(i, v.length)
	}
	return func(yield func(int, T) bool) {
		for at := i; at < v.length; {
			leaf := v.leaf(at >> blockBits)
			for end := min(v.length, (at|blockMask)+1); at < end; at++ {
				if !yield(at, leaf.cells[at&blockMask]) {
					return
				}
			}
		}
	}
}

// fullLeaves is the number of leaves before the tail, which is also the number of the tail. It needs an item.
func (v *Vector[T]) fullLeaves() int { return (v.length - 1) >> blockBits }

// leaf finds a leaf, which may be the tail, by its number.
func (v *Vector[T]) leaf(number int) *block[T] {
	if number == v.fullLeaves() {
		return v.tail
	}
	branch := v.root
	for shift := v.shift; shift > 0; shift -= blockBits {
		branch = branch.cells[(number>>shift)&blockMask].branch
	}
	return branch.cells[number&blockMask].leaf
}

// pushTail moves the tail, which must be full, into the tree.
func (v *Vector[T]) pushTail() {
	number := v.fullLeaves()
	if number == blockSize<<v.shift {
		var none *block[ref[T]]
		v.root = none.put(0, blockSize, ref[T]{branch: v.root})
		v.shift += blockBits
	}
	v.root = pushLeaf(v.root, v.shift, number, v.tail)
	v.tail = nil
}

// pushLeaf adds the leaf of the next free number below branch, which is nil for a new one.
func pushLeaf[T any](branch *block[ref[T]], shift, number int, leaf *block[T]) *block[ref[T]] {
	at := (number >> shift) & blockMask
	if shift == 0 {
		return branch.put(at, blockSize, ref[T]{leaf: leaf})
	}
	if number&(1<<shift-1) == 0 { // the first leaf of a new branch
		return branch.put(at, blockSize, ref[T]{branch: pushLeaf(nil, shift-blockBits, number, leaf)})
	}
	old := branch.cells[at].branch
	grown := pushLeaf(old, shift-blockBits, number, leaf)
	if grown == old {
		return branch
	}
	branch = branch.copied(at+1, blockSize)
	branch.cells[at].branch = grown
	return branch
}

// withLeaf copies the branches on the way to a full leaf and replaces it.
func (v *Vector[T]) withLeaf(branch *block[ref[T]], shift, number int, leaf *block[T]) *block[ref[T]] {
	at := (number >> shift) & blockMask
	last := min(v.fullLeaves()-1, number|(blockSize<<shift-1)) // the last leaf below branch
	branch = branch.copied((last>>shift)&blockMask+1, blockSize)
	if shift == 0 {
		branch.cells[at].leaf = leaf
		return branch
	}
	branch.cells[at].branch = v.withLeaf(branch.cells[at].branch, shift-blockBits, number, leaf)
	return branch
}

func outOfRange(i, length int) {
	panic(fmt.Sprintf("persist: index %d out of range with length %d", i, length))
}
