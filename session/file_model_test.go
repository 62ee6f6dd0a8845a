// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit" // gives rapid its size

	"github.com/drover-agents/drover/session"
)

// A logModel is a store beside the plain list of what it must have.
type logModel struct {
	path    string
	store   *session.FileStore
	head    string   // as it is in the file, if it was begun
	records []string // of the log
	saved   session.Checkpoint
	n       int // makes every record different
}

func (m *logModel) open(t *rapid.T) {
	s, err := session.OpenFile(m.path, &session.FileOptions{Sync: session.SyncNever})
	if err != nil {
		t.Fatalf("OpenFile = %v", err)
	}
	m.store = s
}

// init begins the log, if that was not done before.
func (m *logModel) init(t *rapid.T) {
	if m.head != "" {
		t.Skip("begun")
	}
	if err := m.store.Init(logHead); err != nil {
		t.Fatal(err)
	}
	m.head = headText
}

func (m *logModel) newRecord(t *rapid.T, pos int64) session.Record {
	m.n++
	text := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 10, 100, 5000, 40_000}).Draw(t, "size"))
	return session.Record{Pos: pos, Data: json.RawMessage(fmt.Sprintf(`{"pos":%d,"n":%d,"text":"%s"}`, pos, m.n, text))}
}

func (m *logModel) append(t *rapid.T) {
	var batch []session.Record
	for range rapid.IntRange(0, 5).Draw(t, "records") {
		batch = append(batch, m.newRecord(t, int64(len(m.records)+len(batch)+1)))
	}
	broken := len(batch) > 0 && rapid.IntRange(0, 9).Draw(t, "broken") == 0
	if broken {
		batch[rapid.IntRange(0, len(batch)-1).Draw(t, "at")].Pos++
	}
	err := m.store.Append(batch)
	if (err == nil) != (m.head != "" && !broken) {
		t.Fatalf("Append = %v, begun %v, broken %v", err, m.head != "", broken)
	}
	if err == nil {
		for _, r := range batch {
			m.records = append(m.records, string(r.Data))
		}
	}
}

func (m *logModel) checkpoint(t *rapid.T) {
	if len(m.records) == 0 {
		t.Skip("no records")
	}
	pos := int64(rapid.IntRange(1, len(m.records)).Draw(t, "pos"))
	m.n++
	c := session.Checkpoint{Pos: pos, Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, m.n))}
	if err := m.store.SaveCheckpoint(c); err != nil {
		t.Fatal(err)
	}
	m.saved = c
}

func (m *logModel) close(t *rapid.T) {
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
}

func (m *logModel) reopen(t *rapid.T) {
	m.close(t)
	m.open(t)
}

// text is what must be in the file.
func (m *logModel) text() string {
	lines := append([]string{m.head}, m.records...)
	return lines[0] + strings.Join(slices.Concat(lines[1:], []string{""}), "\n")
}

// crash tears an append, or the header, that was not yet acknowledged.
func (m *logModel) crash(t *rapid.T) {
	m.close(t)
	next := headText
	if m.head != "" {
		next = string(m.newRecord(t, int64(len(m.records)+1)).Data)
	}
	torn := next[:rapid.IntRange(0, len(next)-1).Draw(t, "written")]
	torn += strings.Repeat("\x00", rapid.SampledFrom([]int{0, 0, 1, 5000}).Draw(t, "zeros"))
	m.rewrite(t, m.text()+torn)
	m.open(t)
	if size, _ := m.store.Repaired(); size != int64(len(torn)) {
		t.Fatalf("%d bytes were cut off, want %d", size, len(torn))
	}
}

// losePower takes away what the disk had not yet: the end of the file, from any byte on.
func (m *logModel) losePower(t *rapid.T) {
	m.close(t)
	text := m.text()
	size := rapid.IntRange(len(m.head), len(text)).Draw(t, "size")
	if len(m.records) > 0 && rapid.Bool().Draw(t, "a little") {
		size = max(size, len(text)-100)
	}
	m.rewrite(t, text[:size])
	m.records = m.records[:max(0, strings.Count(text[:size], "\n")-1)]
	if m.saved.Pos > int64(len(m.records)) {
		m.saved = session.Checkpoint{}
	}
	m.open(t)
}

func (m *logModel) rewrite(t *rapid.T, text string) {
	if err := os.WriteFile(m.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// check compares the store with the list.
func (m *logModel) check(t *rapid.T) {
	last := int64(len(m.records))
	if got := m.store.Last(); got != last {
		t.Fatalf("Last() = %d, want %d", got, last)
	}
	after := int64(rapid.IntRange(-1, len(m.records)+1).Draw(t, "after"))
	at := max(after, 0)
	for r, err := range m.store.Records(after) {
		if err != nil {
			t.Fatalf("Records(%d) = %v", after, err)
		}
		if at++; at > last || r.Pos != at || string(r.Data) != m.records[at-1] {
			t.Fatalf("Records(%d): record %d is %.40s, want number %d", after, r.Pos, r.Data, at)
		}
	}
	if at != max(last, after) {
		t.Fatalf("Records(%d) ended at %d, want %d", after, at, last)
	}
	c, err := m.store.Checkpoint()
	if err != nil || c.Pos != m.saved.Pos || string(c.Data) != string(m.saved.Data) {
		t.Fatalf("Checkpoint() = %d %s, %v; want %d %s", c.Pos, c.Data, err, m.saved.Pos, m.saved.Data)
	}
	if text, _ := os.ReadFile(m.path); string(text) != m.text() {
		t.Fatalf("the file has %d bytes, want %d, or others", len(text), len(m.text()))
	}
}

func TestFileStore_BehavesLikeAList(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(sub)
		m := &logModel{path: filepath.Join(sub, "log.jsonl")}
		m.open(t)
		defer func() { _ = m.store.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"init": m.init, "append": m.append, "append more": m.append, "checkpoint": m.checkpoint,
			"reopen": m.reopen, "crash": m.crash, "lose power": m.losePower, "": m.check,
		})
	})
}
