// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/session"
)

func TestOpenFile_DamageInTheMiddleIsAnError(t *testing.T) {
	cases := []struct {
		name, rest string
		says       string
	}{
		{"broken JSON", "{\"pos\":4,\n{\"pos\":5}\n", "not JSON"},
		{"empty line", "\n{\"pos\":4}\n", "does not begin with"},
		{"zeros", "\x00\x00\n{\"pos\":5}\n", "does not begin with"},
		{"good record far behind", "abc\n\ndef\nghi\n{\"pos\":4}\nabc", "does not begin with"},
		{"gap", "{\"pos\":5}\n", "number 5 instead of 4"},
		{"repetition", "{\"pos\":3}\n", "number 3 instead of 4"},
		{"another header", headText + "{\"pos\":1}\n", "does not begin with"},
		{"line that is too long", strings.Repeat("x", 65<<20) + "\n{\"pos\":4}\n", "longer than"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := headText + threeGood + c.rest
			path := fileWith(t, text)
			for _, opts := range []*session.FileOptions{nil, {ReadOnly: true}} {
				_, err := session.OpenFile(path, opts)
				var corrupt *session.CorruptError
				if !errors.Is(err, session.ErrCorrupt) || !errors.As(err, &corrupt) {
					t.Fatalf("OpenFile = %v, want a CorruptError", err)
				}
				at := session.CorruptError{Path: path, Line: 5, Offset: int64(len(headText + threeGood)), Good: 3, Reason: corrupt.Reason}
				if *corrupt != at || !strings.Contains(advice.Text(err), c.says) || !strings.Contains(advice.Text(err), "Salvage(") {
					t.Errorf("error is %+v: %v", corrupt, err)
				}
			}
			wantAlone(t, path, text)
			wantSalvaged(t, path, 3, headText+threeGood, c.rest)
		})
	}
}

// wantSalvaged salvages a log and checks what is where.
func wantSalvaged(t *testing.T, path string, records int64, kept, moved string) {
	t.Helper()
	n, movedTo, err := session.Salvage(path)
	if err != nil || n != records {
		t.Fatalf("Salvage = %d, %v, want %d", n, err, records)
	}
	if readText(t, path) != kept || readText(t, movedTo) != moved {
		t.Errorf("the log has %d bytes, %s has %d", len(readText(t, path)), movedTo, len(readText(t, movedTo)))
	}
	s := openLogFile(t, path, nil)
	if got := readLog(t, s, 0); int64(len(got)) != records {
		t.Errorf("salvaged log has %d records, want %d", len(got), records)
	}
}

func TestOpenFile_DamagedHeaderIsAnError(t *testing.T) {
	for name, head := range map[string]string{
		"broken":     `{"drover":"session-log","version":1,"id":` + "\n",
		"no JSON":    `{"drover":"session-log"` + "\x00\x00\n",
		"no version": `{"drover":"session-log","id":"a"}` + "\n", "negative version": `{"drover":"session-log","version":-1}` + "\n",
		"wrong type": `{"drover":"session-log","version":1,"id":5}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := fileWith(t, head+threeGood)
			_, err := session.OpenFile(path, nil)
			var corrupt *session.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Line != 1 || corrupt.Good != 0 {
				t.Errorf("OpenFile = %v, want damage in line 1", err)
			}
			wantAlone(t, path, head+threeGood)
			wantSalvaged(t, path, 0, "", head+threeGood)
		})
	}
}

func TestSalvage_LeavesAGoodLogUnchanged(t *testing.T) {
	path := fileWith(t, headText+threeGood)
	if kept, movedTo, err := session.Salvage(path); kept != 3 || movedTo != "" || err != nil {
		t.Errorf("Salvage = %d, %q, %v", kept, movedTo, err)
	}
	wantAlone(t, path, headText+threeGood)
	if _, _, err := session.Salvage(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Salvage of no file = %v, want ErrNotExist", err)
	}
}

func TestSalvage_OverwritesNothing(t *testing.T) {
	path := fileWith(t, "")
	for _, rest := range []string{"a\n{\"pos\":4}\n", "b\n{\"pos\":4}\n", "c"} {
		if err := os.WriteFile(path, []byte(headText+threeGood+rest), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, movedTo, err := session.Salvage(path); err != nil || readText(t, movedTo) != rest {
			t.Errorf("Salvage = %q, %v", movedTo, err)
		}
	}
	if got := readText(t, path+".damaged") + readText(t, path+".damaged.2") + readText(t, path+".damaged.3"); got != "a\n{\"pos\":4}\nb\n{\"pos\":4}\nc" {
		t.Errorf("moved aside: %q", got)
	}
}

// What a checkpoint spares the opening of a log, reading it still finds.
func TestRecords_FindsDamageBeforeACheckpoint(t *testing.T) {
	path := writeLog(t, 1000, 900)
	text := []byte(readText(t, path))
	at := strings.Index(string(text), `{"pos":500,`)
	text[at+20] = '\n'
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openLogFile(t, path, nil)
	if got := len(readLog(t, s, 900)); got != 100 {
		t.Errorf("%d records after the checkpoint, want 100", got)
	}
	n := int64(0)
	var last error
	for r, err := range s.Records(0) {
		if last = err; err == nil {
			n = r.Pos
		}
	}
	var corrupt *session.CorruptError
	if !errors.As(last, &corrupt) || n != 499 || corrupt.Good != 499 || corrupt.Line != 501 || corrupt.Offset != int64(at) {
		t.Errorf("reading ended after %d with %v", n, last)
	}
	_ = s.Close()
	if kept, _, err := session.Salvage(path); kept != 499 || err != nil {
		t.Errorf("Salvage = %d, %v, want 499", kept, err)
	}
	s = openLogFile(t, path, nil)
	if c, err := s.Checkpoint(); c.Pos != 0 || err != nil || s.Last() != 499 {
		t.Errorf("salvaged log: last %d, checkpoint %d, %v", s.Last(), c.Pos, err)
	}
}
