// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/persist"
	"github.com/drover-agents/drover/internal/plainjson"
)

// A checkpoint is the state after an entry, so that a session can be opened without folding its whole
// log. It is only ever a short cut: a slice that does not fit is folded from the beginning.
type checkpoint struct {
	Pos    int64                     `json:"pos"`
	NextTx int64                     `json:"nextTx"`
	Live   [][2]int64                `json:"live"` // first and last of each run
	Slices map[event.Kind]savedSlice `json:"slices"`
}

// A savedSlice fits a slice whose definition is the same.
type savedSlice struct {
	Policy  string          `json:"policy"`
	Version int             `json:"version,omitzero"`
	Events  []event.Kind    `json:"events,omitempty"`
	Items   json.RawMessage `json:"items"`
}

func (saved savedSlice) fits(sl *slice) bool {
	return saved.Policy == sl.policy.String() && saved.Version == sl.version && slices.Equal(saved.Events, sl.events)
}

// itemsOf returns the items that a slice had, and the position above which it is to be folded.
func (c *checkpoint) itemsOf(sl *slice) (any, int64) {
	if c == nil {
		return sl.empty, 0
	}
	saved, ok := c.Slices[sl.name]
	if !ok || !saved.fits(sl) {
		return sl.empty, 0
	}
	all, err := sl.seed(saved.Items)
	if err != nil {
		return sl.empty, 0
	}
	return all, c.Pos
}

func (c *checkpoint) live() persist.Vector[int64] {
	var live persist.Vector[int64]
	for _, run := range c.Live {
		for pos := run[0]; pos <= run[1]; pos++ {
			live = live.Append(pos)
		}
	}
	return live
}

func runsOf(live persist.Vector[int64]) [][2]int64 {
	runs := [][2]int64{}
	for pos := range live.All() {
		if n := len(runs); n > 0 && runs[n-1][1] == pos-1 {
			runs[n-1][1] = pos
		} else {
			runs = append(runs, [2]int64{pos, pos})
		}
	}
	return runs
}

// checkpointEvery is how many entries are appended between two checkpoints at least. The distance grows
// with the log, so that checkpoints cost a constant share.
const checkpointEvery = 4096

// A failed checkpoint is not retried before the next is due: each attempt encodes the whole state.
func (s *Session) checkpointIfDueLocked() {
	done := max(s.checkpointed, s.tried)
	if s.last-done < max(checkpointEvery, done/2) {
		return
	}
	s.checkpointLocked()
}

// notUTF8 is the encoding of bytes that are not UTF-8; a real U+FFFD is not escaped.
var notUTF8 = []byte(`\ufffd`)

// checkpointLocked saves the folded slices. While a transaction is open it saves nothing: it may be rolled back yet.
func (s *Session) checkpointLocked() {
	if s.store == nil || len(s.open) > 0 || s.last == s.checkpointed {
		return
	}
	s.tried = s.last
	c := checkpoint{Pos: s.last, NextTx: s.nextTx, Live: runsOf(s.state.live), Slices: map[event.Kind]savedSlice{}}
	for _, sl := range s.slices {
		all, ok := s.itemsLocked(sl)
		if !ok || !lossless(sl.typ) {
			continue // it will be folded
		}
		items, err := sl.encode(all)
		if err != nil || bytes.Contains(items, notUTF8) {
			continue // it has no JSON form
		}
		c.Slices[sl.name] = savedSlice{sl.policy.String(), sl.version, sl.events, items}
	}
	data, err := plainjson.Marshal(c)
	if err == nil {
		err = s.store.SaveCheckpoint(Checkpoint{s.last, data})
	}
	if err != nil {
		s.opts.Logger.Warn("the session has no new checkpoint; opening it takes longer", "session", s.ID(), "error", err)
		return
	}
	s.checkpointed = s.last
}

func readCheckpoint(store Store) (*checkpoint, error) {
	kept, err := store.Checkpoint()
	if err != nil || kept.Data == nil {
		return nil, err
	}
	var c checkpoint
	if err := json.Unmarshal(kept.Data, &c); err != nil {
		return nil, err
	}
	if c.Pos != kept.Pos || c.Pos > store.Last() {
		return nil, fmt.Errorf("it is of entry %d, the log ends at %d", c.Pos, store.Last())
	}
	return &c, c.check()
}

// check refuses runs that are not ascending, which no session has written.
func (c *checkpoint) check() error {
	last := int64(0)
	for _, run := range c.Live {
		if run[0] <= last || run[1] < run[0] || run[1] > c.Pos {
			return fmt.Errorf("it has the entries from %d to %d after %d, and is of entry %d", run[0], run[1], last, c.Pos)
		}
		last = run[1]
	}
	return nil
}
