// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/drover-agents/drover/tool"
)

// ErrTxOver means that the transaction was rolled back, or has ended already.
var ErrTxOver = errors.New("session: the transaction is over")

// A Tx is a transaction: usually one tool call. Events that are dispatched in its context belong to it until it
// ends. A rollback takes them out of the state, and leaves those of others. Slices of policy Log keep them.
//
// A transaction that is begun in the context of another is part of it: it can be rolled back alone, and is rolled
// back with the other.
type Tx struct {
	s      *Session
	id     int64
	call   string
	parent *Tx

	// The session's order guards these.
	members    []int64 // the transaction and those inside it that were not rolled back, ascending
	begin      *state
	beginPos   int64
	wrote      bool
	overlapped bool // another has dispatched since
	stale      bool // begin has something that is gone by now, or lacks something
	ended      bool
	rolledBack bool
	abandoned  string // why it is to be rolled back as soon as the store allows
}

type txKey struct{}

// Begin begins a transaction of a tool call and returns the context for what belongs to it. Events that
// are dispatched by the handler of that call belong to it in any context, if its id is not empty. In the
// context of a transaction that was rolled back it is over from the beginning.
func (s *Session) Begin(ctx context.Context, call string) (context.Context, *Tx) {
	s.order.Lock()
	defer s.order.Unlock()
	snap := s.Snapshot()
	s.nextTx++
	tx := &Tx{s: s, id: s.nextTx, call: call, members: []int64{s.nextTx}, begin: snap.state, beginPos: snap.pos}
	outer := s.txIn(ctx).current()
	switch {
	case outer == nil:
		s.open[tx.id] = tx
	case outer.ended:
		tx.ended, tx.rolledBack = outer.rolledBack, outer.rolledBack
		if !tx.ended {
			s.open[tx.id] = tx
		}
	default:
		s.open[tx.id], tx.parent = tx, outer
		for t := outer; t != nil; t = t.parent {
			t.members = append(t.members, tx.id)
		}
	}
	return context.WithValue(ctx, txKey{}, tx), tx
}

func (s *Session) txIn(ctx context.Context) *Tx {
	if tx, ok := ctx.Value(txKey{}).(*Tx); ok && tx.s == s {
		return tx
	}
	return nil
}

// current is the transaction that this one has become part of, as long as that is open. order is held.
func (tx *Tx) current() *Tx {
	for tx != nil && tx.ended && !tx.rolledBack && tx.parent != nil {
		tx = tx.parent
	}
	return tx
}

// Commit ends the transaction: what it did stays, or is from now on part of the transaction that it was
// begun in. It fails if the transaction is over. The outermost one also ends what is still open inside.
func (tx *Tx) Commit() error {
	tx.s.order.Lock()
	defer tx.s.order.Unlock()
	if tx.ended {
		return ErrTxOver
	}
	if tx.parent.current() != nil {
		tx.endLocked()
		return nil
	}
	if err := tx.s.retryLocked(); err != nil {
		return err // what was abandoned inside must not be committed with it
	}
	if tx.wrote {
		if err := tx.s.turnLocked(Committed{Txs: tx.members, Call: tx.call}, tx.call, nil); err != nil {
			return err
		}
	}
	tx.endAllLocked()
	return nil
}

// Rollback ends the transaction, and what is still open inside it, and takes what it did out of the state. It takes
// constant time if no other caller has dispatched since the transaction began; otherwise the session folds the slices
// again from there, without its events. It does nothing if the transaction is over, so that it can be deferred.
func (tx *Tx) Rollback(reason string) error {
	tx.s.order.Lock()
	defer tx.s.order.Unlock()
	return tx.rollbackLocked(reason)
}

// abandon is a rollback for a caller that does not retry. If the store refuses the rollback, the transaction
// accepts no more events, and the next dispatch tries again.
func (tx *Tx) abandon(reason string) error {
	tx.s.order.Lock()
	defer tx.s.order.Unlock()
	err := tx.rollbackLocked(reason)
	if err != nil && tx.abandoned == "" {
		tx.abandoned = cmp.Or(reason, "it was abandoned")
		tx.s.abandoned = append(tx.s.abandoned, tx)
	}
	return err
}

// retryLocked rolls back the abandoned transactions. If one fails, it is retried the next time, and the error is returned.
func (s *Session) retryLocked() (err error) {
	s.abandoned = slices.DeleteFunc(s.abandoned, func(tx *Tx) bool {
		fault := tx.rollbackLocked(tx.abandoned)
		err = cmp.Or(err, fault)
		return fault == nil
	})
	return err
}

func (tx *Tx) rollbackLocked(reason string) error {
	s := tx.s
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
		// A new list: the old one is in the log.
		t.members = slices.DeleteFunc(slices.Clone(t.members), func(id int64) bool { return has(tx.members, id) })
	}
	tx.endAllLocked()
	return nil
}

// has looks for a transaction in an ascending list, which is long if a call has made thousands of others.
func has(ids []int64, id int64) bool {
	_, found := slices.BinarySearch(ids, id)
	return found
}

func (tx *Tx) endLocked() {
	tx.ended = true
	delete(tx.s.open, tx.id)
}

// endAllLocked also ends what is still open inside, in the same way.
func (tx *Tx) endAllLocked() {
	tx.endLocked()
	for _, inner := range tx.s.open {
		if has(tx.members, inner.id) {
			inner.rolledBack = tx.rolledBack
			inner.endLocked()
		}
	}
}

func (tx *Tx) undoneLocked() *state {
	if !tx.overlapped && !tx.stale {
		return tx.begin
	}
	next := &state{live: tx.s.withoutLocked(tx.s.state.live, tx.members, tx.beginPos)}
	if !tx.stale { // then the state begins with what it was, and only the rest is new
		next.cells = slices.Clone(tx.begin.cells)
		tx.s.foldOntoLocked(next, tx.begin.live.Len())
	}
	return next
}

// foldOntoLocked brings the cells of a state, which are of its first entries, up to its last.
func (s *Session) foldOntoLocked(next *state, from int) {
	for _, pos := range next.live.From(from) {
		entry := s.entryLocked(pos)
		r, err := s.routeLocked(s.typeLocked(entry))
		if err == nil {
			entry, err = resolve(entry, s.types)
		}
		if err != nil {
			continue // it was reported when it was dispatched
		}
		for i := range r.steps {
			st := &r.steps[i]
			if all, ok := next.cell(st.slice); ok && st.slice.policy == State {
				all, _ = st.fold(all, entry, valueOf(entry.Event.Payload), nil)
				next.cells = setCell(next.cells, st.slice, all)
			}
		}
	}
}

func (s *Session) causeLocked(ctx context.Context, entry *Entry) error {
	entry.Cause = callOf(ctx)
	tx := s.txIn(ctx)
	if tx == nil && len(s.open) > 0 && entry.Cause != "" {
		tx = s.txOfLocked(entry.Cause)
	}
	if tx == nil {
		return nil
	}
	entry.Cause = cmp.Or(tx.call, entry.Cause)
	switch tx = tx.current(); {
	case tx.rolledBack || tx.abandoned != "":
		return ErrTxOver
	case !tx.ended:
		entry.Tx = tx.id
	}
	return nil
}

func callOf(ctx context.Context) string {
	call, _ := tool.CallFrom(ctx)
	return string(call.ID)
}

// txOfLocked is the innermost open transaction of a call, or nil.
func (s *Session) txOfLocked(call string) *Tx {
	var found *Tx
	for _, tx := range s.open {
		if tx.call == call && (found == nil || tx.id > found.id) {
			found = tx
		}
	}
	return found
}

// noteLocked remembers which open transactions have written, and which are no longer alone.
func (s *Session) noteLocked(entry *Entry) {
	for _, tx := range s.open {
		if has(tx.members, entry.Tx) {
			tx.wrote = true
		} else {
			tx.overlapped = true
		}
	}
}
