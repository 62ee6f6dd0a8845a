// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/persist"
)

// Open continues the session in a store, or begins one in an empty store. The session closes the store.
// Register the reducers as the first thing: they get the log from its beginning.
//
// Transactions that had not ended when the log did, because the program was killed, are rolled back.
// A [FileStore] that is open for reading only is left as it is: what such transactions did, or those
// that another program is about to end, is just no part of the state.
//
// If Open fails, the store stays open: close it yourself.
func Open(store Store, opts *Options) (*Session, error) {
	s := newSession(opts)
	s.store = store
	if err := s.beginLog(); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("session: opening %s: %w", s.head.ID, err)
	}
	if err := s.rollBackInterrupted(); err != nil {
		return nil, err
	}
	s.join()
	return s, nil
}

func (s *Session) beginLog() error {
	head, err := s.store.Head()
	if err != nil {
		return err
	}
	switch {
	case head.Version == 0:
		s.head = s.newHead()
		return s.store.Init(s.head)
	case head.Version > EncodingVersion:
		return advice.Wrap(fmt.Errorf("%w: it has version %d, this program reads up to %d", ErrVersion, head.Version, EncodingVersion),
			"use a newer version of Drover")
	case s.opts.ID != "" && s.opts.ID != head.ID:
		return advice.Wrap(fmt.Errorf("session: the log is of session %q, not %q", head.ID, s.opts.ID),
			"leave Options.ID empty, or open another log")
	}
	s.head = head
	return nil
}

// load reads what is in the store. If the checkpoint is of no use it reads everything.
func (s *Session) load() error {
	saved, err := readCheckpoint(s.store)
	if err != nil {
		s.opts.Logger.Warn("the checkpoint is of no use; the session is read from its beginning", "session", s.ID(), "error", err)
	}
	if saved != nil && err == nil {
		s.saved, s.base, s.last, s.nextTx, s.checkpointed = saved, saved.Pos, saved.Pos, saved.NextTx, saved.Pos
		s.state.live = saved.live()
		if err = s.replay(); !errors.Is(err, errBeforeBase) {
			return err
		}
		s.saved, s.base, s.last, s.nextTx, s.checkpointed = nil, 0, 0, 0, 0
		s.state, s.log = &state{}, persist.Vector[*Entry]{}
	}
	return s.replay()
}

// errBeforeBase: the log goes back to before the checkpoint.
var errBeforeBase = errors.New("the state was restored to before the checkpoint")

// replay reads the entries above base and what became of each. It runs no reducer: slices are folded on demand.
func (s *Session) replay() error {
	lives := []persist.Vector[int64]{s.state.live} // after each entry
	first := map[int64]int64{}                     // the first entry of each transaction
	for record, err := range s.store.Records(s.base) {
		if err != nil {
			return err
		}
		entry, err := decodeNext(record, s.last)
		if err != nil {
			return err
		}
		s.log, s.last = s.log.Append(entry), entry.Pos
		if _, seen := first[entry.Tx]; !seen && entry.Tx != 0 {
			first[entry.Tx] = entry.Pos
			s.nextTx = max(s.nextTx, entry.Tx)
		}
		if s.state.live, err = s.liveAfter(entry, lives, first); err != nil {
			return err
		}
		lives = append(lives, s.state.live)
	}
	return nil
}

func (s *Session) liveAfter(entry *Entry, lives []persist.Vector[int64], first map[int64]int64) (persist.Vector[int64], error) {
	live := s.state.live
	switch what := entry.Event.Payload.(type) {
	case Restored:
		if what.To < 0 || what.To >= entry.Pos {
			return live, fmt.Errorf("entry %d: %w: it goes back to entry %d", entry.Pos, ErrCorrupt, what.To)
		}
		if what.To < s.base {
			return live, errBeforeBase
		}
		return lives[what.To-s.base], nil
	case RolledBack:
		return s.withoutLocked(live, what.Txs, beforeAll(what.Txs, first, entry.Pos)), nil
	case Committed:
		return live, nil
	}
	return live.Append(entry.Pos), nil
}

// beforeAll is a position before all entries of some transactions.
func beforeAll(txs []int64, first map[int64]int64, pos int64) int64 {
	for _, tx := range txs {
		if at, ok := first[tx]; ok {
			pos = min(pos, at)
		}
	}
	return pos - 1
}

// rollBackInterrupted ends what a dead program left open. A read-only session does not record that in the log.
func (s *Session) rollBackInterrupted() error {
	s.order.Lock()
	defer s.order.Unlock()
	open := s.interruptedLocked()
	for _, tx := range slices.Sorted(maps.Keys(open)) {
		undone := &state{live: s.withoutLocked(s.state.live, []int64{tx}, s.base)}
		what := RolledBack{Txs: []int64{tx}, Call: open[tx], Reason: "the program ended before the call did"}
		switch err := s.turnLocked(what, open[tx], undone); {
		case errors.Is(err, errReadOnly):
			s.state = undone // no other goroutine has the session yet
		case err != nil:
			return err
		}
	}
	return nil
}

// interruptedLocked are the transactions without an end, each with its call. None began before a
// checkpoint, because the session takes no checkpoint while a transaction is open.
func (s *Session) interruptedLocked() map[int64]string {
	open := map[int64]string{}
	for _, entry := range s.log.From(0) {
		var ended []int64
		switch what := entry.Event.Payload.(type) {
		case Committed:
			ended = what.Txs
		case RolledBack:
			ended = what.Txs
		}
		for _, tx := range ended {
			delete(open, tx)
		}
		if entry.Tx != 0 {
			open[entry.Tx] = entry.Cause
		}
	}
	return open
}
