// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/session"
)

// logHead begins the logs of these tests.
var logHead = session.Head{Version: session.EncodingVersion, ID: "s-1", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

// longRecord is a record of about 400 bytes, as they are on average.
func longRecord(pos int64) session.Record {
	return session.Record{Pos: pos, Data: json.RawMessage(fmt.Sprintf(
		`{"pos":%d,"cause":"toolu_%020d","event":{"id":"%032d","at":"2026-01-02T03:04:05.678Z","kind":"tool.invoked",`+
			`"payload":{"name":"read_file","params":{"path":"src/main.go","limit":100},"ok":true,"text":"%s"}}}`,
		pos, pos, pos, strings.Repeat("line\\n of text. ", 13)))}
}

// writeLog makes a log of n records, with a checkpoint after one of them unless that is zero.
func writeLog(t testing.TB, n, checkpoint int64) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log.jsonl")
	s := openLogFile(t, path, &session.FileOptions{Sync: session.SyncNever})
	err := s.Init(logHead)
	var batch []session.Record
	for pos := int64(1); pos <= n && err == nil; pos++ {
		if batch = append(batch, longRecord(pos)); len(batch) == 1000 || pos == n {
			err = s.Append(batch)
			batch = batch[:0]
		}
	}
	if err == nil && checkpoint > 0 {
		data := json.RawMessage(`{"state":"` + strings.Repeat("x", 1<<20) + `"}`)
		err = s.SaveCheckpoint(session.Checkpoint{Pos: checkpoint, Data: data})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func BenchmarkFileAppend(b *testing.B) {
	for _, policy := range []session.SyncPolicy{session.SyncNever, session.SyncInterval, session.SyncAlways} {
		b.Run(policy.String(), func(b *testing.B) {
			s := openLogFile(b, filepath.Join(b.TempDir(), "log.jsonl"), &session.FileOptions{Sync: policy})
			if err := s.Init(logHead); err != nil {
				b.Fatal(err)
			}
			data := longRecord(1).Data[len(`{"pos":1`):]
			var line []byte
			b.ReportAllocs()
			for pos := int64(1); b.Loop(); pos++ {
				line = append(fmt.Appendf(line[:0], `{"pos":%d`, pos), data...)
				if err := s.Append([]session.Record{{Pos: pos, Data: line}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFileOpen100k(b *testing.B) {
	for name, checkpoint := range map[string]int64{"scan": 0, "checkpoint": 100_000} {
		b.Run(name, func(b *testing.B) {
			path := writeLog(b, 100_000, checkpoint)
			b.ReportAllocs()
			for b.Loop() {
				s, err := session.OpenFile(path, nil)
				if err != nil {
					b.Fatal(err)
				}
				if c, err := s.Checkpoint(); err != nil || c.Pos != checkpoint || s.Last() != 100_000 {
					b.Fatalf("checkpoint %d, last %d, %v", c.Pos, s.Last(), err)
				}
				_ = s.Close()
			}
		})
	}
}

func BenchmarkFileRecords100k(b *testing.B) {
	path := writeLog(b, 100_000, 0)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	s := openLogFile(b, path, nil)
	for name, after := range map[string]int64{"all": 0, "last 10": 99_990, "one in the middle": 50_000} {
		b.Run(name, func(b *testing.B) {
			if after == 0 {
				b.SetBytes(info.Size())
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range s.Records(after) {
					if err != nil {
						b.Fatal(err)
					}
					if after == 50_000 {
						break
					}
				}
			}
		})
	}
}

// BenchmarkDispatchToFile takes one event through two reducers and into a file.
func BenchmarkDispatchToFile(b *testing.B) {
	for _, policy := range []session.SyncPolicy{session.SyncNever, session.SyncInterval, session.SyncAlways} {
		b.Run(policy.String(), func(b *testing.B) {
			s := openSession(b, filepath.Join(b.TempDir(), "log.jsonl"), policy)
			session.Append(s, func(e analysed) analysed { return e })
			dispatchAll(b, func() *session.Session { return s }, b.N)
			_ = s.Close()
		})
	}
}

// openSession opens the log of a session that counts what was analysed.
func openSession(b *testing.B, path string, policy session.SyncPolicy) *session.Session {
	b.Helper()
	store, err := session.OpenFile(path, &session.FileOptions{Sync: policy})
	if err != nil {
		b.Fatal(err)
	}
	s, err := session.Open(store, nil)
	if err != nil {
		b.Fatal(err)
	}
	session.Reduce(s, func(n int, e analysed) int { return n + e.Issues })
	return s
}

// BenchmarkSessionOpen100k opens a file of 100,000 events and asks for a slice of all of them. "plain" is
// what a program does that only decodes the lines.
func BenchmarkSessionOpen100k(b *testing.B) {
	path := filepath.Join(b.TempDir(), "log.jsonl")
	s := openSession(b, path, session.SyncNever)
	for range 100_000 {
		dispatch(b, b.Context(), s, analysed{"a.go", 1})
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	log, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	bare := filepath.Join(b.TempDir(), "bare.jsonl") // the log alone
	if err := os.WriteFile(bare, log, 0o600); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, path string }{{"checkpoint", path}, {"no checkpoint", bare}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				if c.path == bare { // closing it would leave a checkpoint
					removeCheckpoints(b, bare)
				}
				b.StartTimer()
				s := openSession(b, c.path, session.SyncNever)
				if n, _ := session.Query[int](s).Latest(); n != 100_000 {
					b.Fatal(n)
				}
				b.StopTimer()
				_ = s.Close()
				b.StartTimer()
			}
		})
	}
	b.Run("plain", func(b *testing.B) { decodePlainly(b, log) })
}

func removeCheckpoints(b *testing.B, path string) {
	b.Helper()
	beside, err := filepath.Glob(path + ".*")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range beside {
		if err := os.Remove(name); err != nil {
			b.Fatal(err)
		}
	}
}

func decodePlainly(b *testing.B, log []byte) {
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for line := range bytes.Lines(log) {
			var entry struct {
				Pos   int64 `json:"pos"`
				Event struct {
					ID      string
					Kind    string
					Payload analysed
				}
			}
			if err := json.Unmarshal(line, &entry); err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 100_001 { // with the header
			b.Fatal(n)
		}
	}
}
