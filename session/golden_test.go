// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
)

var update = flag.Bool("update-log", false, "rewrite testdata/log.golden.jsonl")

// The golden log has one of each thing that a session writes. Logs of today must open for ever: a
// difference here is a change of the encoding.
func TestLog_EncodingEqualsTheGoldenFile(t *testing.T) {
	const golden = "testdata/log.golden.jsonl"
	got := writtenLog(t)
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("- want, + got\n%s", diff)
	}
}

func TestLog_GoldenFileOpens(t *testing.T) {
	want, err := os.ReadFile("testdata/log.golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	store := newDisk()
	_ = store.Init(session.Head{Version: 1, ID: "golden"})
	for line := range bytes.Lines(want) {
		record := session.Record{Pos: store.Last() + 1, Data: bytes.TrimSpace(line)}
		if err := store.Append([]session.Record{record}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(texts(open(t, store))), "[kept committed]"; got != want {
		t.Errorf("its notes are %s, want %s", got, want)
	}
}

func writtenLog(t *testing.T) []byte {
	t.Helper()
	clock := time.UnixMilli(1_900_000_000_000)
	store := newDisk()
	s, err := session.Open(store, &session.Options{
		NewID: func() string { return "golden" },
		Now:   func() time.Time { clock = clock.Add(time.Second); return clock },
	})
	if err != nil {
		t.Fatal(err)
	}
	session.Reduce(s, func(n picky, e added) picky { panic("unlucky") })
	dispatch(t, t.Context(), s, remark{"kept"}, added{13}, &named{1})
	snap := s.Snapshot()
	dispatch(t, t.Context(), s, remark{"<gone> & back"})
	inA, a := s.Begin(t.Context(), "toolu_a")
	inB, b := s.Begin(t.Context(), "toolu_b")
	err = s.Restore(t.Context(), snap)
	dispatch(t, inA, s, remark{"committed"})
	dispatch(t, inB, s, remark{"rolled back"})
	err = errors.Join(err, a.Commit(), b.Rollback("it failed"))
	err = errors.Join(err, session.Seed(t.Context(), s, item{ID: 1}), session.Clear[item](t.Context(), s))
	in, tx := s.Begin(t.Context(), "toolu_c")
	err = errors.Join(err, s.Reset(in), tx.Rollback("no reset"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for record, err := range store.Records(0) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&log, "%s\n", record.Data)
	}
	return log.Bytes()
}
