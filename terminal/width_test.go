// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	_ "github.com/drover-agents/drover/internal/testkit"
)

func TestClip_Cases(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		most       int
		start, end string // with clip, with clipStart
	}{
		{"fits", "abc", 3, "abc", "abc"},
		{"too long", "abcd", 3, "ab…", "…cd"},
		{"no room", "abc", 0, "", ""},
		{"negative room", "abc", -1, "", ""},
		{"one column", "abc", 1, "…", "…"},
		{"wide characters are not halved", "漢字漢字", 6, "漢字…", "…漢字"},
		{"nor made to fit by half", "漢字漢字", 5, "漢字…", "…漢字"},
		{"marks stay with their letter", "e\u0301e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301…", "…e\u0301e\u0301"},
		{"marks take no room", "e\u0301e\u0301", 2, "e\u0301e\u0301", "e\u0301e\u0301"},
		{"escapes count as what they are shown as", "\x1b[2J", 5, `\x1b…`, `…b[2J`},
		{"emoji style", "⚠\ufe0f!", 2, "⚠!", "⚠!"},
		{"blanks around", "  a \n", 3, "a", "a"},
		{"line ends are shown", "a\nb", 9, `a\nb`, `a\nb`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Clip(tt.text, tt.most); got != tt.start {
				t.Errorf("clip: got %q, want %q", got, tt.start)
			}
			if got := clipStart(tt.text, tt.most); got != tt.end {
				t.Errorf("clipStart: got %q, want %q", got, tt.end)
			}
		})
	}
}

// Marks take no column, and could go on for ever.
func TestClip_CutsEndlessCombiningMarks(t *testing.T) {
	flood := "e" + strings.Repeat("\u0301", 1000)
	for name, got := range map[string]string{"clip": Clip(flood, 5), "clipStart": clipStart(flood, 5), "cut": cut(flood, 5)} {
		if n := utf8.RuneCountInString(got); n > maxRunes(5)+1 {
			t.Errorf("%s: %d characters, want at most %d", name, n, maxRunes(5)+1)
		}
	}
}

func TestWrap_Cases(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		most, rows int
		want       string
		left       int
	}{
		{"words", "one two three", 7, 9, "one two|three", 0},
		{"a word that is too long", "abcdefghij", 4, 9, "abcd|efgh|ij", 0},
		{"blank lines go", "a\n\n\nb\r\n", 9, 9, "a|b", 0},
		{"too many rows", "one two three\nfour\nfive", 7, 2, "one two|three", 2},
		{"the last row is cut", "one two three four", 7, 2, "one two|three …", 0},
		{"tabs", "a\tb", 9, 9, "a    b", 0},
		{"wide", "漢字漢字", 5, 9, "漢字|漢字", 0},
		{"nothing", " \n", 9, 9, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows, left := wrap(tt.text, tt.most, tt.rows)
			if got := strings.Join(rows, "|"); got != tt.want || left != tt.left {
				t.Errorf("got %q and %d left, want %q and %d", got, left, tt.want, tt.left)
			}
		})
	}
}

// checkSafe fails if a text is wider than allowed, or could act on a terminal.
func checkSafe(t interface {
	Helper()
	Fatalf(string, ...any)
}, what, text string, most int,
) {
	t.Helper()
	if n := columns(text); n > max(0, most) || !utf8.ValidString(text) {
		t.Fatalf("%s: %q has %d columns of %d, or is broken", what, text, n, most)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			t.Fatalf("%s: %q has %U", what, text, r)
		}
	}
}

func FuzzClip(f *testing.F) {
	for _, s := range []string{"", "abc", "漢字e\u0301", "\x1b[2J\xff\n", strings.Repeat("\u0301", 100), "a b\u202e c"} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		most %= 300
		checkSafe(t, "clip", Clip(s, most), most)
		checkSafe(t, "clipStart", clipStart(s, most), most)
		rows, _ := wrap(s, most, 5)
		if len(rows) > 5 {
			t.Fatalf("wrap: %d rows", len(rows))
		}
		for _, row := range rows {
			checkSafe(t, "wrap", row, max(2, most))
		}
	})
}

// anyText is what a model might write.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z ]{0,80}`), rapid.StringMatching("[漢字e\u0301\x1b\\[\n\t]{0,60}"))
}

func TestLines_NoRowIsWiderThanTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := row{
			deep: rapid.IntRange(0, 4).Draw(t, "deep"), what: anyText().Draw(t, "what"), subject: anyText().Draw(t, "subject"),
			rows: rapid.IntRange(0, 5).Draw(t, "rows"), mark: rapid.SampledFrom([]string{"", "ours", "denied"}).Draw(t, "mark"),
			figures: anyText().Draw(t, "figures"), took: rapid.SampledFrom([]string{"", "12 ms"}).Draw(t, "took"), because: anyText().Draw(t, "because"),
			change: diffLines(anyText().Draw(t, "change")),
		}
		l := layout{width: rapid.IntRange(1, 220).Draw(t, "width")}
		for _, line := range l.lines(r) {
			checkSafe(t, "line", line, l.width)
		}
	})
}

func TestStatus_NeverWiderThanItsRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLines(Options{MaxUSD: 1})
		room := rapid.IntRange(0, 220).Draw(t, "room")
		l.wrote(anyText().Draw(t, "writing"))
		checkSafe(t, "writing", l.status(room, false, 1e9), room)
		input := anyText().Draw(t, "input")
		l.begin(newCall(anyText().Draw(t, "name"), input))
		checkSafe(t, "call", l.status(room, true, 1e15), room)
		_, call := newCall(anyText().Draw(t, "tool"), input)
		q := question{
			Question: gate.Question{Call: call, Reason: anyText().Draw(t, "reason")}, opts: &Options{Dir: "/work"}, open: rapid.Bool().Draw(t, "open"),
			change: diffLines(anyText().Draw(t, "change")),
		}
		checkSafe(t, "question", q.line(room), room)
		for _, line := range q.explained(layout{width: room + 2}) {
			checkSafe(t, "explanation", line, room+2)
		}
		q.reason = new(anyText().Draw(t, "typed"))
		checkSafe(t, "reason", q.line(room), room)
	})
}

// newCall is a call with an input that is a JSON object, or not.
func newCall(name, text string) (event.Event, event.ToolCall) {
	input, _ := json.Marshal(map[string]string{"command": text})
	if len(text)%2 == 1 {
		input = []byte(text)
	}
	call := event.ToolCall{ID: "1", Name: name, Input: input}
	return event.New(call), call
}
