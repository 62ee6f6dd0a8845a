// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
)

func TestVisibility_SummaryHidesTheWholeSubtree(t *testing.T) {
	off := equipped("off", equipped("below"))
	off.Enabled = func(View) bool { return false }
	hidden := equipped("b", equipped("x", equipped("y")), off)
	hidden.Visibility = Summary
	r := mustRender(t, mustBind(t, []*Section{equipped("a"), hidden}), nil)
	for what, got := range map[string][]string{"tools": toolNames(r.Tools), "skills": skillNames(r.Skills), "policies": policyNames(r.Policies)} {
		if diff := cmp.Diff([]string{"a"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	want := []HiddenSection{{
		Path: "b", Number: "2", Title: "B", OpenWith: OpenSections,
		Subsections: []string{"b.x", "b.x.y"}, Tools: []string{"b", "x", "y"}, Skills: []string{"b", "x", "y"},
	}}
	if diff := cmp.Diff(want, r.Hidden); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]RenderedSection{{"a", "1", "A", Full}, {"b", "2", "B", Summary}}, r.Sections); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
}

// Each step adds the choice that comes before all choices that are there already.
func TestVisibility_NearestChoiceApplies(t *testing.T) {
	s := &Section{Key: "a", Title: "A", Text: "Text.", Summary: "Summary.", Visibility: Summary}
	plain := mustBind(t, []*Section{s})
	s.VisibilityWhen = func(View) Visibility { return Full }
	chosen := mustBind(t, []*Section{s})
	hash := plain.Descriptor().Sections[0].Hash
	overrides := &Overrides{Sections: map[string]SectionOverride{"a": {Hash: hash, Visibility: new(Summary)}}}
	ses := session.New(nil)
	for _, c := range []struct {
		name   string
		p      *Prompt[Text]
		before func()
		opts   RenderOptions
		want   Visibility
	}{
		{"the section", plain, nil, RenderOptions{}, Summary},
		{"its function", chosen, nil, RenderOptions{}, Full},
		{"overrides", chosen, nil, RenderOptions{Overrides: overrides}, Summary},
		{"a session that says nothing", chosen, nil, RenderOptions{Overrides: overrides, Session: ses}, Summary},
		{"the session", chosen, func() { dispatch(t, ses, session.SetVisibility{Section: "a", Visibility: "full"}) }, RenderOptions{Overrides: overrides, Session: ses}, Full},
		{"the call", chosen, nil, RenderOptions{Overrides: overrides, Session: ses, Visibility: map[string]Visibility{"a": Summary}}, Summary},
		{"the session cleared", chosen, func() { dispatch(t, ses, session.ClearVisibility{Section: "a"}) }, RenderOptions{Session: ses, Overrides: overrides}, Summary},
		{"a section of another prompt", chosen, func() { dispatch(t, ses, session.SetVisibility{Section: "z", Visibility: "summary"}) }, RenderOptions{Session: ses}, Full},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.before != nil {
				c.before()
			}
			r := mustRender(t, c.p, &c.opts)
			if got := r.Sections[0].Visibility; got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestVisibility_InvalidValueInTheSessionIsAnError(t *testing.T) {
	ses := session.New(nil)
	dispatch(t, ses, session.SetVisibility{Section: "a", Visibility: "half"})
	_, err := mustBind(t, []*Section{equipped("a")}).Render(&RenderOptions{Session: ses})
	wantErrors(t, err, ErrRender, `prompt: demo:test: section "a": in the session: prompt: visibility "half" is neither full nor summary`)
}

func dispatch(t *testing.T, s *session.Session, v any) {
	t.Helper()
	if _, err := s.Dispatch(t.Context(), v); err != nil {
		t.Fatal(err)
	}
}

func TestVisibility_JSONRoundTrip(t *testing.T) {
	var got map[string]Visibility
	if err := json.Unmarshal([]byte(`{"a":"full","b":"SUMMARY"}`), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]Visibility{"a": Full, "b": Summary}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(got)
	if want := `{"a":"full","b":"summary"}`; err != nil || string(raw) != want {
		t.Errorf("got %s (%v), want %s", raw, err, want)
	}
	if _, err := json.Marshal(Visibility(9)); err == nil {
		t.Error("an invalid visibility has a JSON form")
	}
}

// A session whose store cannot be read does not know what it hides: then nothing is shown.
func TestVisibility_UnreadableSessionShowsNothing(t *testing.T) {
	store := &forgetfulStore{MemoryStore: session.NewMemoryStore()}
	for _, last := range []bool{false, true} {
		s, err := session.Open(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !last {
			if _, err := s.Dispatch(t.Context(), session.SetVisibility{Section: "task", Visibility: "summary"}); err != nil {
				t.Fatal(err)
			}
		}
		store.broken = last
		p, err := NewPrompt[Text]("test", "hidden", &Section{Key: "task", Title: "Task", Text: "secret", Summary: "short"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Render(&RenderOptions{Session: s})
		if last && (!errors.Is(err, ErrRender) || !errors.Is(err, errBroken)) || !last && (err != nil || strings.Contains(got.Text, "secret")) {
			t.Errorf("broken %v: rendered %+v with the error %v", last, got, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

var errBroken = errors.New("the disk is gone")

type forgetfulStore struct {
	*session.MemoryStore
	broken bool
}

func (*forgetfulStore) Close() error { return nil }

// Checkpoint has no slices.
func (s *forgetfulStore) Checkpoint() (session.Checkpoint, error) {
	if last := s.Last(); last > 0 {
		return session.Checkpoint{Pos: last, Data: fmt.Appendf(nil, `{"pos":%d,"live":[[1,%d]]}`, last, last)}, nil
	}
	return session.Checkpoint{}, nil
}

func (s *forgetfulStore) Records(after int64) iter.Seq2[session.Record, error] {
	if s.broken {
		return func(yield func(session.Record, error) bool) { yield(session.Record{}, errBroken) }
	}
	return s.MemoryStore.Records(after)
}
