// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/drover-agents/drover/session"
)

func TestTx_ConcurrentTransactionsLeaveCommittedEvents(t *testing.T) {
	const calls, rounds = 8, 60
	s := session.New(nil)
	session.Reduce(s, func(n total, e added) total { return n + total(e.N) })
	session.Define(s, session.SliceOptions[seen]{Policy: session.Log})
	session.Reduce(s, func(n seen, e added) seen { return n + seen(e.N) })
	var wg sync.WaitGroup
	for c := range calls {
		wg.Go(func() {
			for r := range rounds {
				in, tx := s.Begin(t.Context(), fmt.Sprintf("toolu_%d_%d", c, r))
				dispatch(t, in, s, added{1}, added{1})
				end := tx.Commit
				if (c+r)%2 == 0 {
					end = func() error { return tx.Rollback("every other one") }
				}
				if err := end(); err != nil {
					t.Errorf("call %d, round %d: %v", c, r, err)
				}
			}
		})
	}
	wg.Wait()
	state, _ := session.Query[total](s).Latest()
	log, _ := session.Query[seen](s).Latest()
	if state != calls*rounds || log != 2*calls*rounds {
		t.Errorf("state has %d, the log %d; want %d and %d", state, log, calls*rounds, 2*calls*rounds)
	}
	if got := session.Query[added](s).Len(); got != calls*rounds {
		t.Errorf("folded again there are %d events, want %d", got, calls*rounds)
	}
}

func TestClone_ClonesAreIndependentUnderConcurrency(t *testing.T) {
	s := session.New(nil)
	session.Define(s, session.SliceOptions[item]{Key: func(e item) any { return e.ID }})
	session.Upsert(s, func(e item) item { return e })
	for i := range 40 {
		dispatch(t, t.Context(), s, added{i}, item{ID: i % 7})
	}
	snap := s.Snapshot()
	all := []*session.Session{s}
	for range 3 {
		c, err := s.Clone(nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() {
			for n := range 200 {
				dispatch(t, t.Context(), one, added{i}, item{ID: n % 7, Owner: i})
				session.Append(one, func(e remark) string { return e.Text })
			}
		})
	}
	wg.Wait()
	for i, one := range all {
		tail := slices.Collect(session.Query[added](one).All())[40:]
		if len(tail) != 200 || slices.ContainsFunc(tail, func(e added) bool { return e.N != i }) {
			t.Errorf("session %d has %d values of its own, or those of another: %v", i, len(tail), tail)
		}
		for e := range session.Query[item](one).Where(func(e item) bool { return e.Owner != i }) {
			t.Errorf("session %d has the item %+v of another", i, e)
		}
	}
	if err := s.Restore(t.Context(), snap); err != nil || session.Query[added](s).Len() != 40 {
		t.Errorf("restored there are %d values and %v, want 40", session.Query[added](s).Len(), err)
	}
}

func TestReducer_RegisteredDuringDispatchMissesNoEvent(t *testing.T) {
	s := session.New(nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				dispatch(t, t.Context(), s, added{1})
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			session.Define(s, session.SliceOptions[item]{Key: func(e item) any { return e.ID }})
			session.Upsert(s, func(e added) item { return item{ID: e.N} })
			_, _ = session.Query[item](s).Latest()
			_ = s.Snapshot()
		}
		session.Reduce(s, func(n total, e added) total { return n + total(e.N) })
	})
	wg.Wait()
	if got, _ := session.Query[total](s).Latest(); got != 800 {
		t.Errorf("%d of 800 are left", got)
	}
}

// Reducers see events in the order of the log, from any number of dispatching goroutines.
func TestReducer_SeesEventsInLogOrder(t *testing.T) {
	s := session.New(nil)
	session.Append(s, func(e added) int { return e.N })
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for r := range 200 {
				dispatch(t, t.Context(), s, added{c*1000 + r})
			}
		})
	}
	wg.Wait()
	var log []int
	for e := range s.Events() {
		log = append(log, e.Payload.(session.Value).Get().(added).N)
	}
	if state := slices.Collect(session.Query[int](s).All()); len(state) != 8*200 || !slices.Equal(state, log) {
		t.Errorf("%d events were reduced in another order than that of the %d in the log", len(state), len(log))
	}
}
