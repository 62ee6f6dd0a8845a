// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/drover-agents/drover/event"
)

// A route is where events of one Go type go, in the order of the slices.
type route struct {
	kind  event.Kind // what such events are called; empty if they differ
	steps []step
}

// routeLocked finds the route of a type. The first event of a type claims its kind. order is held.
func (s *Session) routeLocked(t reflect.Type) (*route, error) {
	if r, ok := s.routes[t]; ok {
		return r, nil
	}
	r := &route{}
	if t != extensionType {
		s.mu.Lock()
		err := s.claimLocked(t)
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
		r.kind = kindOf(t)
	}
	for _, sl := range s.slices {
		if st, ok := sl.stepFor(t); ok {
			r.steps = append(r.steps, st)
		}
	}
	slices.SortFunc(r.steps, func(a, b step) int { return a.slice.index - b.slice.index })
	s.routes[t] = r
	return r, nil
}

var extensionType = reflect.TypeFor[event.Extension]()

// typeLocked is the Go type of the event of an entry, for which a payload from a store need not be decoded. order is held.
func (s *Session) typeLocked(entry *Entry) reflect.Type {
	switch p := entry.Event.Payload.(type) {
	case Value:
		return reflect.TypeOf(p.v)
	case event.Extension:
		if t := s.types[p.Kind]; t != nil {
			return t
		}
		s.unknown[p.Kind] = true
	}
	return reflect.TypeOf(entry.Event.Payload)
}

// A folded is a slice and its items after an entry. Without items it has to be folded again.
type folded struct {
	slice *slice
	items any
}

// foldLocked lets reducers see an entry, and leaves what they made of it in s.changed. Slices of policy
// State are left out on demand. order is held.
func (s *Session) foldLocked(entry *Entry, state bool) []failure {
	r, err := s.routeLocked(s.typeLocked(entry))
	if err == nil && len(r.steps) > 0 {
		entry, err = resolve(entry, s.types)
	}
	if err != nil {
		return []failure{{nil, err}}
	}
	// If a reducer ends its goroutine without a panic, the rest has to be folded again.
	for i := range r.steps {
		if sl := r.steps[i].slice; state || sl.policy == Log {
			s.changed = append(s.changed, folded{slice: sl})
		}
	}
	s.order.reducing.Store(true)
	var failed []failure
	v, at := valueOf(entry.Event.Payload), 0
	for i := range r.steps {
		if st := &r.steps[i]; at < len(s.changed) && s.changed[at].slice == st.slice {
			s.changed[at].items, failed = s.stepLocked(st, entry, v, failed)
			at++
		}
	}
	return failed
}

func (s *Session) stepLocked(st *step, entry *Entry, v any, failed []failure) (any, []failure) {
	old, ok := s.itemsLocked(st.slice)
	if !ok {
		if !st.slice.wanted {
			return nil, failed // not queried yet: it is folded from the log by the first query
		}
		var err error
		if old, err = s.refoldLocked(st.slice); err != nil {
			return nil, failed // as long as the log cannot be read there is nothing to add to
		}
	}
	next, failed := st.fold(old, entry, v, failed)
	if s.order.misused.Load() {
		s.order.misused.Store(false)
		return old, append(failed, failure{st.slice, ErrInReducer})
	}
	return next, failed
}

// refoldLocked folds a slice of the log, from the beginning or from the checkpoint that the session was opened with.
// A failure over an earlier entry is logged, not reported. order is held.
func (s *Session) refoldLocked(sl *slice) (any, error) {
	s.order.reducing.Store(true)
	all, after := s.saved.itemsOf(sl)
	var failed []failure
	for entry, err := range s.foldableLocked(sl.policy, after) {
		if err != nil {
			s.opts.Logger.Error("a slice could not be folded", "session", s.ID(), "slice", sl.name, "error", err)
			return nil, err
		}
		st, ok := sl.stepFor(s.typeLocked(entry))
		if !ok {
			continue
		}
		if entry, err = resolve(entry, s.types); err != nil {
			failed = append(failed, failure{nil, err})
			continue
		}
		all, failed = st.fold(all, entry, valueOf(entry.Event.Payload), failed)
	}
	if len(failed) > 0 {
		s.opts.Logger.Warn("reducers failed over the past", "session", s.ID(), "slice", sl.name, "times", len(failed), "first", fmt.Sprint(failed[0].err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = s.state.thaw()
	s.setItemsLocked(folded{sl, all})
	return all, nil
}

// foldableLocked yields the entries above a position that slices of a policy are folded of.
func (s *Session) foldableLocked(policy Policy, after int64) iter.Seq2[*Entry, error] {
	if policy == Log {
		return s.entriesLocked(after)
	}
	live := s.state.live
	return func(yield func(*Entry, error) bool) {
		i := countUpTo(live, after)
		for entry, err := range s.entriesLocked(after) {
			if i == live.Len() && err == nil {
				return
			}
			if err == nil && live.At(i) != entry.Pos {
				continue
			}
			i++
			if !yield(entry, err) {
				return
			}
		}
	}
}
