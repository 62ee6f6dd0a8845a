// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

func open(t testing.TB, store session.Store) *session.Session {
	t.Helper()
	s, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// withSecret has a part that JSON does not carry.
type withSecret struct {
	Shown  int
	hidden int
}

func TestCheckpoint_NeverReplacesStateThatJSONOmits(t *testing.T) {
	store := newDisk()
	define := func(s *session.Session) {
		session.Reduce(s, func(state withSecret, e added) withSecret { return withSecret{state.Shown + e.N, state.hidden + e.N} })
		session.Reduce(s, func(n total, e added) total { return n + total(e.N) })
	}
	s := open(t, store)
	define(s)
	dispatch(t, t.Context(), s, added{1}, added{2})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if c, _ := store.Checkpoint(); !strings.Contains(string(c.Data), "total") || strings.Contains(string(c.Data), "withSecret") {
		t.Errorf("the checkpoint is %s", c.Data)
	}
	again := open(t, store)
	define(again)
	dispatch(t, t.Context(), again, added{3})
	if got, _ := session.Query[withSecret](again).Latest(); got != (withSecret{6, 6}) {
		t.Errorf("state is %+v, want 6 and 6", got)
	}
	if got, _ := session.Query[total](again).Latest(); got != 6 {
		t.Errorf("total is %d, want 6", got)
	}
}

func TestQuery_OfAClosedStoreReturnsErrClosed(t *testing.T) {
	store := newDisk()
	s := open(t, store)
	dispatch(t, t.Context(), s, added{1}, remark{"x"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, store) // at the checkpoint: the entries are in the store alone
	clone, err := again.Clone(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	view := session.Query[remark](again)
	if !errors.Is(view.Err(), session.ErrClosed) || view.Len() != 0 {
		t.Errorf("a slice whose log is closed: %v with %d values, want ErrClosed", view.Err(), view.Len())
	}
	for _, err := range again.After(t.Context(), 0) {
		if !errors.Is(err, session.ErrClosed) {
			t.Errorf("reading a closed log: %v, want ErrClosed", err)
		}
	}
	if got := session.Query[remark](clone).Len(); got != 1 || len(entries(clone)) != 2 {
		t.Errorf("the clone has %d notes in %d entries, want 1 in 2: it needs no store", got, len(entries(clone)))
	}
	if _, err := again.Dispatch(t.Context(), added{1}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("dispatching after Close: %v, want ErrClosed", err)
	}
}

func TestOpen_RestoreBehindTheCheckpointReadsTheWholeLog(t *testing.T) {
	store := newDisk()
	s := open(t, store)
	dispatch(t, t.Context(), s, remark{"1"})
	snap := s.Snapshot()
	dispatch(t, t.Context(), s, remark{"2"})
	if err := s.Close(); err != nil { // leaves a checkpoint of entry 2
		t.Fatal(err)
	}
	c, _ := store.Checkpoint()
	again := open(t, store)
	_, tx := again.Begin(t.Context(), "toolu_1") // no checkpoint while it is open
	defer func() { _ = tx.Commit() }()
	later := again.Snapshot()
	dispatch(t, t.Context(), again, remark{"3"})
	if err := again.Restore(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if err := again.Restore(t.Context(), snap); !errors.Is(err, session.ErrForeignSnapshot) {
		t.Errorf("a snapshot of another session was restored: %v", err)
	}
	record := session.Record{Pos: 5, Data: []byte(`{"pos":5,"event":{"type":"session:restored","agent":"","timestamp":0,"sessionId":"","payload":{"to":1}}}`)}
	if err := store.Append([]session.Record{record}); err != nil {
		t.Fatal(err)
	}
	if got, want := texts(open(t, store)), []string{"1"}; !slices.Equal(got, want) {
		t.Errorf("with a checkpoint of entry %d left are %q, want %q", c.Pos, got, want)
	}
}

func TestOpen_MissingRecordOrInvalidRestoreIsDamage(t *testing.T) {
	const entry = `{"pos":%,"event":{"type":"test:x","payload":{}}}`
	const turn = `{"pos":2,"event":{"type":"session:restored","payload":{"to":2}}}`
	for name, records := range map[string][]session.Record{
		"a hole":       {{Pos: 1, Data: []byte(strings.ReplaceAll(entry, "%", "1"))}, {Pos: 3, Data: []byte(strings.ReplaceAll(entry, "%", "3"))}},
		"no JSON":      {{Pos: 1, Data: []byte(`{`)}},
		"a wrong turn": {{Pos: 1, Data: []byte(strings.ReplaceAll(entry, "%", "1"))}, {Pos: 2, Data: []byte(turn)}},
	} {
		t.Run(name, func(t *testing.T) {
			store := &given{newDisk(), records}
			_ = store.Init(session.Head{Version: 1, ID: "x"})
			if _, err := session.Open(store, nil); !errors.Is(err, session.ErrCorrupt) {
				t.Errorf("opening it: %v, want ErrCorrupt", err)
			}
		})
	}
}

// given has the records of a test.
type given struct {
	*disk
	records []session.Record
}

func (g *given) Records(int64) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for _, r := range g.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestDispatch_KeepsTheEnvelopeOfAnEvent(t *testing.T) {
	store := newDisk()
	s := open(t, store)
	at := time.Date(2030, 1, 2, 3, 4, 5, 6_700_000, time.UTC)
	e := event.Event{Time: at, RunID: "run", Seq: 7, Agent: "claude-code", SessionID: "conv", Payload: event.Text{}}
	dispatch(t, t.Context(), s, &e)
	for name, from := range map[string]*session.Session{"live": s, "opened again": open(t, store)} {
		got := entries(from)[0].Event
		if !got.Time.Equal(at.Truncate(time.Millisecond)) || got.RunID != "run" || got.Seq != 7 || got.SessionID != "conv" || got.Kind != event.KindText {
			t.Errorf("%s it is %+v", name, got)
		}
	}
}

func TestSession_ParentAndClones(t *testing.T) {
	tags := map[string]string{"team": "red"}
	parent := session.New(&session.Options{ID: "parent"})
	s := session.New(&session.Options{Parent: parent, Tags: tags})
	clone, err := s.Clone(nil)
	if err != nil {
		t.Fatal(err)
	}
	tags["team"], s.Tags()["team"], clone.Tags()["team"] = "blue", "green", "grey"
	if got := []string{s.Tags()["team"], clone.Tags()["team"]}; !cmp.Equal(got, []string{"red", "red"}) {
		t.Errorf("tags are %v: they were changed", got)
	}
	if _, err := session.Open(&given{newDisk(), []session.Record{{Pos: 9}}}, &session.Options{Parent: parent}); err == nil {
		t.Error("a damaged log was opened")
	}
	if got := parent.Children(); !slices.Equal(got, []*session.Session{s, clone}) || clone.Parent() != parent || clone.ID() == s.ID() {
		t.Errorf("the parent has %d children, want the session and its clone", len(got))
	}
	if err := errors.Join(s.Close(), parent.Close()); err != nil {
		t.Fatal(err)
	}
	orphan := session.New(&session.Options{Parent: parent})
	if got := parent.Children(); !slices.Equal(got, []*session.Session{clone, orphan}) {
		t.Errorf("the closed parent has %d children, want those that are open", len(got))
	}
}
