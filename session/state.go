// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"reflect"
	"slices"
	"sort"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/persist"
)

// A state is what the slices of policy State are at one moment: cells that hold folded items, and the
// entries that they are folded of. A cell can always be made anew of live, so it may be missing.
//
// A frozen state belongs to a snapshot or a transaction and is never changed; one that is not frozen
// belongs to the session alone and is changed in place.
type state struct {
	cells  []cell
	live   persist.Vector[int64]
	frozen bool
}

func (st *state) thaw() *state {
	if !st.frozen {
		return st
	}
	return &state{cells: slices.Clone(st.cells), live: st.live}
}

func (st *state) cell(sl *slice) (any, bool) { return valid(st.cells, sl) }

func valid(cells []cell, sl *slice) (any, bool) {
	if sl.index >= len(cells) || cells[sl.index].items == nil || cells[sl.index].epoch != sl.epoch {
		return nil, false
	}
	return cells[sl.index].items, true
}

func setCell(cells []cell, sl *slice, all any) []cell {
	for len(cells) <= sl.index {
		cells = append(cells, cell{})
	}
	cells[sl.index] = cell{all, sl.epoch}
	return cells
}

// A folded is a slice and its items after an entry.
type folded struct {
	slice *slice
	items any
}

// A failure is a reducer that failed.
type failure struct {
	slice *slice
	err   error
}

// foldLocked lets the reducers of slices of some policies see an entry.
func (s *Session) foldLocked(entry *Entry, policies ...Policy) (changed []folded, failed []failure) {
	v, err := s.valueLocked(entry)
	if err != nil {
		return nil, []failure{{nil, err}}
	}
	for _, sl := range s.routesLocked(reflect.TypeOf(v)) {
		if !slices.Contains(policies, sl.policy) {
			continue
		}
		old, ok := s.itemsLocked(sl)
		if !ok {
			if !sl.wanted {
				continue // nobody has asked yet; it will be folded of the log when somebody does
			}
			old = s.refoldLocked(sl)
		}
		next, errs := sl.fold(old, entry, v)
		changed = append(changed, folded{sl, next})
		for _, err := range errs {
			failed = append(failed, failure{sl, err})
		}
	}
	return changed, failed
}

// itemsLocked returns the items of a slice, if they are folded. order or mu is held.
func (s *Session) itemsLocked(sl *slice) (any, bool) {
	if sl.policy == Log {
		return valid(s.logCells, sl)
	}
	return s.state.cell(sl)
}

func (s *Session) setItemsLocked(f folded) {
	if f.slice.policy == Log {
		s.logCells = setCell(s.logCells, f.slice, f.items)
	} else {
		s.state.cells = setCell(s.state.cells, f.slice, f.items)
	}
}

// routesLocked are the slices that events of a type may change.
func (s *Session) routesLocked(t reflect.Type) []*slice {
	if routes, ok := s.routes[t]; ok {
		return routes
	}
	routes := []*slice{}
	for _, sl := range s.slices {
		if changesSlices(t) || sl.reducersFor(t) != nil || sl.reducers[entryType] != nil {
			routes = append(routes, sl)
		}
	}
	slices.SortFunc(routes, func(a, b *slice) int { return a.index - b.index })
	s.routes[t] = routes
	return routes
}

// valueLocked is what reducers see of an entry. An event whose type was not known when it was read from
// the store is decoded now, if it is known by now.
func (s *Session) valueLocked(entry *Entry) (any, error) {
	raw, ok := entry.Event.Payload.(event.Extension)
	if !ok {
		return valueOf(entry.Event.Payload), nil
	}
	t, known := s.types[raw.Kind]
	if !known {
		return raw, nil
	}
	return decodeValue(raw.Data, t)
}

// refoldLocked folds a slice of the log, from the beginning or from the checkpoint that the session was
// opened with. What failed then fails again, and was reported then.
func (s *Session) refoldLocked(sl *slice) any {
	all, after := s.saved.itemsOf(sl)
	for entry, err := range s.foldableLocked(sl.policy, after) {
		if err != nil {
			s.opts.Logger.Error("a slice could not be folded to its end", "slice", sl.name, "error", err)
			break
		}
		if v, err := s.valueLocked(entry); err == nil {
			all, _ = sl.fold(all, entry, v)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = s.state.thaw()
	s.setItemsLocked(folded{sl, all})
	return all
}

// foldableLocked yields the entries above a position that slices of a policy are folded of.
func (s *Session) foldableLocked(policy Policy, after int64) iter.Seq2[*Entry, error] {
	if policy == Log {
		return s.entriesLocked(after)
	}
	live := s.state.live
	return func(yield func(*Entry, error) bool) {
		i := sort.Search(live.Len(), func(i int) bool { return live.At(i) > after })
		for entry, err := range s.entriesLocked(after) {
			if err == nil && (i >= live.Len() || live.At(i) != entry.Pos) {
				continue
			}
			i++
			if !yield(entry, err) {
				return
			}
		}
	}
}
