// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/session"
)

// A world is a session beside its model, and what the test holds of both.
type world struct {
	model
	s     *session.Session
	disk  *disk // nil in memory
	begun int
	txs   []*modelTx
	snaps []*session.Snapshot
}

type modelTx struct {
	tx     *session.Tx
	ctx    context.Context
	id     int
	parent *modelTx
	wrote  bool
	over   bool
	gone   bool // rolled back
}

// heir is the transaction that this one has become part of.
func (tx *modelTx) heir() *modelTx {
	for tx != nil && tx.over && !tx.gone && tx.parent != nil {
		tx = tx.parent
	}
	return tx
}

// group is the transaction and those inside it, but for what was rolled back in between.
func (w *world) group(of *modelTx) []*modelTx {
	var members []*modelTx
	for _, tx := range w.txs {
		up := tx
		for up != nil && up != of && !up.gone {
			up = up.parent
		}
		if up == of {
			members = append(members, tx)
		}
	}
	return members
}

func idsOf(txs []*modelTx) (ids []int) {
	for _, tx := range txs {
		ids = append(ids, tx.id)
	}
	return ids
}

func (w *world) end(tx *modelTx, gone bool) {
	for _, inner := range w.group(tx) {
		if !inner.over || inner == tx {
			inner.over, inner.gone = true, gone
		}
	}
}

func (w *world) record(tx int, value any) { w.facts = append(w.facts, fact{value, tx}) }

// someTx draws a transaction, or nil.
func (w *world) someTx(t *rapid.T) *modelTx {
	i := rapid.IntRange(-1, len(w.txs)-1).Draw(t, "tx")
	if i < 0 {
		return nil
	}
	return w.txs[i]
}

func (tx *modelTx) context() context.Context {
	if tx == nil {
		return context.Background()
	}
	return tx.ctx
}

// do runs something that appends, in the context of a transaction, and records what is to come of it.
func (w *world) do(t *rapid.T, run func(context.Context) error, facts ...any) {
	by := w.someTx(t)
	err := run(by.context())
	tx := by.heir()
	switch {
	case tx != nil && tx.gone:
		wantError(t, err, session.ErrTxOver)
		return
	case w.isFull():
		wantError(t, err, errFull)
		return
	}
	wantError(t, err, nil)
	id := 0
	if tx != nil && !tx.over {
		for id = tx.id; tx != nil; tx = tx.parent {
			tx.wrote = true
		}
	}
	for _, f := range facts {
		w.record(id, f)
		id = 0 // reports of failures belong to no transaction
	}
}

func (w *world) isFull() bool { return w.disk != nil && w.disk.full }

func wantError(t *rapid.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (want == nil && got != nil) {
		t.Fatalf("got error %v, want %v", got, want)
	}
}

func (w *world) dispatch(t *rapid.T, v any) {
	facts := []any{v}
	if v == any(added{13}) {
		facts = append(facts, failed{})
	}
	w.do(t, func(ctx context.Context) error { _, err := w.s.Dispatch(ctx, v); return err }, facts...)
}

func (w *world) begin(t *rapid.T) {
	outer := w.someTx(t)
	w.begun++
	tx := &modelTx{id: w.begun, parent: outer.heir()}
	if tx.parent != nil && tx.parent.over {
		tx.over, tx.gone, tx.parent = tx.parent.gone, tx.parent.gone, nil
	}
	tx.ctx, tx.tx = w.s.Begin(outer.context(), fmt.Sprintf("toolu_%d", tx.id))
	w.txs = append(w.txs, tx)
}

func (w *world) commit(t *rapid.T) {
	tx := w.someTx(t)
	if tx == nil {
		return
	}
	err := tx.tx.Commit()
	switch outermost := tx.parent.heir() == nil; {
	case tx.over:
		wantError(t, err, session.ErrTxOver)
	case !outermost:
		wantError(t, err, nil)
		tx.over = true
	case tx.wrote && w.isFull():
		wantError(t, err, errFull)
	default:
		wantError(t, err, nil)
		if tx.wrote {
			w.record(0, committed(idsOf(w.group(tx))))
		}
		w.end(tx, false)
	}
}

func (w *world) rollback(t *rapid.T) {
	tx := w.someTx(t)
	if tx == nil {
		return
	}
	err := tx.tx.Rollback("because")
	switch {
	case tx.over:
		wantError(t, err, nil)
	case tx.wrote && w.isFull():
		wantError(t, err, errFull)
	default:
		wantError(t, err, nil)
		if tx.wrote {
			w.record(0, rolledBack(idsOf(w.group(tx))))
		}
		w.end(tx, true)
	}
}

func (w *world) restore(t *rapid.T) {
	if len(w.snaps) == 0 {
		return
	}
	snap := rapid.SampledFrom(w.snaps).Draw(t, "snapshot")
	err := w.s.Restore(context.Background(), snap)
	if w.isFull() {
		wantError(t, err, errFull)
		return
	}
	wantError(t, err, nil)
	w.record(0, restored(snap.Pos()))
}

// reopen ends the program, well or badly, and starts it again.
func (w *world) reopen(t *rapid.T) {
	if w.disk == nil {
		return
	}
	w.disk.full, w.disk.forget = false, rapid.Bool().Draw(t, "forgetful")
	if rapid.Bool().Draw(t, "close") {
		wantError(t, w.s.Close(), nil)
	}
	for _, id := range w.interrupted() {
		w.record(0, rolledBack{id})
	}
	w.txs, w.snaps = nil, nil
	w.open(t)
}

// interrupted are the transactions that have written and have no end.
func (w *world) interrupted() []int {
	var open []int
	for _, f := range w.facts {
		var ended []int
		switch v := f.value.(type) {
		case committed:
			ended = v
		case rolledBack:
			ended = v
		}
		open = slices.DeleteFunc(open, func(id int) bool { return slices.Contains(ended, id) })
		if f.tx != 0 && !slices.Contains(open, f.tx) {
			open = append(open, f.tx)
		}
	}
	slices.Sort(open)
	return open
}

func (w *world) open(t *rapid.T) {
	s, err := session.Open(w.disk, nil)
	wantError(t, err, nil)
	w.s = s
	w.define(s)
}

func (w *world) clone(t *rapid.T) *world {
	c, err := w.s.Clone(nil)
	wantError(t, err, nil)
	other := &world{model: w.model, s: c, begun: w.begun}
	other.facts = slices.Clone(w.facts)
	return other
}

// check compares some slices, so that others stay unasked for a while.
func (w *world) check(t *rapid.T, which uint) {
	t.Helper()
	if got := w.s.Last(); got != int64(len(w.facts)) {
		t.Fatalf("the log ends at %d, want %d: %+v", got, len(w.facts), w.facts)
	}
	want := w.values()
	compare(t, which, 0, w.s, want.Added)
	compare(t, which, 1, w.s, want.Noted)
	compare(t, which, 2, w.s, want.Items)
	compare(t, which, 3, w.s, want.Total)
	compare(t, which, 4, w.s, want.Picky)
	compare(t, which, 5, w.s, want.Seen)
	compare(t, which, 6, w.s, want.Late)
	compare(t, which, 7, w.s, want.Lived)
}

func compare[S any](t *rapid.T, which uint, bit int, s *session.Session, want []S) {
	t.Helper()
	if which>>bit&1 == 0 {
		return
	}
	view := session.Query[S](s)
	if view.Err() != nil {
		t.Fatal(view.Err())
	}
	if diff := cmp.Diff(want, slices.Collect(view.All()), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%T: - want, + got\n%s", want, diff)
	}
}
