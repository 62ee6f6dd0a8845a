// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
)

func newStore(t *testing.T, s session.Store) {
	got, err := s.Head()
	if diff := cmp.Diff(session.Head{}, got); err != nil || diff != "" {
		t.Errorf("Head() = %v (-want +got):\n%s", err, diff)
	}
	if c, err := s.Checkpoint(); err != nil || c.Pos != 0 || c.Data != nil {
		t.Errorf("Checkpoint() = %+v, %v, want none", c, err)
	}
	want(t, s, 0)
}

func head(t *testing.T, s session.Store) {
	begin(t, s)
	got, err := s.Head()
	if diff := cmp.Diff(someHead(), got); err != nil || diff != "" {
		t.Errorf("Head() = %v (-want +got):\n%s", err, diff)
	}
	want(t, s, 0)
}

func initOnce(t *testing.T, s session.Store) {
	if err := s.Append(records(1, 1)); err == nil {
		t.Error("Append before Init = nil, want an error")
	}
	begin(t, s)
	if err := s.Init(session.Head{Version: session.EncodingVersion, ID: "another"}); err == nil {
		t.Error("second Init = nil, want an error")
	}
	if got, err := s.Head(); err != nil || got.ID != someHead().ID {
		t.Errorf("Head() = %+v, %v; want the first", got, err)
	}
	add(t, s, records(1, 2)...)
	want(t, s, 2)
}

func order(t *testing.T, s session.Store) {
	begin(t, s)
	add(t, s, record(1))
	add(t, s, records(2, 5)...)
	add(t, s, record(6))
	want(t, s, 6)
}

func positions(t *testing.T, s session.Store) {
	begin(t, s)
	const last = 1000
	for from := int64(1); from <= last; from += 50 {
		add(t, s, records(from, from+49)...)
	}
	for _, after := range []int64{-1, 0, 1, 2, 499, 500, 501, 998, 999} {
		same(t, records(max(after, 0)+1, last), read(t, s, after))
	}
	for _, after := range []int64{last, last + 1, 1 << 40} {
		same(t, nil, read(t, s, after))
	}
}

func gaps(t *testing.T, s session.Store) {
	begin(t, s)
	for _, pos := range []int64{-1, 0, 2, 3} {
		if err := s.Append([]session.Record{record(pos)}); err == nil {
			t.Errorf("Append of %d to an empty log = nil, want an error", pos)
		}
	}
	add(t, s, records(1, 3)...)
	for _, pos := range []int64{0, 1, 3, 5} {
		if err := s.Append([]session.Record{record(pos)}); err == nil {
			t.Errorf("Append of %d after 3 = nil, want an error", pos)
		}
	}
	want(t, s, 3)
}

func allOrNone(t *testing.T, s session.Store) {
	begin(t, s)
	add(t, s, records(1, 2)...)
	for name, batch := range map[string][]session.Record{
		"a gap at the end":      {record(3), record(4), record(6)},
		"a repetition":          {record(3), record(3)},
		"a gap at the start":    {record(4), record(5)},
		"an order that is back": {record(4), record(3)},
	} {
		if err := s.Append(batch); err == nil {
			t.Errorf("Append with %s = nil, want an error", name)
		}
		want(t, s, 2)
	}
}

func emptyAppend(t *testing.T, s session.Store) {
	begin(t, s)
	add(t, s)
	want(t, s, 0)
	add(t, s, record(1))
	add(t, s, []session.Record{}...)
	want(t, s, 1)
}

func appendAfterRefusal(t *testing.T, s session.Store) {
	begin(t, s)
	if err := s.Append([]session.Record{record(1), record(5)}); err == nil {
		t.Error("Append with a gap = nil, want an error")
	}
	add(t, s, records(1, 2)...)
	want(t, s, 2)
}

func buffers(t *testing.T, s session.Store) {
	begin(t, s)
	list := records(1, 3)
	add(t, s, list...)
	for _, r := range list {
		clear(r.Data)
	}
	clear(list)
	want(t, s, 3)

	data := json.RawMessage(`{"state":1}`)
	if err := s.SaveCheckpoint(session.Checkpoint{Pos: 1, Data: data}); err != nil {
		t.Fatalf("SaveCheckpoint = %v", err)
	}
	clear(data)
	if c, err := s.Checkpoint(); err != nil || c.Pos != 0 && string(c.Data) != `{"state":1}` {
		t.Errorf("Checkpoint() = %d %q, %v", c.Pos, c.Data, err)
	}
	got, err := s.Head()
	if err != nil {
		t.Fatalf("Head() = %v", err)
	}
	got.Tags["team"] = "blue"
	if got, _ := s.Head(); got.Tags["team"] != "red" {
		t.Errorf("Head() has tags %v, want those of Init", got.Tags)
	}
}

func large(t *testing.T, s session.Store) {
	begin(t, s)
	text := strings.Repeat(`0123456789abcdé\"`, 1<<16) // above 1 MB
	list := []session.Record{record(1)}
	for pos := int64(2); pos <= 4; pos++ {
		data := fmt.Sprintf(`{"pos":%d,"event":{"kind":"large","payload":%q}}`, pos, text)
		list = append(list, session.Record{Pos: pos, Data: json.RawMessage(data)})
	}
	list = append(list, record(5))
	add(t, s, list[:2]...)
	add(t, s, list[2:]...)
	for after := range int64(6) {
		got := read(t, s, after)
		if !cmp.Equal(texts(list[after:]), texts(got)) {
			t.Errorf("Records(%d) gave %d records that differ from those appended", after, len(got))
		}
	}
}

func fixedEnd(t *testing.T, s session.Store) {
	begin(t, s)
	add(t, s, records(1, 3)...)
	early := s.Records(1)
	add(t, s, records(4, 5)...)
	var got []session.Record
	for r, err := range early {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, r); len(got) == 1 {
			add(t, s, record(6)) // a reader does not hold up the writer
		}
	}
	same(t, records(2, 3), got)
	want(t, s, 6)
}

func stopEarly(t *testing.T, s session.Store) {
	begin(t, s)
	add(t, s, records(1, 5)...)
	seq := s.Records(1)
	for range 3 {
		for r, err := range seq {
			if err != nil || r.Pos != 2 {
				t.Fatalf("first record = %d, %v, want 2", r.Pos, err)
			}
			break
		}
	}
	want(t, s, 5)
}

func concurrentReaders(t *testing.T, s session.Store) {
	begin(t, s)
	const last, readers = 60, 4
	var wg sync.WaitGroup
	var written atomic.Bool
	defer wg.Wait()
	defer written.Store(true)
	for range readers {
		wg.Go(func() { readAlong(t, s, last, &written) })
	}
	for pos := int64(1); pos <= last; pos += 2 {
		add(t, s, records(pos, pos+1)...)
		if err := s.SaveCheckpoint(session.Checkpoint{Pos: pos, Data: json.RawMessage(`{}`)}); err != nil {
			t.Errorf("SaveCheckpoint = %v", err)
		}
	}
}

// readAlong reads up to the last record, while others are written.
func readAlong(t *testing.T, s session.Store, last int64, written *atomic.Bool) {
	for at := int64(0); at < last; {
		all := written.Load()
		for r, err := range s.Records(at) {
			if err != nil {
				t.Errorf("Records(%d) = %v", at, err)
				return
			}
			if at++; r.Pos != at || string(r.Data) != string(record(at).Data) {
				t.Errorf("record after %d is %d %s", at-1, r.Pos, r.Data)
				return
			}
		}
		if _, err := s.Checkpoint(); err != nil {
			t.Errorf("Checkpoint() = %v", err)
		}
		if all && at < last {
			t.Errorf("Records gave %d records, want %d", at, last)
			return
		}
	}
}

func closeTwice(t *testing.T, s session.Store) {
	begin(t, s)
	add(t, s, record(1))
	for range 3 {
		closeStore(t, s)
	}
}

func closedStore(t *testing.T, s session.Store) {
	begin(t, s)
	add(t, s, records(1, 2)...)
	late := s.Records(0)
	closeStore(t, s)
	calls := map[string]func() error{
		"Head":           func() error { _, err := s.Head(); return err },
		"Init":           func() error { return s.Init(someHead()) },
		"Append":         func() error { return s.Append(records(3, 3)) },
		"Records":        func() error { return firstError(s, 0) },
		"SaveCheckpoint": func() error { return s.SaveCheckpoint(session.Checkpoint{Pos: 1}) },
		"Checkpoint":     func() error { _, err := s.Checkpoint(); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, session.ErrClosed) {
			t.Errorf("%s after Close = %v, want ErrClosed", name, err)
		}
	}
	if got := s.Last(); got != 2 {
		t.Errorf("Last() after Close = %d, want 2", got)
	}
	for _, err := range late { // either is right
		if err != nil && !errors.Is(err, session.ErrClosed) {
			t.Errorf("reader that outlived the store got %v, want records or ErrClosed", err)
		}
	}
}

func firstError(s session.Store, after int64) error {
	for _, err := range s.Records(after) {
		if err != nil {
			return err
		}
	}
	return nil
}
