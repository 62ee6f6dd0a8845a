// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

type pair[A, B any] struct {
	First  A
	Second B
}

type alias = pair[int, string]

type named struct{ X int }

func (*named) EventKind() event.Kind { return "test:named" }

func TestKind_NameOfEachType(t *testing.T) {
	const here = "github.com/drover-agents/drover/session_test."
	type local struct{ X int }
	for _, c := range []struct {
		name string
		v    any
		want event.Kind
	}{
		{"a type", added{}, "go:" + here + "added"},
		{"a pointer to it", &added{}, "go:" + here + "added"},
		{"an alias", alias{}, "go:" + here + "pair[int,string]"},
		{"a generic type", pair[added, []string]{}, "go:" + here + "pair[" + here + "added,[]string]"},
		{"a local type", local{}, "go:" + here + "local"},
		{"no name", []string{}, "go:[]string"},
		{"a basic type", 1, "go:int"},
		{"a name of its own", &named{}, "test:named"},
		{"an event", event.Text{}, event.KindText},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := session.New(nil)
			dispatch(t, t.Context(), s, c.v)
			if got := entries(s)[0].Event.Kind; got != c.want {
				t.Errorf("kind is %q, want %q", got, c.want)
			}
		})
	}
}

func oneLocal() any { type local struct{ A int }; return local{1} }

func TestKind_TwoTypesWithOneNameAreRefused(t *testing.T) {
	type local struct{ B string }
	s := session.New(nil)
	dispatch(t, t.Context(), s, oneLocal())
	_, err := s.Dispatch(t.Context(), local{"b"})
	if err == nil || !strings.Contains(advice.Text(err), "two types are called") {
		t.Errorf("dispatching: %v", err)
	}
	wantPanic(t, "two types are called", func() { session.Query[local](s) })
	wantPanic(t, "two types are called", func() { session.Reduce(s, func(n int, _ local) int { return n }) })
	wantPanic(t, "two types are called", func() { session.Reduce(s, func(n int, _ usurper) int { return n }) })
	dispatch(t, t.Context(), s, oneLocal()) // no lock was left behind
}

func TestReducer_OfATypeThatIsNeverDispatchedPanics(t *testing.T) {
	s := session.New(nil)
	wantPanic(t, "no event is ever a *session_test.added", func() { session.Reduce(s, func(n int, _ *added) int { return n }) })
	wantPanic(t, "no event is ever a event.Payload", func() { session.Reduce(s, func(n int, _ event.Payload) int { return n }) })
	wantPanic(t, "has no key", func() { session.Upsert(s, func(e added) item { return item{} }) })
}

func wantPanic(t *testing.T, text string, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		var got string
		switch p := recover().(type) {
		case error:
			got = p.Error()
		case string:
			got = p
		}
		if !strings.Contains(got, text) {
			t.Errorf("it panicked with %q, want %q in it", got, text)
		}
	}()
	do()
}

func TestKind_UnstableNameIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	opts := &session.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s, err := session.Open(session.NewMemoryStore(), opts)
	if err != nil {
		t.Fatal(err)
	}
	dispatch(t, t.Context(), s, added{}, named{})
	if got := log.String(); got != "" {
		t.Errorf("names that last: %s", got)
	}
	for range 2 {
		dispatch(t, t.Context(), s, event.Extension{Kind: "go:main.Note", Data: []byte(`{}`)})
	}
	if got := log.String(); strings.Count(got, "EventKind") != 1 || !strings.Contains(got, "go:main.Note") {
		t.Errorf("the log says %q, want one warning", got)
	}
	inMemory := session.New(opts)
	log.Reset()
	dispatch(t, t.Context(), inMemory, event.Extension{Kind: "go:main.Note", Data: []byte(`{}`)})
	if got := log.String(); got != "" {
		t.Errorf("in memory: %s", got)
	}
}
