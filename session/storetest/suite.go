// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
)

// Run checks every contract on a store of its own. Open makes it, empty, and registers its clean-up with
// t. Reopen opens the same log again after the store was closed; it is nil for a store that forgets, and
// the contracts that need it are then skipped.
func Run(t *testing.T, open func(t *testing.T) (s session.Store, reopen func() session.Store)) {
	contracts := []struct {
		name  string
		check func(t *testing.T, s session.Store)
	}{
		{"new store is empty", newStore},
		{"head is what Init was given", head},
		{"log is begun once and first", initOnce},
		{"records come back in order and unchanged", order},
		{"readers have a position", positions},
		{"gaps and repetitions are refused", gaps},
		{"append keeps all or none", allOrNone},
		{"empty append changes nothing", emptyAppend},
		{"append goes on after a refusal", appendAfterRefusal},
		{"caller may reuse its buffers", buffers},
		{"large records", large},
		{"reader sees what was there when it was called", fixedEnd},
		{"reader may stop early and begin again", stopEarly},
		{"many read while one appends", concurrentReaders},
		{"last checkpoint counts", checkpoint},
		{"checkpoint beyond the log is refused", checkpointBeyond},
		{"close may be repeated", closeTwice},
		{"closed store says so", closedStore},
	}
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) {
			s, _ := open(t)
			c.check(t, s)
		})
	}
	runReopened(t, open)
}

func runReopened(t *testing.T, open func(t *testing.T) (session.Store, func() session.Store)) {
	contracts := []struct {
		name  string
		check func(t *testing.T, s session.Store, reopen func() session.Store)
	}{
		{"reopened store has everything", reopenedHasAll},
		{"reopened empty store is new", reopenedEmpty},
		{"reopened store goes on", reopenedGoesOn},
		{"reopened checkpoint is missing or the last", reopenedCheckpoint},
		{"reopened session has its state", reopenedSession},
	}
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) {
			s, reopen := open(t)
			if reopen == nil {
				t.Skipf("%T cannot be opened again", s)
			}
			c.check(t, s, reopen)
		})
	}
}

// someHead is a head with every field set.
func someHead() session.Head {
	return session.Head{
		Version: session.EncodingVersion, ID: "s-1", Parent: "s-0",
		Tags:    map[string]string{"team": "red", "quote": "\"\n\u2028<é>"},
		Created: time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC),
	}
}

// record returns a record that is unlike all others.
func record(pos int64) session.Record {
	return session.Record{Pos: pos, Data: json.RawMessage(fmt.Sprintf(
		`{"pos":%d,"cause":"c%d","event":{"kind":"test","payload":{"text":"line\nbreak and é %d"}}}`, pos, pos, pos))}
}

// records are those numbered from to to, both included.
func records(from, to int64) []session.Record {
	var list []session.Record
	for pos := from; pos <= to; pos++ {
		list = append(list, record(pos))
	}
	return list
}

func begin(t *testing.T, s session.Store) {
	t.Helper()
	if err := s.Init(someHead()); err != nil {
		t.Fatalf("Init = %v", err)
	}
}

func add(t *testing.T, s session.Store, list ...session.Record) {
	t.Helper()
	if err := s.Append(list); err != nil {
		t.Fatalf("Append of %d records after %d = %v", len(list), s.Last(), err)
	}
}

func closeStore(t *testing.T, s session.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
}

// read collects the records above a number.
func read(t *testing.T, s session.Store, after int64) []session.Record {
	t.Helper()
	var list []session.Record
	for r, err := range s.Records(after) {
		if err != nil {
			t.Fatalf("Records(%d) = %v after %d records", after, err, len(list))
		}
		list = append(list, r)
	}
	return list
}

// want checks that the store has exactly the records 1 to last.
func want(t *testing.T, s session.Store, last int64) {
	t.Helper()
	if got := s.Last(); got != last {
		t.Errorf("Last() = %d, want %d", got, last)
	}
	same(t, records(1, last), read(t, s, 0))
}

func same(t *testing.T, want, got []session.Record) {
	t.Helper()
	if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// texts makes records readable in a difference; they must be the same to the byte.
func texts(list []session.Record) []string {
	out := []string{}
	for _, r := range list {
		out = append(out, fmt.Sprintf("%d %s", r.Pos, r.Data))
	}
	return out
}
