// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
)

// seed makes hashes differ between processes, so that callers cannot choose keys that collide.
var seed = maphash.MakeSeed()

// A Map is an immutable map. The zero value is empty. Keys compare as in a Go map.
//
// It is a tree whose every level takes five bits of the key's hash; a level stores only the
// branches it has. Keys of the same hash share a leaf.
type Map[K comparable, V any] struct {
	length int
	root   *mapNode[K, V]
}

// Len is the number of keys.
func (m Map[K, V]) Len() int { return m.length }

// Get returns the value of key and whether there is one.
func (m Map[K, V]) Get(key K) (V, bool) { return m.get(maphash.Comparable(seed, key), key) }

// Set returns the map with value as the value of key.
func (m Map[K, V]) Set(key K, value V) Map[K, V] {
	return m.set(maphash.Comparable(seed, key), key, value)
}

// All yields every key and its value once, in no useful order: it differs between processes.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.root != nil {
			m.root.each(yield)
		}
	}
}

func (m Map[K, V]) get(hash uint64, key K) (value V, ok bool) {
	if m.root == nil {
		return value, false
	}
	if leaf := m.root.leaf(hash).find(key); leaf != nil {
		return leaf.value, true
	}
	return value, false
}

func (m Map[K, V]) set(hash uint64, key K, value V) Map[K, V] {
	root := m.root
	if root == nil {
		root = new(mapNode[K, V])
	}
	root, added := root.with(&mapLeaf[K, V]{hash: hash, key: key, value: value}, 0)
	if added {
		m.length++
	}
	m.root = root
	return m
}

// mapNode is one level. Bit i of its bitmap is set if a slot for hash bits i exists; slots are
// in the order of the bits. Below the root a node holds two keys of different hashes or more.
type mapNode[K comparable, V any] struct {
	bitmap uint32
	slots  []mapSlot[K, V]
}

// mapSlot holds a node or a leaf, never both.
type mapSlot[K comparable, V any] struct {
	node *mapNode[K, V]
	leaf *mapLeaf[K, V]
}

// position returns the bit of hash at this level and where its slot is, or would be.
func (n *mapNode[K, V]) position(hash uint64, shift uint) (bit uint32, at int) {
	bit = 1 << ((hash >> shift) & blockMask)
	return bit, bits.OnesCount32(n.bitmap & (bit - 1))
}

// leaf finds the only leaf that can hold keys of hash, nil without such a leaf.
func (n *mapNode[K, V]) leaf(hash uint64) *mapLeaf[K, V] {
	for shift := uint(0); ; shift += blockBits {
		bit, at := n.position(hash, shift)
		if n.bitmap&bit == 0 {
			return nil
		}
		slot := n.slots[at]
		if slot.node == nil {
			return slot.leaf
		}
		n = slot.node
	}
}

// with returns the node with leaf in it, and whether its key is new.
func (n *mapNode[K, V]) with(leaf *mapLeaf[K, V], shift uint) (*mapNode[K, V], bool) {
	bit, at := n.position(leaf.hash, shift)
	if n.bitmap&bit == 0 {
		slots := slices.Concat(n.slots[:at], []mapSlot[K, V]{{leaf: leaf}}, n.slots[at:])
		return &mapNode[K, V]{bitmap: n.bitmap | bit, slots: slots}, true
	}
	old := n.slots[at]
	if old.node == nil && old.leaf.hash == leaf.hash {
		added := old.leaf.find(leaf.key) == nil
		leaf.next = old.leaf.without(leaf.key)
		return n.replaced(at, mapSlot[K, V]{leaf: leaf}), added
	}
	below := old.node
	if below == nil { // two hashes that were one so far part at a lower level
		below, _ = new(mapNode[K, V]).with(old.leaf, shift+blockBits)
	}
	below, added := below.with(leaf, shift+blockBits)
	return n.replaced(at, mapSlot[K, V]{node: below}), added
}

func (n *mapNode[K, V]) replaced(at int, slot mapSlot[K, V]) *mapNode[K, V] {
	slots := slices.Clone(n.slots)
	slots[at] = slot
	return &mapNode[K, V]{bitmap: n.bitmap, slots: slots}
}

func (n *mapNode[K, V]) each(yield func(K, V) bool) bool {
	for _, slot := range n.slots {
		if slot.node != nil {
			if !slot.node.each(yield) {
				return false
			}
			continue
		}
		for leaf := slot.leaf; leaf != nil; leaf = leaf.next {
			if !yield(leaf.key, leaf.value) {
				return false
			}
		}
	}
	return true
}

// mapLeaf is a key and its value, linked to the other keys of the same hash. The hash is kept
// because it costs more to make than to store, and because that of a NaN is another each time.
type mapLeaf[K comparable, V any] struct {
	hash  uint64
	key   K
	value V
	next  *mapLeaf[K, V]
}

// find returns the leaf of key in the chain, nil if the chain has no such leaf.
func (l *mapLeaf[K, V]) find(key K) *mapLeaf[K, V] {
	for ; l != nil; l = l.next {
		if l.key == key {
			return l
		}
	}
	return nil
}

// without returns the chain without key: the same chain if it was not there.
func (l *mapLeaf[K, V]) without(key K) *mapLeaf[K, V] {
	switch {
	case l == nil:
		return nil
	case l.key == key:
		return l.next
	}
	rest := l.next.without(key)
	if rest == l.next {
		return l
	}
	return &mapLeaf[K, V]{hash: l.hash, key: l.key, value: l.value, next: rest}
}
