// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"reflect"
)

// Define replaces the options of a slice.
func Define[S any](s *Session, o SliceOptions[S]) {
	change[S](s, func(sl *slice) {
		sl.policy, sl.version = o.Policy, o.Version
		sl.key = nil
		if o.Key != nil {
			sl.key = func(v any) any { return o.Key(v.(S)) }
		}
	})
}

// Reduce registers a reducer of a slice that has one value. It gets that value, or the zero value, and
// an event, and returns the new one.
//
// Like every reducer it must not change what it gets: snapshots and other readers have the same maps and slices. It copies
// those that it changes. Beware of append(state.List, v), which may write v into memory that older states share, and so
// change them: append(slices.Clip(state.List), v) copies the list. Nor must it call anything of the session, which waits
// for it: Dispatch in a reducer fails with [ErrInReducer], and so does the reducer.
func Reduce[S, E any](s *Session, reduce func(state S, e E) S) {
	register[S, E](s, func(_ *slice, all *items[S], e E) (*items[S], error) {
		latest, _ := all.last()
		return single(reduce(latest, e)), nil
	})
}

// Append registers a reducer that adds a value to the slice for each event.
func Append[S, E any](s *Session, value func(e E) S) {
	register[S, E](s, func(_ *slice, all *items[S], e E) (*items[S], error) { return all.with(value(e)), nil })
}

// ReplaceLatest registers a reducer that makes the slice one value: that of the last event.
func ReplaceLatest[S, E any](s *Session, value func(e E) S) {
	register[S, E](s, func(_ *slice, _ *items[S], e E) (*items[S], error) { return single(value(e)), nil })
}

// Upsert registers a reducer that replaces the value with the same key, or appends the value if
// the key is new. The slice must have a key: see [SliceOptions].
func Upsert[S, E any](s *Session, value func(e E) S) {
	change[S](s, func(sl *slice) {
		if sl.key == nil {
			panic(fmt.Sprintf("session: Upsert of %s: the slice has no key: call Define with a Key first", sl.name))
		}
	})
	register[S, E](s, func(sl *slice, all *items[S], e E) (*items[S], error) {
		if sl.key == nil {
			return nil, errors.New("the slice has lost its key: a later Define has none")
		}
		return all.upserted(value(e), sl.key), nil
	})
}

// A Change is what a reducer of [Fold] does to its slice.
type Change[S any] struct {
	replace bool
	values  []S
}

// Keep changes nothing.
func Keep[S any]() Change[S] { return Change[S]{} }

// Add appends values.
func Add[S any](values ...S) Change[S] { return Change[S]{values: values} }

// Replace replaces all values. Without values it clears the slice.
func Replace[S any](values ...S) Change[S] { return Change[S]{replace: true, values: values} }

// Fold registers a reducer that sees all values of the slice and returns the change. If it fails the slice is unchanged.
func Fold[S, E any](s *Session, fold func(all View[S], e E) (Change[S], error)) {
	register[S, E](s, func(_ *slice, all *items[S], e E) (*items[S], error) {
		c, err := fold(View[S]{items: all}, e)
		if err != nil {
			return nil, err
		}
		if c.replace {
			return listOf(c.values), nil
		}
		for _, v := range c.values {
			all = all.with(v)
		}
		return all, nil
	})
}

// register adds a reducer of events of type E. For [Entry] it sees every entry but those that manage the session.
func register[S, E any](s *Session, reduce func(sl *slice, all *items[S], e E) (*items[S], error)) {
	t := reflect.TypeFor[E]()
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		panic(fmt.Sprintf("session: no event is ever a %s: pointers are dispatched as what they point to, and events have the type they were made with; register for that type, or for session.Entry to see all events", t))
	}
	change[S](s, func(sl *slice) {
		if t != entryType {
			if err := s.claimLocked(t); err != nil {
				panic(err)
			}
		}
		sl.reducers[t] = append(sl.reducers[t], func(sl *slice, all, v any) (any, error) {
			next, err := reduce(sl, all.(*items[S]), v.(E))
			if err != nil {
				return nil, err
			}
			return next, nil
		})
		sl.events = append(sl.events, kindOf(t))
		sl.wanted = true
	})
}

// change changes the definition of a slice, which is folded again when it is needed next.
func change[S any](s *Session, edit func(*slice)) {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := sliceFor[S](s)
	edit(sl)
	sl.epoch++
	clear(s.routes)
}
