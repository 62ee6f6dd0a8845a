// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/drover-agents/drover/event"
)

// A Policy is whether a rollback also changes a slice.
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
	// changes, so that the slice is folded from scratch and not read from an old checkpoint.
	Version int
	// Key identifies the values of the slice, for [Upsert]. Its result must be comparable.
	Key func(S) any
}

// A slice is the definition of a slice of state. Its values are in cells: many states share the definition.
type slice struct {
	typ     reflect.Type
	name    event.Kind
	index   int // of its cells
	policy  Policy
	version int
	// epoch counts the changes of the definition. A cell of another epoch is not valid any more.
	epoch int
	// wanted means that the slice has a reducer or was queried: it is kept up to date.
	wanted   bool
	reducers map[reflect.Type][]reducer
	key      func(v any) any
	events   []event.Kind // of the reducers, in order of registration; part of what a checkpoint fits

	empty     any
	byDefault []reducer                     // for values of the type itself, where no reducer is registered for them
	seed      func(values any) (any, error) // the items made of a Seeded
	encode    func(items any) (json.RawMessage, error)
}

// A reducer makes new items of old ones and an event. It is typed inside. It gets the slice as an
// argument, because clones of a session have definitions of their own.
type reducer func(sl *slice, items any, v any) (any, error)

func newSlice[S any]() *slice {
	t := reflect.TypeFor[S]()
	sl := &slice{
		typ: t, name: kindOf(t), reducers: map[reflect.Type][]reducer{}, empty: (*items[S])(nil),
		byDefault: []reducer{func(_ *slice, all, v any) (any, error) { return all.(*items[S]).with(v.(S)), nil }},
		seed:      seedItems[S],
		encode:    encodeItems[S],
	}
	if manages(t) { // the session's own records stay
		sl.policy = Log
	}
	return sl
}

// sliceFor returns the slice of a type, and makes it if it is missing. order and mu are held. It panics if the type
// cannot have a slice: that is a bug of the program.
func sliceFor[S any](s *Session) *slice {
	t := reflect.TypeFor[S]()
	if sl := s.slices[t]; sl != nil {
		return sl
	}
	if err := s.claimLocked(t); err != nil {
		panic(err)
	}
	sl := newSlice[S]()
	sl.index = len(s.slices)
	s.slices[t] = sl
	clear(s.routes)
	return sl
}

// A step is what a slice does with events of one type.
type step struct {
	slice   *slice
	manage  bool      // the event is one that changes slices by itself
	reduce  []reducer // of the event
	entries []reducer // of the whole entry
}

// stepFor returns false if the slice has nothing to do with events of a type.
func (sl *slice) stepFor(t reflect.Type) (step, bool) {
	st := step{slice: sl, manage: managing[t], reduce: sl.reducers[t]}
	if st.reduce == nil && t == sl.typ {
		st.reduce = sl.byDefault
	}
	if !manages(t) {
		st.entries = sl.reducers[entryType]
	}
	return st, st.manage || st.reduce != nil || st.entries != nil
}

// fold gives the items after an entry with the value v. A reducer that fails has no effect, and is added to failed.
func (st *step) fold(all any, entry *Entry, v any, failed []failure) (any, []failure) {
	if st.manage {
		all, failed = st.run(all, v, manageItems, failed)
	}
	for _, reduce := range st.reduce {
		all, failed = st.run(all, v, reduce, failed)
	}
	if st.entries != nil {
		v = *entry
	}
	for _, reduce := range st.entries {
		all, failed = st.run(all, v, reduce, failed)
	}
	return all, failed
}

// manageItems is the reducer that every slice has for what [Seed], [Clear] and [Session.Reset] dispatch.
func manageItems(sl *slice, all, v any) (any, error) {
	switch c := v.(type) {
	case Seeded:
		if c.Slice == sl.name {
			return sl.seed(c.values)
		}
	case Cleared:
		if c.Slice == sl.name {
			return sl.empty, nil
		}
	case Reset:
		if sl.policy == State {
			return sl.empty, nil
		}
	}
	return all, nil
}

// A failure is a reducer that failed. Without a slice the event itself could not be decoded.
type failure struct {
	slice *slice
	err   error
}

// run runs a reducer. If it fails or panics the items stay as they are.
func (st *step) run(all, v any, reduce reducer, failed []failure) (next any, failures []failure) {
	defer func() {
		if p := recover(); p != nil {
			next, failures = all, append(failed, failure{st.slice, panicError{p}})
		}
	}()
	next, err := reduce(st.slice, all, v)
	if err != nil {
		return all, append(failed, failure{st.slice, err})
	}
	return next, failed
}

type panicError struct{ value any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }
