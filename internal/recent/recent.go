// SPDX-License-Identifier: Apache-2.0

// Package recent remembers the last of many things, and forgets the oldest.
package recent

// A Map holds the values of the last Size keys that were put into it. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	// Size must be set before the first Put, and not be changed.
	Size int

	values map[K]V
	ring   []K
	oldest int
}

// Get returns the value of a key, and whether it is remembered.
func (m *Map[K, V]) Get(k K) (V, bool) {
	v, ok := m.values[k]
	return v, ok
}

// Len is how many keys are remembered.
func (m *Map[K, V]) Len() int { return len(m.values) }

// Put remembers a value. A key that is there keeps its age.
func (m *Map[K, V]) Put(k K, v V) {
	if m.values == nil {
		m.values = map[K]V{}
	}
	if _, known := m.values[k]; !known {
		m.remember(k)
	}
	m.values[k] = v
}

func (m *Map[K, V]) remember(k K) {
	if len(m.ring) < m.Size {
		m.ring = append(m.ring, k)
		return
	}
	delete(m.values, m.ring[m.oldest])
	m.ring[m.oldest] = k
	m.oldest = (m.oldest + 1) % m.Size
}
