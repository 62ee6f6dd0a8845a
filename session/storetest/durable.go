// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
)

// wantCheckpoint accepts none besides those given: a store may forget.
func wantCheckpoint(t *testing.T, s session.Store, pos int64, data string) {
	t.Helper()
	c, err := s.Checkpoint()
	if err != nil || c.Pos != 0 && (c.Pos != pos || string(c.Data) != data) {
		t.Errorf("Checkpoint() = %d %s, %v; want %d %s, or none", c.Pos, c.Data, err, pos, data)
	}
}

func save(t *testing.T, s session.Store, pos int64, data string) {
	t.Helper()
	if err := s.SaveCheckpoint(session.Checkpoint{Pos: pos, Data: json.RawMessage(data)}); err != nil {
		t.Fatalf("SaveCheckpoint at %d = %v", pos, err)
	}
}

func checkpoint(t *testing.T, s session.Store) {
	begin(t, s)
	for pos := int64(1); pos <= 5; pos++ {
		add(t, s, record(pos))
		data := fmt.Sprintf(`{"state":%d}`, pos)
		save(t, s, pos, data)
		wantCheckpoint(t, s, pos, data)
	}
	add(t, s, records(6, 9)...)
	wantCheckpoint(t, s, 5, `{"state":5}`)
	save(t, s, 7, "{\n  \"state\": \"<7>\"\n}\n")
	wantCheckpoint(t, s, 7, "{\n  \"state\": \"<7>\"\n}\n")
	want(t, s, 9)
}

func checkpointBeyond(t *testing.T, s session.Store) {
	begin(t, s)
	add(t, s, records(1, 2)...)
	save(t, s, 2, `{}`)
	for _, pos := range []int64{3, 1 << 40} {
		if err := s.SaveCheckpoint(session.Checkpoint{Pos: pos, Data: json.RawMessage(`{}`)}); err == nil {
			t.Errorf("SaveCheckpoint at %d of 2 = nil, want an error", pos)
		}
	}
	wantCheckpoint(t, s, 2, `{}`)
}

func reopenedHasAll(t *testing.T, s session.Store, reopen func() session.Store) {
	begin(t, s)
	for pos := int64(1); pos <= 30; pos += 3 {
		add(t, s, records(pos, pos+2)...)
	}
	closeStore(t, s)
	s = reopen()
	defer closeStore(t, s)
	got, err := s.Head()
	if diff := cmp.Diff(someHead(), got); err != nil || diff != "" {
		t.Errorf("Head() = %v (-want +got):\n%s", err, diff)
	}
	want(t, s, 30)
	if err := s.Init(someHead()); err == nil {
		t.Error("Init of a log that was begun before = nil, want an error")
	}
}

func reopenedEmpty(t *testing.T, s session.Store, reopen func() session.Store) {
	closeStore(t, s)
	s = reopen()
	defer closeStore(t, s)
	newStore(t, s)
	begin(t, s)
	add(t, s, record(1))
	want(t, s, 1)
}

func reopenedGoesOn(t *testing.T, s session.Store, reopen func() session.Store) {
	begin(t, s)
	for pos := int64(1); pos <= 5; pos++ {
		add(t, s, record(pos))
		if err := s.Append([]session.Record{record(pos + 2)}); err == nil {
			t.Errorf("Append of %d after %d = nil, want an error", pos+2, pos)
		}
		closeStore(t, s)
		s = reopen()
		want(t, s, pos)
	}
	closeStore(t, s)
}

func reopenedCheckpoint(t *testing.T, s session.Store, reopen func() session.Store) {
	begin(t, s)
	add(t, s, records(1, 10)...)
	save(t, s, 4, `{"state":4}`)
	save(t, s, 8, `{"state":8}`)
	for range 2 {
		closeStore(t, s)
		s = reopen()
		wantCheckpoint(t, s, 8, `{"state":8}`)
		want(t, s, 10)
	}
	add(t, s, record(11))
	closeStore(t, s)
	s = reopen()
	defer closeStore(t, s)
	wantCheckpoint(t, s, 8, `{"state":8}`)
	want(t, s, 11)
}

type counted struct{ N int }

type total int

// reopenedSession closes a session, which leaves a checkpoint, or only its store, as if it had died.
func reopenedSession(t *testing.T, s session.Store, reopen func() session.Store) {
	sum := 0
	for round := range 4 {
		log, err := session.Open(s, nil)
		if err != nil {
			t.Fatalf("Open in round %d = %v", round, err)
		}
		session.Reduce(log, func(n total, c counted) total { return n + total(c.N) })
		for range 10 {
			sum += round + 1
			if _, err := log.Dispatch(t.Context(), counted{round + 1}); err != nil {
				t.Fatalf("Dispatch = %v", err)
			}
		}
		if got, _ := session.Query[total](log).Latest(); int(got) != sum {
			t.Errorf("total in round %d is %d, want %d", round, got, sum)
		}
		if got, want := session.Query[counted](log).Len(), 10*(round+1); got != want {
			t.Errorf("%d values in round %d, want %d", got, round, want)
		}
		closing := log.Close
		if round%2 == 1 {
			closing = s.Close
		}
		if err := closing(); err != nil {
			t.Fatalf("Close = %v", err)
		}
		s = reopen()
	}
	closeStore(t, s)
}
