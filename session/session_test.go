// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
)

type analysed struct {
	Path   string
	Issues int
}

type analysis struct {
	Files  []string
	Issues int
}

func reduceAnalysis(state analysis, e analysed) analysis {
	return analysis{append(slices.Clip(state.Files), e.Path), state.Issues + e.Issues}
}

//nolint:revive // t comes first in helpers of tests
func dispatch(t testing.TB, ctx context.Context, s *session.Session, values ...any) {
	t.Helper()
	for _, v := range values {
		if _, err := s.Dispatch(ctx, v); err != nil {
			t.Fatalf("dispatching %#v: %v", v, err)
		}
	}
}

func TestReduce_ComputesStateFromTheLog(t *testing.T) {
	s := session.New(nil)
	session.Reduce(s, reduceAnalysis)
	dispatch(t, t.Context(), s, analysed{"a.go", 2}, &analysed{"b.go", 1})
	got, _ := session.Query[analysis](s).Latest()
	if want := (analysis{[]string{"a.go", "b.go"}, 3}); !cmp.Equal(got, want) {
		t.Errorf("state is %+v, want %+v", got, want)
	}
	all := slices.Collect(session.Query[analysed](s).All())
	if want := []analysed{{"a.go", 2}, {"b.go", 1}}; !cmp.Equal(all, want) {
		t.Errorf("the events are %v, want %v", all, want)
	}
}

func TestTx_RollbackLeavesOtherCallsIntact(t *testing.T) {
	s := session.New(nil)
	session.Reduce(s, reduceAnalysis)
	dispatch(t, t.Context(), s, analysed{"before.go", 1})
	inA, a := s.Begin(t.Context(), "toolu_a")
	inB, b := s.Begin(t.Context(), "toolu_b")
	dispatch(t, inA, s, analysed{"a.go", 10})
	dispatch(t, inB, s, analysed{"b.go", 100})
	dispatch(t, inA, s, analysed{"a2.go", 1000})
	if err := a.Rollback("it failed"); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	got, _ := session.Query[analysis](s).Latest()
	if want := (analysis{[]string{"before.go", "b.go"}, 101}); !cmp.Equal(got, want) {
		t.Errorf("state is %+v, want %+v", got, want)
	}
}

func TestDispatch_ConcurrentUpdatesAreNotLost(t *testing.T) {
	s := session.New(nil)
	session.Reduce(s, func(n int, e analysed) int { return n + e.Issues })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				dispatch(t, t.Context(), s, analysed{Issues: 1})
			}
		})
	}
	wg.Wait()
	if got, _ := session.Query[int](s).Latest(); got != 40_000 {
		t.Errorf("%d increments are left of 40000", got)
	}
}
