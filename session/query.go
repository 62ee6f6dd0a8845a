// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"reflect"
)

// A View is what a slice was when it was asked for. It never changes, and costs nothing to keep.
type View[S any] struct {
	items *items[S]
	err   error
}

// Query returns the values of a type. Without a reducer for it these are all values of that type that were dispatched.
func Query[S any](s *Session) View[S] {
	t := reflect.TypeFor[S]()
	s.mu.RLock()
	if sl := s.slices[t]; sl != nil {
		if all, ok := s.itemsLocked(sl); ok {
			s.mu.RUnlock()
			return View[S]{items: all.(*items[S])}
		}
	}
	s.mu.RUnlock()
	all, err := want[S](s)
	if err != nil {
		return View[S]{err: err}
	}
	return View[S]{items: all.(*items[S])}
}

// want folds a slice at its first query, and at the first after a change of its definition.
func want[S any](s *Session) (any, error) {
	s.order.Lock()
	defer s.order.Unlock()
	sl := wantedSlice[S](s)
	if all, ok := s.itemsLocked(sl); ok {
		return all, nil
	}
	return s.refoldLocked(sl)
}

func wantedSlice[S any](s *Session) *slice {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := sliceFor[S](s)
	sl.wanted = true
	return sl
}

// Latest is the last value, and whether there is one.
func (v View[S]) Latest() (S, bool) { return v.items.last() }

// All yields the values in order.
func (v View[S]) All() iter.Seq[S] { return v.items.all() }

// Where yields the values that a predicate holds for, in order.
func (v View[S]) Where(holds func(S) bool) iter.Seq[S] {
	return func(yield func(S) bool) {
		for value := range v.items.all() {
			if holds(value) && !yield(value) {
				return
			}
		}
	}
}

// Len is the number of values.
func (v View[S]) Len() int { return v.items.length() }

// At returns the value at an index, from 0. Like a slice, it panics if i is out of range.
func (v View[S]) At(i int) S { return v.items.at(i) }

// Err returns why the slice could not be folded: the store with the older part of the log could not be read, or is
// closed. The view is empty then. It is nil for sessions in memory.
func (v View[S]) Err() error { return v.err }
