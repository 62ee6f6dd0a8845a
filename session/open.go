// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-agents/drover/internal/persist"
)

// Open continues the session in a store, or begins one in an empty store. The session closes the store.
// Register the reducers as the first thing: they get the log from its beginning.
//
// Transactions that had not ended when the log did, because the program was killed, are rolled back.
func Open(store Store, opts *Options) (*Session, error) {
	s := newSession(opts)
	s.store, s.archive = store, store
	if err := s.beginLog(); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("session: opening %s: %w", s.head.ID, err)
	}
	if err := s.rollBackInterrupted(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Session) beginLog() error {
	head, err := s.store.Head()
	if err != nil {
		return err
	}
	if head.Version > EncodingVersion {
		return fmt.Errorf("%w: it has version %d, this program reads up to %d\n  next: use a newer version of Drover", ErrVersion, head.Version, EncodingVersion)
	}
	if head.Version != 0 {
		if s.opts.ID != "" && s.opts.ID != head.ID {
			return fmt.Errorf("session: the log is of session %q, not %q\n  next: leave Options.ID empty, or open another log", head.ID, s.opts.ID)
		}
		s.head = head
		s.join(s.opts.Parent)
		return nil
	}
	s.head = Head{Version: EncodingVersion, ID: s.opts.ID, Tags: maps.Clone(s.opts.Tags), Created: s.opts.Now()}
	if s.head.ID == "" {
		s.head.ID = s.opts.NewID()
	}
	s.join(s.opts.Parent)
	return s.store.Init(s.head)
}

// load reads what is in the store. If the checkpoint is of no use it reads everything.
func (s *Session) load() error {
	saved, err := readCheckpoint(s.store)
	if err != nil {
		s.opts.Logger.Warn("the checkpoint is of no use; the session is read from its beginning", "session", s.ID(), "error", err)
		saved = nil
	}
	targets, err := s.restoreTargets(saved)
	if err != nil {
		return err
	}
	if saved != nil && len(targets) > 0 && slices.Min(targets) < saved.Pos {
		saved = nil
		if targets, err = s.restoreTargets(nil); err != nil {
			return err
		}
	}
	if saved != nil {
		s.saved, s.base, s.last, s.nextTx, s.checkpointed = saved, saved.Pos, saved.Pos, saved.NextTx, saved.Pos
		s.state.live = saved.live()
	}
	return s.replay(targets)
}

// restoreTargets finds the positions that the log goes back to.
func (s *Session) restoreTargets(saved *checkpoint) ([]int64, error) {
	var after int64
	if saved != nil {
		after = saved.Pos
	}
	var targets []int64
	for record, err := range s.store.Records(after) {
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(record.Data, []byte(KindRestored)) {
			continue
		}
		var w struct {
			Event struct {
				Type    string   `json:"type"`
				Payload Restored `json:"payload"`
			} `json:"event"`
		}
		if json.Unmarshal(record.Data, &w) == nil && w.Event.Type == string(KindRestored) {
			targets = append(targets, w.Event.Payload.To)
		}
	}
	return targets, nil
}

// replay reads the entries above last. It follows what became of each, without any reducer: slices are
// folded when they are asked for.
func (s *Session) replay(targets []int64) error {
	lives := map[int64]persist.Vector[int64]{s.last: s.state.live}
	for record, err := range s.store.Records(s.last) {
		if err != nil {
			return err
		}
		entry, err := decode(record)
		if err != nil {
			return err
		}
		s.log, s.last, s.nextTx = s.log.Append(entry), entry.Pos, max(s.nextTx, entry.Tx)
		switch what := entry.Event.Payload.(type) {
		case Restored:
			s.state.live = lives[what.To]
		case RolledBack:
			s.state.live = s.without(what.Txs)
		case Committed:
		default:
			s.state.live = s.state.live.Append(entry.Pos)
		}
		if slices.Contains(targets, entry.Pos) {
			lives[entry.Pos] = s.state.live
		}
	}
	return nil
}

// without is the live history without some transactions, none of which began before the checkpoint.
func (s *Session) without(txs []int64) persist.Vector[int64] {
	var live persist.Vector[int64]
	for pos := range s.state.live.All() {
		if pos <= s.base || !slices.Contains(txs, s.entryLocked(pos).Tx) {
			live = live.Append(pos)
		}
	}
	return live
}

// rollBackInterrupted ends what a dead program left open.
func (s *Session) rollBackInterrupted() error {
	open := map[int64]string{}
	for _, entry := range s.log.From(0) {
		switch what := entry.Event.Payload.(type) {
		case Committed:
			for _, tx := range what.Txs {
				delete(open, tx)
			}
		case RolledBack:
			for _, tx := range what.Txs {
				delete(open, tx)
			}
		}
		if entry.Tx != 0 {
			open[entry.Tx] = entry.Cause
		}
	}
	s.order.Lock()
	defer s.order.Unlock()
	for _, tx := range slices.Sorted(maps.Keys(open)) {
		undone := &state{live: s.without([]int64{tx})}
		what := RolledBack{Txs: []int64{tx}, Call: open[tx], Reason: "the program ended before the call did"}
		if err := s.turnLocked(what, open[tx], undone); err != nil {
			return err
		}
	}
	return nil
}
