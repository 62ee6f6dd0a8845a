// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/session"
)

// readLog returns the data of the records above a number.
func readLog(t testing.TB, s session.Store, after int64) []string {
	t.Helper()
	list := []string{}
	for r, err := range s.Records(after) {
		if err != nil {
			t.Fatalf("Records(%d) = %v", after, err)
		}
		if after++; r.Pos != after {
			t.Fatalf("record %d follows %d", r.Pos, after-1)
		}
		list = append(list, string(r.Data))
	}
	return list
}

func readText(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fileWith makes a file of that text.
func fileWith(t testing.TB, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	headText  = `{"drover":"session-log","version":1,"id":"s-1","created":"2026-01-02T03:04:05Z"}` + "\n"
	threeGood = `{"pos":1,"a":"one"}` + "\n" + `{"pos":2,"a":[2]}` + "\n" + `{"pos":3}` + "\n"
)

func TestFileStore_WritesAHeaderAndOneLinePerRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	s := openLogFile(t, path, nil)
	if err := s.Init(logHead); err != nil {
		t.Fatal(err)
	}
	list := []session.Record{
		{Pos: 1, Data: json.RawMessage(`{"pos":1,"a":"one"}`)},
		{Pos: 2, Data: json.RawMessage(`{"pos":2,"a":[2]}`)},
		{Pos: 3, Data: json.RawMessage(`{"pos":3}`)},
	}
	if err := s.Append(list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(headText+threeGood, readText(t, path)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestFileStore_FilesAreReadableByTheOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	for want, opts := range map[os.FileMode]*session.FileOptions{0o600: nil, 0o640: {Perm: 0o640}} {
		dir := filepath.Join(t.TempDir(), "a", "b")
		path := filepath.Join(dir, "log.jsonl")
		s := openLogFile(t, path, opts)
		if err := errors.Join(s.Init(logHead), s.Append([]session.Record{longRecord(1)}),
			s.SaveCheckpoint(session.Checkpoint{Pos: 1, Data: json.RawMessage(`{}`)})); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]os.FileMode{path: want, path + ".checkpoint": want, dir: 0o700, filepath.Dir(dir): 0o700} {
			info, err := os.Stat(name)
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, %v, want %v", name, info.Mode().Perm(), err, want)
			}
		}
	}
}

func TestOpenFile_TornEndIsCutOffAndKept(t *testing.T) {
	cases := map[string]string{
		"half a record":            `{"pos":4,"text":"abc`,
		"one byte":                 `{`,
		"record without newline":   `{"pos":4}`,
		"zeros":                    strings.Repeat("\x00", 5000),
		"zeros and a newline":      strings.Repeat("\x00", 5000) + "\n",
		"an empty line":            "\n",
		"several broken lines":     "{\"pos\":4,\n\"text\":\n\n\x00\x00\nabc",
		"object without a number":  `{"text":"abc"}` + "\n",
		"number in another place":  `{"text":"abc","pos":4}` + "\n",
		"number that is too large": `{"pos":99999999999999999999}` + "\n",
		"long tail":                `{"pos":4,"text":"` + strings.Repeat("x", 1<<20),
	}
	for name, torn := range cases {
		t.Run(name, func(t *testing.T) {
			path := fileWith(t, headText+threeGood+torn)
			reader := openLogFile(t, path, &session.FileOptions{ReadOnly: true})
			if got := len(readLog(t, reader, 0)); got != 3 || reader.Last() != 3 {
				t.Errorf("reader has %d records, last %d, want 3", got, reader.Last())
			}
			var logged bytes.Buffer
			s := openLogFile(t, path, &session.FileOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			if got := strings.Join(readLog(t, s, 0), "\n") + "\n"; got != threeGood {
				t.Errorf("records are %q", got)
			}
			size, savedAs := s.Repaired()
			if size != int64(len(torn)) || savedAs != path+".torn" || readText(t, savedAs) != torn {
				t.Errorf("Repaired() = %d, %q, want %d bytes kept", size, savedAs, len(torn))
			}
			if !strings.Contains(logged.String(), "torn") || !strings.Contains(logged.String(), savedAs) {
				t.Errorf("the logger received %q", &logged)
			}
			if err := s.Append([]session.Record{longRecord(4)}); err != nil {
				t.Fatal(err)
			}
			if got, want := readText(t, path), headText+threeGood+string(longRecord(4).Data)+"\n"; got != want {
				t.Errorf("file (-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

func TestOpenFile_KeepsALimitedNumberOfTornEnds(t *testing.T) {
	path := fileWith(t, headText+threeGood)
	const files = 10
	for i := range files + 3 {
		torn := fmt.Sprintf(`{"pos":4,"n":%d`, i)
		if err := os.WriteFile(path, []byte(headText+threeGood+torn), 0o600); err != nil {
			t.Fatal(err)
		}
		s := openLogFile(t, path, nil)
		if _, savedAs := s.Repaired(); readText(t, savedAs) != torn {
			t.Errorf("%s has %q, want %q", savedAs, readText(t, savedAs), torn)
		}
		_ = s.Close()
	}
	if found, _ := filepath.Glob(path + ".torn*"); len(found) != files {
		t.Errorf("%d torn ends are kept, want %d: %v", len(found), files, found)
	}
}

func TestOpenFile_UnfinishedHeaderBeginsANewLog(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "first byte": "{", "half a mark": `{"drover":"ses`, "half a header": `{"drover":"session-log","versi`,
		"header without newline": strings.TrimSpace(headText), "zeros": strings.Repeat("\x00", 80), "half zeros": `{"drover":"s` + "\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			path := fileWith(t, text)
			s := openLogFile(t, path, nil)
			if head, err := s.Head(); err != nil || head.Version != 0 || s.Last() != 0 {
				t.Errorf("Head() = %+v, %v", head, err)
			}
			if size, savedAs := s.Repaired(); size != int64(len(text)) || size > 0 && readText(t, savedAs) != text {
				t.Errorf("Repaired() = %d, %q", size, savedAs)
			}
			if err := s.Init(logHead); err != nil || readText(t, path) != headText {
				t.Errorf("Init = %v, file is %q", err, readText(t, path))
			}
		})
	}
}

func TestOpenFile_OtherFilesAreLeftUnchanged(t *testing.T) {
	for name, text := range map[string]string{
		"text": "hello\nworld\n", "text without newline": "hello", "JSON lines": "{\"pos\":1}\n{\"pos\":2}\n", "blank": "\n", "array": "[1]\n",
		"another log": `{"drover":"transcript","version":1}` + "\n", "JSON": `{"a":1}`, "number": "1\n", "zeros and text": "\x00\x00hello", "CSV": "a,b\n1,2\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := fileWith(t, text)
			_, err := session.OpenFile(path, nil)
			if err == nil || !strings.Contains(advice.Text(err), "not a session log") || !strings.Contains(advice.Text(err), path) {
				t.Errorf("OpenFile = %v, want it refused", err)
			}
			if _, _, err := session.Salvage(path); err == nil {
				t.Error("Salvage = nil, want an error")
			}
			wantAlone(t, path, text)
		})
	}
	if _, err := session.OpenFile(t.TempDir(), nil); err == nil || !strings.Contains(advice.Text(err), "not a regular file") {
		t.Errorf("OpenFile of a directory = %v", err)
	}
}

// wantAlone checks that a file is unchanged and has no company.
func wantAlone(t *testing.T, path, text string) {
	t.Helper()
	if got := readText(t, path); got != text {
		t.Errorf("the file was changed to %q", got)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("files were made: %v", files)
	}
}

func TestOpenFile_NewerVersionIsRefused(t *testing.T) {
	text := `{"drover":"session-log","version":7,"id":{"of":"another form"},"tags":[]}` + "\n" + `["pos",1]` + "\n"
	path := fileWith(t, text)
	_, err := session.OpenFile(path, nil)
	if !errors.Is(err, session.ErrVersion) || !strings.Contains(advice.Text(err), "version 7") || !strings.Contains(advice.Text(err), "up to 1") {
		t.Errorf("OpenFile = %v, want ErrVersion with both versions", err)
	}
	if _, _, err := session.Salvage(path); !errors.Is(err, session.ErrVersion) {
		t.Errorf("Salvage = %v, want ErrVersion", err)
	}
	wantAlone(t, path, text)
}

func TestAppend_RefusesRecordsThatCannotBeReadBack(t *testing.T) {
	stores := map[string]session.Store{
		"memory": session.NewMemoryStore(), "file": openLogFile(t, filepath.Join(t.TempDir(), "log.jsonl"), nil),
	}
	for name, s := range stores {
		if err := s.Init(logHead); err != nil {
			t.Fatal(err)
		}
		for _, data := range []string{
			``, `null`, `[1]`, `{}`, `{"pos":2}`, `{"pos":"1"}`, `{"pos":1.0}`, `{"pos":01}`, `{"pos":-1}`, `{"pos": 1}`,
			`{"a":1,"pos":1}`, "{\"pos\":1,\n\"a\":2}", `{"pos":1}{}`, `{"pos":1`, `{"pos":1,}`, "{\"pos\":1,\"a\":\"\n\"}", "{\"pos\":1}\n",
		} {
			if err := s.Append([]session.Record{{Pos: 1, Data: json.RawMessage(data)}}); err == nil {
				t.Errorf("%s: Append of %q = nil, want an error", name, data)
			}
		}
		if err := s.Append([]session.Record{longRecord(1)}); err != nil || s.Last() != 1 {
			t.Errorf("%s: Append afterwards = %v, last %d", name, err, s.Last())
		}
	}
}

func TestInit_RefusesOtherVersions(t *testing.T) {
	s := openLogFile(t, filepath.Join(t.TempDir(), "log.jsonl"), nil)
	for _, version := range []int{-1, 0, session.EncodingVersion + 1} {
		if err := s.Init(session.Head{Version: version}); err == nil {
			t.Errorf("Init of version %d = nil, want an error", version)
		}
	}
}

func TestSyncPolicy_TextRoundTrip(t *testing.T) {
	for text, want := range map[string]session.SyncPolicy{
		"always": session.SyncAlways, "interval": session.SyncInterval, "never": session.SyncNever,
	} {
		var got session.SyncPolicy
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("UnmarshalText(%q) = %v, %v", text, got, err)
		}
		if again, err := want.MarshalText(); err != nil || string(again) != text || want.String() != text {
			t.Errorf("MarshalText of %v = %q, %v", want, again, err)
		}
	}
	got := session.SyncNever
	if err := got.UnmarshalText([]byte("")); err != nil || got != session.SyncAlways {
		t.Errorf("no text means %v, %v, want always", got, err)
	}
	if err := got.UnmarshalText([]byte("Always")); err == nil || !strings.Contains(advice.Text(err), "interval") {
		t.Errorf("UnmarshalText of another text = %v, want an error with the names", err)
	}
}
