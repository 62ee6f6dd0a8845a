// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"hash/maphash"
	"iter"
)

// A Key is what a [Sorted] is in the order of.
type Key[K any] interface {
	comparable
	// Compare is negative if the key comes before the other, and zero only for equal keys.
	Compare(other K) int
}

// A Sorted is an immutable map in the order of its keys. The zero value is empty.
//
// It is a search tree in which every node has a higher rank than those below it. The rank is a hash of
// the key: so the shape depends on the keys alone, and callers cannot choose keys that make it deep.
type Sorted[K Key[K], V any] struct{ root *sortedNode[K, V] }

type sortedNode[K Key[K], V any] struct {
	key         K
	value       V
	rank        uint64
	length      int
	left, right *sortedNode[K, V]
}

// Len is the number of keys.
func (s Sorted[K, V]) Len() int { return s.root.len() }

// Get returns the value of key and whether there is one.
func (s Sorted[K, V]) Get(key K) (value V, ok bool) {
	for n := s.root; n != nil; {
		switch order := key.Compare(n.key); {
		case order == 0:
			return n.value, true
		case order < 0:
			n = n.left
		default:
			n = n.right
		}
	}
	return value, false
}

// Set returns the map with value as the value of key.
func (s Sorted[K, V]) Set(key K, value V) Sorted[K, V] {
	return Sorted[K, V]{s.root.with(&sortedNode[K, V]{key: key, value: value, rank: maphash.Comparable(seed, key)})}
}

// Delete returns the map without key.
func (s Sorted[K, V]) Delete(key K) Sorted[K, V] { return Sorted[K, V]{s.root.without(key)} }

// Same reports whether two maps are one version. Different versions may have the same keys and values.
func (s Sorted[K, V]) Same(other Sorted[K, V]) bool { return s.root == other.root }

// All yields every key and its value in order.
func (s Sorted[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { s.root.each(yield) }
}

func (n *sortedNode[K, V]) len() int {
	if n == nil {
		return 0
	}
	return n.length
}

func (n *sortedNode[K, V]) each(yield func(K, V) bool) bool {
	return n == nil || n.left.each(yield) && yield(n.key, n.value) && n.right.each(yield)
}

func (n *sortedNode[K, V]) over(left, right *sortedNode[K, V]) *sortedNode[K, V] {
	return &sortedNode[K, V]{n.key, n.value, n.rank, 1 + left.len() + right.len(), left, right}
}

// with returns the tree with a node that has no branches yet, instead of the one with its key.
func (n *sortedNode[K, V]) with(fresh *sortedNode[K, V]) *sortedNode[K, V] {
	if n == nil {
		return fresh.over(nil, nil)
	}
	order := fresh.key.Compare(n.key)
	switch {
	case order == 0:
		return fresh.over(n.left, n.right)
	case fresh.rank > n.rank:
		left, right := n.split(fresh.key)
		return fresh.over(left, right)
	case order < 0:
		return n.over(n.left.with(fresh), n.right)
	}
	return n.over(n.left, n.right.with(fresh))
}

// split returns what is before and after a key. The key is not there: it would have been met before a lower rank.
func (n *sortedNode[K, V]) split(key K) (before, after *sortedNode[K, V]) {
	if n == nil {
		return nil, nil
	}
	if key.Compare(n.key) < 0 {
		before, after = n.left.split(key)
		return before, n.over(after, n.right)
	}
	before, after = n.right.split(key)
	return n.over(n.left, before), after
}

// without returns the same tree if the key is not there.
func (n *sortedNode[K, V]) without(key K) *sortedNode[K, V] {
	if n == nil {
		return nil
	}
	order := key.Compare(n.key)
	switch {
	case order == 0:
		return n.left.joined(n.right)
	case order < 0:
		if left := n.left.without(key); left != n.left {
			return n.over(left, n.right)
		}
	default:
		if right := n.right.without(key); right != n.right {
			return n.over(n.left, right)
		}
	}
	return n
}

// joined makes one tree of two, the first of which is before the second.
func (n *sortedNode[K, V]) joined(after *sortedNode[K, V]) *sortedNode[K, V] {
	switch {
	case n == nil:
		return after
	case after == nil:
		return n
	case n.rank > after.rank:
		return n.over(n.left, n.right.joined(after))
	}
	return after.over(n.joined(after.left), after.right)
}
