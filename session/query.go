// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"reflect"

	"github.com/drover-agents/drover/internal/persist"
)

// A View is what a slice was when it was asked for. It never changes, and costs nothing to keep.
type View[S any] struct{ list persist.Vector[S] }

// Query returns the values of a type. Without a reducer for it these are all values of that type that
// were dispatched.
func Query[S any](s *Session) View[S] {
	t := reflect.TypeFor[S]()
	s.mu.RLock()
	if sl := s.slices[t]; sl != nil {
		if all, ok := s.itemsLocked(sl); ok {
			s.mu.RUnlock()
			return View[S]{all.(items[S]).list}
		}
	}
	s.mu.RUnlock()
	return View[S]{want[S](s).(items[S]).list}
}

// want folds a slice that nobody has asked for until now, or not since its definition changed.
func want[S any](s *Session) any {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	sl := sliceFor[S](s)
	sl.wanted = true
	all, ok := s.itemsLocked(sl)
	s.mu.Unlock()
	if ok {
		return all
	}
	return s.refoldLocked(sl)
}

// Latest is the last value, and whether there is one.
func (v View[S]) Latest() (S, bool) { return v.list.Last() }

// All yields the values in order.
func (v View[S]) All() iter.Seq[S] { return v.list.All() }

// Where yields the values that a predicate holds for, in order.
func (v View[S]) Where(holds func(S) bool) iter.Seq[S] {
	return func(yield func(S) bool) {
		for value := range v.list.All() {
			if holds(value) && !yield(value) {
				return
			}
		}
	}
}

// Len is the number of values.
func (v View[S]) Len() int { return v.list.Len() }

// At is the value at a place, from 0.
func (v View[S]) At(i int) S { return v.list.At(i) }
