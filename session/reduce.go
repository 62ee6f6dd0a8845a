// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"reflect"

	"github.com/drover-agents/drover/event"
)

// Define sets the options of a slice, in place of those that it had.
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
func Reduce[S, E any](s *Session, reduce func(state S, e E) S) {
	register[S, E](s, func(all items[S], e E) (items[S], error) {
		latest, _ := all.list.Last()
		return listOf(reduce(latest, e)), nil
	})
}

// Append registers a reducer that adds a value to the slice for each event.
func Append[S, E any](s *Session, value func(e E) S) {
	register[S, E](s, func(all items[S], e E) (items[S], error) {
		all.list = all.list.Append(value(e))
		return all, nil
	})
}

// ReplaceLatest registers a reducer that makes the slice one value: that of the last event.
func ReplaceLatest[S, E any](s *Session, value func(e E) S) {
	register[S, E](s, func(_ items[S], e E) (items[S], error) { return listOf(value(e)), nil })
}

// Upsert registers a reducer that puts a value into the place of the one with the same key, or at the
// end if there is none. The slice must have a key: see [SliceOptions].
func Upsert[S, E any](s *Session, value func(e E) S) {
	key, name := keyOf[S](s)
	if key == nil {
		panic(fmt.Sprintf("session: Upsert of %s: the slice has no key; call Define with a Key first", name))
	}
	register[S, E](s, func(all items[S], e E) (items[S], error) {
		return all.upsert(value(e), key), nil
	})
}

func keyOf[S any](s *Session) (key func(any) any, name event.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := sliceFor[S](s)
	return sl.key, sl.name
}

// index brings the places of the keys up to date.
func (all items[S]) index(key func(any) any) items[S] {
	for i, old := range all.list.From(all.indexed) {
		all.keys = all.keys.Set(key(old), i)
	}
	all.indexed = all.list.Len()
	return all
}

func (all items[S]) upsert(v S, key func(any) any) items[S] {
	all = all.index(key)
	if i, ok := all.keys.Get(key(v)); ok {
		all.list = all.list.Set(i, v)
		return all
	}
	all.list = all.list.Append(v)
	return all
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

// Replace puts values into the place of all that there are. Without values it clears the slice.
func Replace[S any](values ...S) Change[S] { return Change[S]{replace: true, values: values} }

// Fold registers a reducer that sees all values of the slice and says what is to change. If it fails
// the slice stays as it is.
func Fold[S, E any](s *Session, fold func(all View[S], e E) (Change[S], error)) {
	register[S, E](s, func(all items[S], e E) (items[S], error) {
		c, err := fold(View[S]{all.list}, e)
		if err != nil {
			return all, err
		}
		if c.replace {
			all = items[S]{}
		}
		for _, v := range c.values {
			all.list = all.list.Append(v)
		}
		return all, nil
	})
}

// register adds a reducer of events of type E. E may be [Entry]: then it sees every entry but those that
// manage the session itself.
func register[S, E any](s *Session, reduce func(all items[S], e E) (items[S], error)) {
	t := reflect.TypeFor[E]()
	change[S](s, func(sl *slice) {
		sl.reducers[t] = append(sl.reducers[t], func(all, v any) (any, error) { return reduce(all.(items[S]), v.(E)) })
		sl.events = append(sl.events, kindOf(t))
		sl.wanted = true
		if t != entryType {
			s.types[kindOf(t)] = t
		}
	})
}

// change changes the definition of a slice, which is folded anew when it is needed next.
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

var entryType = reflect.TypeFor[Entry]()
