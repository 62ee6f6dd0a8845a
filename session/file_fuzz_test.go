// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
)

var numbered = regexp.MustCompile(`^\{"pos":([1-9][0-9]{0,17})[,}]`)

// plainRecord reads a record in the plainest way.
func plainRecord(line []byte) (pos int64, ok bool) {
	found := numbered.FindSubmatch(line)
	if found == nil || !bytes.HasSuffix(line, []byte("\n")) || !json.Valid(line) {
		return 0, false
	}
	pos, err := strconv.ParseInt(string(found[1]), 10, 64)
	return pos, err == nil
}

// plainPrefix is the good part of a log: its header and the records in order. Torn says that no record
// follows.
func plainPrefix(text []byte) (good []byte, records []string, torn bool) {
	rest := bytes.SplitAfter(text, []byte("\n"))
	var head struct {
		Drover string
		session.Head
	}
	if json.Unmarshal(rest[0], &head) != nil || !bytes.HasSuffix(rest[0], []byte("\n")) ||
		head.Drover != "session-log" || head.Version != 1 {
		return nil, []string{}, len(rest) == 1
	}
	end, inOrder := len(rest[0]), true
	records, torn = []string{}, true
	for _, line := range rest[1:] {
		pos, ok := plainRecord(line)
		inOrder = inOrder && ok && pos == int64(len(records))+1
		if inOrder {
			records = append(records, strings.TrimSuffix(string(line), "\n"))
			end += len(line)
		} else if ok {
			torn = false
		}
	}
	return text[:end], records, torn
}

func FuzzOpenFile(f *testing.F) {
	for _, text := range []string{
		"", "{", "hello\n", headText, headText[:20], headText + threeGood, headText + threeGood + `{"pos":4,"te`, headText + threeGood + "\x00\x00\x00",
		headText + threeGood + "\n{\"pos\":4}\n", headText + "{\"pos\":2}\n", headText + threeGood + "{\"pos\":3}\n", headText + "\n\n\n",
		strings.Replace(headText, `"version":1`, `"version":2`, 1) + threeGood, strings.Replace(headText, "}", "", 1) + threeGood,
		headText + strings.ReplaceAll(threeGood, "\n", "\r\n"), headText + `{"pos":1,"a":"` + strings.Repeat("x", 70_000) + "\"}\n{\"pos\":2}\n{",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "log.jsonl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		good, records, torn := plainPrefix(text)
		s, err := session.OpenFile(path, &session.FileOptions{Sync: session.SyncNever})
		switch {
		case err == nil:
			checkOpened(t, s, path, text, good, records, torn)
		case readText(t, path) != string(text):
			t.Fatalf("OpenFile = %v, and it has changed the file", err)
		case errors.Is(err, session.ErrCorrupt):
			checkSalvaged(t, path, text, good, records)
		default:
			if len(good) > 0 {
				t.Errorf("OpenFile = %v, but there is a good header", err)
			}
			if _, _, again := session.Salvage(path); again == nil || readText(t, path) != string(text) {
				t.Errorf("Salvage = %v, or it has changed the file", again)
			}
		}
	})
}

func checkOpened(t *testing.T, s *session.FileStore, path string, text, good []byte, records []string, torn bool) {
	t.Helper()
	defer s.Close()
	if !torn {
		t.Error("a log was opened although records follow the damage")
	}
	if diff := cmp.Diff(records, readLog(t, s, 0)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if got := readText(t, path); got != string(good) {
		t.Errorf("file is %q, want %q", got, good)
	}
	size, savedAs := s.Repaired()
	if size != int64(len(text)-len(good)) || size > 0 && readText(t, savedAs) != string(text[len(good):]) {
		t.Errorf("Repaired() = %d, %q, want the rest kept", size, savedAs)
	}
}

func checkSalvaged(t *testing.T, path string, text, good []byte, records []string) {
	t.Helper()
	kept, movedTo, err := session.Salvage(path)
	if err != nil || kept != int64(len(records)) {
		t.Fatalf("Salvage = %d, %v, want %d", kept, err, len(records))
	}
	if readText(t, path) != string(good) || readText(t, movedTo) != string(text[len(good):]) {
		t.Errorf("salvaged file is %q, moved aside is %q", readText(t, path), readText(t, movedTo))
	}
	s := openLogFile(t, path, &session.FileOptions{Sync: session.SyncNever})
	defer s.Close()
	if diff := cmp.Diff(records, readLog(t, s, 0)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}
