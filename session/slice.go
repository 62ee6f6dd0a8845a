// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/persist"
)

// A Policy says whether a slice goes back with a rollback.
type Policy uint8

const (
	// State goes back: it is folded of what has not been rolled back.
	State Policy = iota
	// Log never goes back: it is folded of everything that was dispatched.
	Log
)

// String returns "state" or "log".
func (p Policy) String() string {
	if p == Log {
		return "log"
	}
	return "state"
}

// SliceOptions configures a slice; see [Define].
type SliceOptions[S any] struct {
	// Policy is [State] unless it is set.
	Policy Policy
	// Version is part of what a checkpoint is recognised by. Raise it when a reducer of the slice
	// changes its mind, so that the slice is folded anew and not taken from a checkpoint of the past.
	Version int
	// Key tells the values of the slice apart, for [Upsert]. What it returns must be comparable.
	Key func(S) any
}

// A slice is the definition of one slice of state. The values themselves are in cells: the same
// definition belongs to many states.
type slice struct {
	typ     reflect.Type
	name    event.Kind
	index   int // of its cells
	policy  Policy
	version int
	// epoch counts the changes of the definition. A cell of another epoch is not valid any more.
	epoch int
	// wanted says that somebody registered a reducer or asked for the slice: it is kept up to date.
	wanted   bool
	reducers map[reflect.Type][]reducer
	key      func(v any) any
	events   []event.Kind // of the reducers, in order of registration; part of what a checkpoint fits

	empty     any
	byDefault []reducer                     // for values of the type itself, where no reducer is registered for them
	seed      func(values any) (any, error) // the items made of a Seeded
	encode    func(items any) (json.RawMessage, error)
}

// A reducer makes new items of old ones and an event. It is typed inside.
type reducer func(items any, v any) (any, error)

// items are the values of a slice, persistent. Upserts need to find values by key: keys has the places
// of the first indexed values.
type items[S any] struct {
	list    persist.Vector[S]
	keys    persist.Map[any, int]
	indexed int
}

// A cell holds the items of one slice in one state.
type cell struct {
	items any // nil means not folded
	epoch int
}

func newSlice[S any]() *slice {
	t := reflect.TypeFor[S]()
	return &slice{
		typ: t, name: kindOf(t), policy: defaultPolicy(t), reducers: map[reflect.Type][]reducer{}, empty: items[S]{},
		byDefault: []reducer{func(all, v any) (any, error) {
			it := all.(items[S])
			it.list = it.list.Append(v.(S))
			return it, nil
		}},
		seed:   seedItems[S],
		encode: encodeItems[S],
	}
}

// seedItems takes values as they were dispatched, or as they come from a store.
func seedItems[S any](values any) (any, error) {
	list, ok := values.([]S)
	if raw, isRaw := values.(json.RawMessage); isRaw {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		ok = true
	}
	if !ok {
		return nil, fmt.Errorf("the values are %T, not %T", values, list)
	}
	return listOf(list...), nil
}

func listOf[S any](values ...S) items[S] {
	var it items[S]
	for _, v := range values {
		it.list = it.list.Append(v)
	}
	return it
}

func encodeItems[S any](all any) (json.RawMessage, error) {
	list := make([]S, 0, all.(items[S]).list.Len())
	for v := range all.(items[S]).list.All() {
		list = append(list, v)
	}
	return json.Marshal(list)
}

// reducersFor are those that see events of a type.
func (sl *slice) reducersFor(t reflect.Type) []reducer {
	if own := sl.reducers[t]; own != nil || t != sl.typ {
		return own
	}
	return sl.byDefault
}

// fold gives the items after an entry, whose value is v. A reducer that fails has no effect; the others
// have.
func (sl *slice) fold(all any, entry *Entry, v any) (next any, failed []error) {
	switch c := v.(type) {
	case Seeded:
		if c.Slice == sl.name {
			return guarded(all, func() (any, error) { return sl.seed(c.values) })
		}
		return all, nil
	case Cleared:
		if c.Slice == sl.name {
			return sl.empty, nil
		}
		return all, nil
	case Reset:
		if sl.policy == State {
			return sl.empty, nil
		}
		return all, nil
	}
	all, failed = apply(sl.reducersFor(reflect.TypeOf(v)), all, v, nil)
	if whole := sl.reducers[entryType]; whole != nil && !manages(v) {
		all, failed = apply(whole, all, *entry, failed)
	}
	return all, failed
}

func apply(reducers []reducer, all, v any, failed []error) (any, []error) {
	for _, reduce := range reducers {
		var errs []error
		all, errs = guarded(all, func() (any, error) { return reduce(all, v) })
		failed = append(failed, errs...)
	}
	return all, failed
}

// guarded runs a reducer. If it fails or panics the items stay as they are.
func guarded(old any, reduce func() (any, error)) (next any, failed []error) {
	defer func() {
		if p := recover(); p != nil {
			next, failed = old, []error{panicError{p}}
		}
	}()
	next, err := reduce()
	if err != nil {
		return old, []error{err}
	}
	return next, nil
}

type panicError struct{ value any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// sliceFor finds the slice of a type, and makes it if there is none. mu is held.
func sliceFor[S any](s *Session) *slice {
	t := reflect.TypeFor[S]()
	sl := s.slices[t]
	if sl == nil {
		sl = newSlice[S]()
		sl.index = len(s.slices)
		s.slices[t] = sl
		s.types[sl.name] = t
		clear(s.routes)
	}
	return sl
}
