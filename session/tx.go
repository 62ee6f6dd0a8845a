// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/drover-agents/drover/tool"
)

// ErrTxOver: the transaction was rolled back, or has ended already.
var ErrTxOver = errors.New("session: the transaction is over")

// A Tx is a transaction: usually one tool call. What is dispatched in its context belongs to it until
// it ends, and is taken out of the state if it is rolled back, whatever others have dispatched
// meanwhile. Slices of policy Log keep it.
//
// A transaction that is begun in the context of another is part of it: it can be rolled back alone, and
// goes with the other in any case.
type Tx struct {
	s      *Session
	id     int64
	call   string
	parent *Tx

	// The session's order guards these.
	members    []int64 // the transaction and those inside it that were not rolled back
	begin      *state
	beginPos   int64
	wrote      bool
	overlapped bool // somebody else has dispatched since
	stale      bool // begin has something that is gone by now, or lacks something
	ended      bool
	rolledBack bool
}

type txKey struct{}

// Begin begins a transaction of a tool call and returns the context for what belongs to it. Events that
// are dispatched by the handler of that call belong to it in any context, if its id is not empty.
func (s *Session) Begin(ctx context.Context, call string) (context.Context, *Tx) {
	s.order.Lock()
	defer s.order.Unlock()
	snap := s.Snapshot()
	s.nextTx++
	tx := &Tx{s: s, id: s.nextTx, call: call, members: []int64{s.nextTx}, begin: snap.state, beginPos: snap.pos}
	if outer, ok := ctx.Value(txKey{}).(*Tx); ok && outer.s == s && !outer.ended {
		tx.parent = outer
		for t := outer; t != nil; t = t.parent {
			t.members = append(t.members, tx.id)
		}
	}
	s.open[tx.id] = tx
	return context.WithValue(ctx, txKey{}, tx), tx
}

// Commit ends the transaction: what it did stays, or is from now on part of the transaction that it was
// begun in. It fails if the transaction is over.
func (tx *Tx) Commit() error {
	tx.s.order.Lock()
	defer tx.s.order.Unlock()
	if tx.ended {
		return ErrTxOver
	}
	if tx.parent != nil && !tx.parent.ended {
		tx.endLocked()
		return nil
	}
	if tx.wrote {
		if err := tx.s.turnLocked(Committed{Txs: tx.members, Call: tx.call}, tx.call, nil); err != nil {
			return err
		}
	}
	tx.endLocked()
	return nil
}

// Rollback ends the transaction and takes what it did out of the state. It takes constant time if
// nobody else has dispatched since the transaction began; otherwise the slices are folded anew from
// there, without its events. It does nothing if the transaction is over, so that it can be deferred.
func (tx *Tx) Rollback(reason string) error {
	s := tx.s
	s.order.Lock()
	defer s.order.Unlock()
	if tx.ended {
		return nil
	}
	if tx.wrote {
		if err := s.turnLocked(RolledBack{Txs: tx.members, Call: tx.call, Reason: reason}, tx.call, tx.undoneLocked()); err != nil {
			return err
		}
		for _, other := range s.open {
			other.stale = other.stale || other.beginPos > tx.beginPos
		}
	}
	tx.rolledBack = true
	for t := tx.parent; t != nil; t = t.parent {
		t.members = slices.DeleteFunc(t.members, func(id int64) bool { return slices.Contains(tx.members, id) })
	}
	tx.endLocked()
	return nil
}

// endLocked also ends what is still open inside.
func (tx *Tx) endLocked() {
	tx.ended = true
	delete(tx.s.open, tx.id)
	if tx.parent != nil && !tx.parent.ended && !tx.rolledBack {
		return
	}
	for _, inner := range tx.s.open {
		if slices.Contains(tx.members, inner.id) {
			inner.ended, inner.rolledBack = true, tx.rolledBack
			delete(tx.s.open, inner.id)
		}
	}
}

// undoneLocked is the state without what the transaction did.
func (tx *Tx) undoneLocked() *state {
	s := tx.s
	if !tx.overlapped && !tx.stale {
		return tx.begin
	}
	next := &state{}
	if !tx.stale {
		next = &state{cells: slices.Clone(tx.begin.cells), live: tx.begin.live}
	}
	kept := next.live.Len()
	for _, pos := range s.state.live.From(kept) {
		if pos <= tx.beginPos || !slices.Contains(tx.members, s.entryLocked(pos).Tx) {
			next.live = next.live.Append(pos)
		}
	}
	if !tx.stale {
		s.foldOntoLocked(next, kept)
	}
	return next
}

// foldOntoLocked brings the cells of a state, which are of its first entries, up to its last.
func (s *Session) foldOntoLocked(next *state, from int) {
	for _, pos := range next.live.From(from) {
		entry := s.entryLocked(pos)
		v, err := s.valueLocked(entry)
		if err != nil {
			continue
		}
		for _, sl := range s.routesLocked(reflect.TypeOf(v)) {
			if all, ok := next.cell(sl); ok && sl.policy == State {
				all, _ = sl.fold(all, entry, v)
				next.cells = setCell(next.cells, sl, all)
			}
		}
	}
}

// entryLocked is an entry that was appended since the session was opened.
func (s *Session) entryLocked(pos int64) *Entry { return s.log.At(int(pos - s.base - 1)) }

// causeLocked says who dispatches an entry.
func (s *Session) causeLocked(ctx context.Context, entry *Entry) error {
	tx, _ := ctx.Value(txKey{}).(*Tx)
	if tx != nil && tx.s != s {
		tx = nil
	}
	if call, ok := tool.CallFrom(ctx); ok {
		entry.Cause = call.ID
		if tx == nil && call.ID != "" {
			tx = s.txOfLocked(call.ID)
		}
	}
	if tx == nil {
		return nil
	}
	entry.Cause = tx.call
	for tx.ended && !tx.rolledBack && tx.parent != nil {
		tx = tx.parent // which it became part of
	}
	if tx.rolledBack {
		return ErrTxOver
	}
	if !tx.ended {
		entry.Tx = tx.id
		for t := tx; t != nil; t = t.parent {
			t.wrote = true
		}
	}
	return nil
}

func (s *Session) txOfLocked(call string) *Tx {
	for _, tx := range s.open {
		if tx.call == call {
			return tx
		}
	}
	return nil
}

// noteOverlapLocked remembers which open transactions are no longer alone.
func (s *Session) noteOverlapLocked(entry *Entry) {
	for _, tx := range s.open {
		if !tx.overlapped && !slices.Contains(tx.members, entry.Tx) {
			tx.overlapped = true
		}
	}
}
