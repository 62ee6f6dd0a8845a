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
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/session"
)

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFileStore_CheckpointThatDoesNotFitIsIgnored(t *testing.T) {
	cases := map[string]func(t *testing.T, path, checkpoint string) (last int64){
		"empty": func(t *testing.T, _, checkpoint string) int64 { overwrite(t, checkpoint, ""); return 20 },
		"zeros": func(t *testing.T, _, checkpoint string) int64 {
			overwrite(t, checkpoint, strings.Repeat("\x00", 5000))
			return 20
		},
		"half of its data": func(t *testing.T, _, checkpoint string) int64 {
			text := readText(t, checkpoint)
			overwrite(t, checkpoint, text[:len(text)/2])
			return 20
		},
		"one byte of its data": func(t *testing.T, _, checkpoint string) int64 {
			text := []byte(readText(t, checkpoint))
			text[len(text)-10]++
			overwrite(t, checkpoint, string(text))
			return 20
		},
		"another version": func(t *testing.T, _, checkpoint string) int64 {
			overwrite(t, checkpoint, strings.Replace(readText(t, checkpoint), `"version":1`, `"version":2`, 1))
			return 20
		},
		"another position": func(t *testing.T, _, checkpoint string) int64 {
			overwrite(t, checkpoint, strings.Replace(readText(t, checkpoint), `"pos":10`, `"pos":11`, 1))
			return 20
		},
		"offsets of nowhere": func(t *testing.T, _, checkpoint string) int64 {
			overwrite(t, checkpoint, strings.Replace(readText(t, checkpoint), `"from":`, `"from":-`, 1))
			return 20
		},
		"log cut before it": func(t *testing.T, path, _ string) int64 {
			text := readText(t, path)
			overwrite(t, path, text[:strings.Index(text, `{"pos":8,`)])
			return 7
		},
		"log cut within its record": func(t *testing.T, path, _ string) int64 {
			text := readText(t, path)
			overwrite(t, path, text[:strings.Index(text, `{"pos":10,`)+30])
			return 9
		},
		"log of another session": func(t *testing.T, path, _ string) int64 {
			overwrite(t, path, strings.Replace(readText(t, path), `"id":"s-1"`, `"id":"s-2"`, 1))
			return 20
		},
		"record of another content": func(t *testing.T, path, _ string) int64 {
			overwrite(t, path, strings.Replace(readText(t, path), `{"pos":10,"cause":"toolu_0`, `{"pos":10,"cause":"toolu_1`, 1))
			return 20
		},
		"log of another length before it": func(t *testing.T, path, _ string) int64 {
			overwrite(t, path, strings.Replace(readText(t, path), `{"pos":3,`, `{"pos":3,"x":1,`, 1))
			return 20
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			path := writeLog(t, 20, 10)
			last := spoil(t, path, path+".checkpoint")
			var logged bytes.Buffer
			s := openLogFile(t, path, &session.FileOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			if c, err := s.Checkpoint(); c.Pos != 0 || c.Data != nil || err != nil {
				t.Errorf("Checkpoint() = %d, %v, want none", c.Pos, err)
			}
			if got := int64(len(readLog(t, s, 0))); got != last || s.Last() != last {
				t.Errorf("log has %d records, last %d, want %d", got, s.Last(), last)
			}
			if !strings.Contains(logged.String(), "checkpoint is not used") {
				t.Errorf("the logger received %q", &logged)
			}
			if err := s.SaveCheckpoint(session.Checkpoint{Pos: last, Data: json.RawMessage(`{}`)}); err != nil {
				t.Errorf("SaveCheckpoint = %v", err)
			}
			if c, err := s.Checkpoint(); c.Pos != last || string(c.Data) != `{}` || err != nil {
				t.Errorf("Checkpoint() = %d %s, %v, want the new one", c.Pos, c.Data, err)
			}
		})
	}
}

// A log that lost its end, and grew again to the same length and the same record, is still another one.
func TestFileStore_CheckpointOfALostEndIsIgnored(t *testing.T) {
	path := writeLog(t, 10, 10)
	text := readText(t, path)
	overwrite(t, path, text[:strings.Index(text, `{"pos":9,`)])
	s := openLogFile(t, path, nil)
	nine := bytes.Replace(longRecord(9).Data, []byte("read_file"), []byte("writefile"), 1)
	if err := s.Append([]session.Record{{Pos: 9, Data: nine}, longRecord(10)}); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	s = openLogFile(t, path, nil)
	if c, err := s.Checkpoint(); c.Pos != 0 || err != nil {
		t.Errorf("Checkpoint() = %d, %v, want none", c.Pos, err)
	}
}

func TestSaveCheckpoint_AcceptsAnyRecord(t *testing.T) {
	const last = 2000
	path := writeLog(t, last, 0)
	s := openLogFile(t, path, &session.FileOptions{Sync: session.SyncNever})
	for _, pos := range []int64{1, 2, 777, 1999, 2000} {
		data := fmt.Sprintf(`{"state":%d}`, pos)
		if err := s.SaveCheckpoint(session.Checkpoint{Pos: pos, Data: json.RawMessage(data)}); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		s = openLogFile(t, path, &session.FileOptions{Sync: session.SyncNever})
		if c, err := s.Checkpoint(); c.Pos != pos || string(c.Data) != data || err != nil || s.Last() != last {
			t.Errorf("Checkpoint() = %d %s, %v, last %d; want %d", c.Pos, c.Data, err, s.Last(), pos)
		}
	}
}

// Opening skips the records that a checkpoint covers. The test damages one of them, and opening does not notice.
func TestOpenFile_ReadsOnlyRecordsAfterTheCheckpoint(t *testing.T) {
	path := writeLog(t, 20, 10)
	overwrite(t, path, strings.Replace(readText(t, path), `{"pos":5,`, `{"pos":6,`, 1))
	openLogFile(t, path, nil)
	path = writeLog(t, 20, 10)
	overwrite(t, path, strings.Replace(readText(t, path), `{"pos":15,`, `{"pos":16,`, 1))
	if _, err := session.OpenFile(path, nil); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("OpenFile = %v, want ErrCorrupt", err)
	}
}

func TestSaveCheckpoint_FailureLeavesTheLastOne(t *testing.T) {
	path := writeLog(t, 20, 10)
	s := openLogFile(t, path, nil)
	if err := os.MkdirAll(filepath.Join(path+".checkpoint.new", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveCheckpoint(session.Checkpoint{Pos: 20, Data: json.RawMessage(`{}`)}); err == nil || !strings.Contains(advice.Text(err), path) {
		t.Errorf("SaveCheckpoint = %v, want an error that names the log", err)
	}
	if c, err := s.Checkpoint(); c.Pos != 10 || err != nil {
		t.Errorf("Checkpoint() = %d, %v, want 10", c.Pos, err)
	}
	if err := s.Append([]session.Record{longRecord(21)}); err != nil {
		t.Errorf("Append afterwards = %v", err)
	}
}
