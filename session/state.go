// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/drover-agents/drover/internal/persist"
)

// A state is what the slices of policy State are at one moment: cells that hold folded items, and the
// entries that they are folded of. A cell can always be folded again from live, so it may be missing.
//
// A frozen state belongs to a snapshot or a transaction and is never changed; one that is not frozen
// belongs to the session alone and is changed in place.
type state struct {
	cells  []cell
	live   persist.Vector[int64] // ascending
	frozen bool
}

type cell struct {
	items any // nil means not folded
	epoch int
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

// itemsLocked returns the items of a slice, if they are folded. order or mu is held.
func (s *Session) itemsLocked(sl *slice) (any, bool) {
	if sl.policy == Log {
		return valid(s.logCells, sl)
	}
	return s.state.cell(sl)
}

// setItemsLocked needs a state that is thawed. order and mu are held.
func (s *Session) setItemsLocked(f folded) {
	if f.slice.policy == Log {
		s.logCells = setCell(s.logCells, f.slice, f.items)
	} else {
		s.state.cells = setCell(s.state.cells, f.slice, f.items)
	}
}

// withoutLocked is a live history without the entries of some transactions, all of which are above a position.
// order is held.
func (s *Session) withoutLocked(live persist.Vector[int64], txs []int64, above int64) persist.Vector[int64] {
	txs = slices.Sorted(slices.Values(txs)) // those of a log may be in any order
	kept := countUpTo(live, above)
	left := live.Take(kept)
	for _, pos := range live.From(kept) {
		if !has(txs, s.entryLocked(pos).Tx) {
			left = left.Append(pos)
		}
	}
	return left
}

func countUpTo(live persist.Vector[int64], pos int64) int {
	low, high := 0, live.Len()
	for low < high {
		if mid := (low + high) / 2; live.At(mid) <= pos {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// entryLocked is an entry above base.
func (s *Session) entryLocked(pos int64) *Entry { return s.log.At(int(pos - s.base - 1)) }
