// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// txScript runs a program of words: "begin a", "begin b in a", "a writes x", "commit a", "rollback a",
// "snap s", "restore s", "x" for a plain dispatch. It returns the notes that are left.
func txScript(t *testing.T, s *session.Session, program string) []string {
	t.Helper()
	ctxs, txs := map[string]context.Context{"": t.Context()}, map[string]*session.Tx{}
	snaps := map[string]*session.Snapshot{}
	for line := range strings.SplitSeq(program, ";") {
		var err error
		switch w := strings.Fields(line); {
		case w[0] == "begin":
			outer := ""
			if len(w) == 4 {
				outer = w[3]
			}
			ctxs[w[1]], txs[w[1]] = s.Begin(ctxs[outer], "toolu_"+w[1])
		case w[0] == "commit":
			err = txs[w[1]].Commit()
		case w[0] == "rollback":
			err = txs[w[1]].Rollback("")
		case w[0] == "snap":
			snaps[w[1]] = s.Snapshot()
		case w[0] == "restore":
			err = s.Restore(t.Context(), snaps[w[1]])
		case len(w) == 3:
			_, err = s.Dispatch(ctxs[w[0]], remark{w[2]})
		default:
			_, err = s.Dispatch(t.Context(), remark{w[0]})
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return texts(s)
}

func texts(s *session.Session) (all []string) {
	for n := range session.Query[remark](s).All() {
		all = append(all, n.Text)
	}
	return all
}

func TestTx_NestsAndOverlapsInEveryOrder(t *testing.T) {
	for _, c := range []struct{ name, program, want string }{
		{"inner commits, outer rolls back", "x; begin a; begin b in a; b writes 1; commit b; a writes 2; rollback a; y", "x y"},
		{"inner rolls back, outer commits", "begin a; a writes 1; begin b in a; b writes 2; rollback b; a writes 3; commit a", "1 3"},
		{"outer commits before inner", "begin a; begin b in a; b writes 1; commit a; b writes 2", "1 2"},
		{"outer rolls back before inner", "begin a; begin b in a; b writes 1; rollback a; x", "x"},
		{"two levels, the middle commits first", "begin a; begin b in a; begin c in b; c writes 1; commit b; commit c; rollback a", ""},
		{"begun in one that has become part of another", "begin a; begin b in a; commit b; begin c in b; c writes 1; commit c; rollback a", ""},
		{"siblings overlap, the older goes", "begin a; a writes 1; begin b; b writes 2; rollback a; b writes 3; commit b", "2 3"},
		{"siblings overlap, the younger goes", "begin a; a writes 1; begin b; b writes 2; a writes 3; rollback b; commit a", "1 3"},
		{"both go, the older first", "x; begin a; a writes 1; begin b; b writes 2; rollback a; rollback b", "x"},
		{"both go, the younger first", "x; begin a; a writes 1; begin b; b writes 2; rollback b; rollback a", "x"},
		{"what others did stays", "begin a; a writes 1; x; a writes 2; y; rollback a", "x y"},
		{"nothing was written", "x; begin a; y; rollback a", "x y"},
		{"restored to before it began", "snap s; x; begin a; a writes 1; restore s; a writes 2; rollback a", ""},
		{"restored forward while it is open", "x; snap s; begin a; a writes 1; snap t; restore s; restore t; rollback a", "x"},
		{"restored after an inner one was rolled back", "begin a; begin b in a; b writes 1; snap s; rollback b; restore s; a writes 2; rollback a", "1"},
		{"late words of one that has ended", "begin a; a writes 1; commit a; a writes 2; begin b; rollback b", "1 2"},
		{"late words of an inner one go with the outer", "begin a; begin b in a; commit b; b writes 1; rollback a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := strings.Fields(c.want)
			store := newDisk()
			s, err := session.Open(store, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := txScript(t, s, c.program); !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
				t.Errorf("left are %q, want %q", got, want)
			}
			again, err := session.Open(store, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := texts(again); !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
				t.Errorf("opened again left are %q, want %q", got, want)
			}
		})
	}
}

func TestOpen_RollsBackTransactionsOfADeadProgram(t *testing.T) {
	for _, c := range []struct{ name, program, want string }{
		{"one call", "x; begin a; a writes 1; y", "x y"},
		{"an inner one that had committed", "begin a; begin b in a; b writes 1; commit b; x", "x"},
		{"two levels, of which the inner ones had committed", "begin a; begin b in a; begin c in b; c writes 1; commit b; commit c; x", "x"},
		{"one of two", "begin a; begin b; a writes 1; b writes 2; commit b", "2"},
		{"an inner one that was rolled back", "begin a; begin b in a; b writes 1; rollback b; x; a writes 2", "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newDisk()
			s, err := session.Open(store, nil)
			if err != nil {
				t.Fatal(err)
			}
			txScript(t, s, c.program)
			again, err := session.Open(store, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := texts(again), strings.Fields(c.want); !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
				t.Errorf("left are %q, want %q", got, want)
			}
			last := again.Last()
			third, err := session.Open(store, nil)
			if err != nil {
				t.Fatal(err)
			}
			if third.Last() != last {
				t.Errorf("it was rolled back twice: the log ends at %d, then at %d", last, third.Last())
			}
		})
	}
}

func TestTx_IsOverAfterARollback(t *testing.T) {
	s := session.New(nil)
	in, tx := s.Begin(t.Context(), "toolu_1")
	if err := tx.Rollback(""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dispatch(in, remark{"1"}); !errors.Is(err, session.ErrTxOver) {
		t.Errorf("dispatching in it: %v, want ErrTxOver", err)
	}
	inner, innerTx := s.Begin(in, "toolu_2")
	if _, err := s.Dispatch(inner, remark{"2"}); !errors.Is(err, session.ErrTxOver) {
		t.Errorf("dispatching inside it: %v, want ErrTxOver", err)
	}
	if err := innerTx.Commit(); !errors.Is(err, session.ErrTxOver) {
		t.Errorf("committing inside it: %v, want ErrTxOver", err)
	}
	if err := tx.Commit(); !errors.Is(err, session.ErrTxOver) {
		t.Errorf("committing it: %v, want ErrTxOver", err)
	}
	if s.Last() != 0 {
		t.Errorf("%d entries were appended", s.Last())
	}
}

func TestDispatch_EntryHasTheCallThatCausedIt(t *testing.T) {
	s := session.New(nil)
	dispatch(t, t.Context(), s, remark{"no call"})
	in, outer := s.Begin(t.Context(), "toolu_tx")
	_, inner := s.Begin(in, "toolu_tx") // of the same call: the innermost gets what the handler dispatches
	tools := tool.MustRegistry(nil, tool.Must("note", "Notes it.", func(ctx context.Context, n remark) (remark, error) {
		_, err := s.Dispatch(ctx, n)
		return n, err
	}))
	for _, id := range []string{"toolu_free", "toolu_tx"} {
		r := tools.Execute(t.Context(), tool.Call{ID: event.CallID(id), Name: "note", Input: []byte(`{"Text":"` + id + `"}`)})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if got, want := causes(s), []string{"", "toolu_free", "toolu_tx"}; !slices.Equal(got, want) {
		t.Errorf("causes are %q, want %q", got, want)
	}
	if err := errors.Join(inner.Rollback(""), outer.Commit()); err != nil {
		t.Fatal(err)
	}
	if got, want := texts(s), []string{"no call", "toolu_free"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q: a handler's events belong to the transaction of its call", got, want)
	}
}

func causes(s *session.Session) (all []string) {
	for _, entry := range entries(s) {
		all = append(all, entry.Cause)
	}
	return all
}

// entries are those that are in the log now.
func entries(s *session.Session) (all []session.Entry) {
	if s.Last() == 0 {
		return nil
	}
	for entry, err := range s.After(context.Background(), 0) {
		if err != nil {
			panic(err)
		}
		if all = append(all, entry); entry.Pos == s.Last() {
			return all
		}
	}
	return all
}

// A rollback costs what was dispatched since its transaction began, not what is in the log: nothing is
// folded if no other caller dispatched, and otherwise only the events of others.
func TestTx_RollbackFoldsOnlyEventsOfOthers(t *testing.T) {
	for _, c := range []struct {
		name           string
		others, folded int
	}{{"no others", 0, 0}, {"three others", 3, 3}} {
		t.Run(c.name, func(t *testing.T) {
			s, calls := session.New(nil), 0
			session.Reduce(s, func(n total, e added) total { calls++; return n + total(e.N) })
			for range 1000 {
				dispatch(t, t.Context(), s, added{1})
			}
			in, tx := s.Begin(t.Context(), "toolu_1")
			dispatch(t, in, s, added{100}, added{100})
			for range c.others {
				dispatch(t, t.Context(), s, added{1})
			}
			before := calls
			if err := tx.Rollback("failed"); err != nil {
				t.Fatal(err)
			}
			if got, _ := session.Query[total](s).Latest(); got != total(1000+c.others) {
				t.Errorf("the total is %d, want %d", got, 1000+c.others)
			}
			if got := calls - before; got != c.folded {
				t.Errorf("the rollback folded %d events, want %d", got, c.folded)
			}
		})
	}
}

// Nor does going back to a snapshot fold anything.
func TestRestore_FoldsNothing(t *testing.T) {
	s, calls := session.New(nil), 0
	session.Reduce(s, func(n total, e added) total { calls++; return n + total(e.N) })
	dispatch(t, t.Context(), s, added{1}, added{1})
	snap := s.Snapshot()
	dispatch(t, t.Context(), s, added{1}, added{1})
	if err := s.Restore(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
	if got, _ := session.Query[total](s).Latest(); got != 2 || calls != 4 {
		t.Errorf("the total is %d after %d calls of the reducer, want 2 after 4", got, calls)
	}
}
