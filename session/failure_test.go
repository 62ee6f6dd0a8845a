// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

type typedNil struct{}

func (e *typedNil) Error() string { return "never " + string(make([]byte, *(*int)(nil))) }

func TestReducer_FailureLeavesOtherReducersAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		reduce func(session.View[string], added) (session.Change[string], error)
		text   string
		panics bool
	}{
		{"an error", func(session.View[string], added) (session.Change[string], error) {
			return session.Add("x"), errors.New("no")
		}, "no", false},
		{"a panic", func(session.View[string], added) (session.Change[string], error) { panic("oh") }, "panic: oh", true},
		{"a panic with nil", func(session.View[string], added) (session.Change[string], error) { panic(nil) }, "panic: panic called with nil argument", true},
		{"a panic with an error", func(session.View[string], added) (session.Change[string], error) { panic(errFull) }, "panic: the disk is full", true},
		{"an error that is a nil pointer", func(session.View[string], added) (session.Change[string], error) {
			return session.Keep[string](), (*typedNil)(nil)
		}, "<nil>", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := session.New(nil)
			session.Append(s, func(e added) int { return e.N })
			session.Fold(s, c.reduce)
			session.Append(s, func(e added) string { return "well" })
			session.Append(s, func(e added) float64 { return float64(e.N) })
			dispatch(t, t.Context(), s, added{1})
			if n := session.Query[int](s).Len() + session.Query[float64](s).Len(); n != 2 {
				t.Errorf("%d of the 2 other slices have seen the event", n)
			}
			if got := slices.Collect(session.Query[string](s).All()); !cmp.Equal(got, []string{"well"}) {
				t.Errorf("the slice is %q, want what its other reducer made", got)
			}
			report, _ := session.Query[session.ReducerFailed](s).Latest()
			report.Error = report.Error[:min(len(c.text), len(report.Error))]
			want := session.ReducerFailed{Pos: 1, Event: report.Event, Slice: "go:string", Error: c.text, Panic: c.panics}
			if diff := cmp.Diff(want, report); diff != "" || s.Last() != 2 {
				t.Errorf("the report in a log of %d entries, want 2: - want, + got\n%s", s.Last(), diff)
			}
		})
	}
}

func TestReducerFailed_FailureInItsReducerIsNotReported(t *testing.T) {
	s := session.New(nil)
	session.Reduce(s, func(n int, _ session.ReducerFailed) int { panic("again") })
	session.Reduce(s, func(n int, _ added) int { panic("once") })
	dispatch(t, t.Context(), s, added{1})
	if s.Last() != 2 {
		t.Errorf("the log has %d entries, want the event and one report", s.Last())
	}
}

func TestReducer_ThatCallsGoexitLosesNothing(t *testing.T) {
	store := newDisk()
	s, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	leave := true
	session.Fold(s, func(session.View[string], added) (session.Change[string], error) {
		if leave {
			runtime.Goexit() // as a failing test does it
		}
		return session.Add("seen"), nil
	})
	session.Append(s, func(e added) int { return e.N })
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = s.Dispatch(context.Background(), added{1}) })
	wg.Wait()
	leave = false
	dispatch(t, t.Context(), s, added{2})
	if got, want := slices.Collect(session.Query[int](s).All()), []int{1, 2}; !slices.Equal(got, want) {
		t.Errorf("the other slice is %v, want %v", got, want)
	}
	if got := session.Query[string](s).Len(); got != 2 || store.Last() != 2 || s.Last() != 2 {
		t.Errorf("%d values, %d records, %d entries; want 2 of each", got, store.Last(), s.Last())
	}
}

func TestDispatch_InvalidValueChangesNothing(t *testing.T) {
	var nothing *added
	type hidden struct{ Do func() }
	for _, c := range []struct {
		name string
		v    any
	}{
		{"nil", nil},
		{"a nil pointer", nothing},
		{"an event without a payload", event.Event{}},
		{"an entry", session.Entry{Event: event.New(event.Text{})}},
		{"a payload without a kind", event.Extension{}},
		{"no JSON form", hidden{}},
		{"the session's own word", session.Restored{To: 0}},
		{"the session's own word, raw", event.Extension{Kind: session.RolledBack{}.EventKind(), Data: []byte(`{"txs":[1]}`)}},
		{"the session's own word, seeded", &session.Seeded{Slice: "go:int"}},
		{"a kind of the common events", usurper{}},
		{"a kind that differs", moody{"bad"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := session.Open(newDisk(), nil)
			if err != nil {
				t.Fatal(err)
			}
			dispatch(t, t.Context(), s, added{1})
			if pos, err := s.Dispatch(t.Context(), c.v); err == nil {
				t.Errorf("it was dispatched as entry %d", pos)
			}
			dispatch(t, t.Context(), s, added{2})
			if got := session.Query[added](s).Len(); got != 2 || s.Last() != 2 {
				t.Errorf("%d values in %d entries, want 2 and 2", got, s.Last())
			}
		})
	}
}

type usurper struct{}

func (usurper) EventKind() event.Kind { return event.KindText }

type moody struct{ Mood event.Kind }

func (m moody) EventKind() event.Kind { return "mood:" + m.Mood }

func TestReducer_ThatCallsItsSessionFails(t *testing.T) {
	for name, call := range map[string]func(s *session.Session) error{
		"Dispatch": func(s *session.Session) error { _, err := s.Dispatch(context.Background(), added{2}); return err },
		"Query":    func(s *session.Session) error { return session.Query[bool](s).Err() },
		"Begin":    func(s *session.Session) error { s.Begin(context.Background(), "call"); return nil },
		"Reset":    func(s *session.Session) error { return s.Reset(context.Background()) },
		"Clone":    func(s *session.Session) error { _, err := s.Clone(nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s := session.New(nil)
			var inner error
			session.Reduce(s, func(n int, e added) int {
				inner = call(s)
				return n + e.N
			})
			session.Append(s, func(e added) string { return "well" })
			dispatch(t, t.Context(), s, added{1}) // returns
			report, _ := session.Query[session.ReducerFailed](s).Latest()
			if report.Pos != 1 || report.Slice != "go:int" || !strings.Contains(report.Error, session.ErrInReducer.Error()) {
				t.Errorf("the report is %+v", report)
			}
			if name == "Dispatch" && !errors.Is(inner, session.ErrInReducer) {
				t.Errorf("Dispatch returns %v", inner)
			}
			if n := session.Query[int](s).Len(); n != 0 || session.Query[string](s).Len() != 1 {
				t.Errorf("the slice has %d values, and its neighbour %d; want 0 and 1", n, session.Query[string](s).Len())
			}
			dispatch(t, t.Context(), s, "later") // the session goes on
		})
	}
}

// Goroutines that wait for a reducer are in none themselves.
func TestReducer_OfAnotherSessionIsWaitedFor(t *testing.T) {
	a, b := session.New(nil), session.New(nil)
	session.Reduce(a, func(n int, e added) int {
		if _, err := b.Dispatch(context.Background(), e); err != nil {
			t.Error(err)
		}
		return n + e.N
	})
	session.Reduce(b, func(n int, e added) int { return n + e.N })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				dispatch(t, t.Context(), a, added{1})
				dispatch(t, t.Context(), b, added{1})
			}
		})
	}
	wg.Wait()
	if n, _ := session.Query[int](b).Latest(); n != 1600 {
		t.Errorf("%d of 1600 events arrived", n)
	}
}
