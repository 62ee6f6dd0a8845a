// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

func TestAPipeGetsPlainLinesAndNobodyIsAsked(t *testing.T) {
	t.Setenv("TERM", "xterm")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d, approver := newDisplay(in, out, displayOptions{})
	if approver != nil {
		t.Errorf("the approver is a %T, want none", approver)
	}
	d.show(event.New(event.ToolCall{ID: "1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}))
	d.show(event.New(event.ToolResult{ID: "1", Name: "Bash", Status: event.ToolError}))
	d.close()
	d.show(event.New(event.Text{Content: "after the end"}))
	d.close()
	_ = out.Close()
	text, _ := io.ReadAll(in)
	if got := mask(string(text)); !strings.HasPrefix(got, "  SS.S  Bash         ls  ") || strings.ContainsAny(got, "\x1b\r") || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line without colours", got)
	}
}

func TestColoursAreFewAndMarkWhatMatters(t *testing.T) {
	l := layout{width: 80, colour: true}
	for _, tt := range []struct {
		name string
		row  row
		want string
	}{
		{"nothing special", row{what: "Read", subject: "a"}, "\x1b[2m  00.0  \x1b[0mRead         a"},
		{"denied", row{what: "Bash", subject: "a", mark: "denied", tone: toneBad}, "\x1b[2m  00.0  \x1b[0mBash         a" + strings.Repeat(" ", 31) + "\x1b[31mdenied\x1b[0m"},
		{"success", row{what: "done", subject: "success", tone: toneGood}, "\x1b[2m  00.0  \x1b[0mdone         \x1b[32msuccess\x1b[0m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tt.want}, l.lines(tt.row)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoppingSaysWhatIsStopped(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []event.Payload
		want   string
	}{
		{"the model", nil, "stopping the model ...\n"},
		{"two calls", []event.Payload{toolCall("1", "Bash", `{"command":"npm test"}`), toolCall("2", "Read", `{"file_path":"/work/a"}`)}, "stopping Bash: npm test, Read: a ...\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			p := newPlain(&out, displayOptions{Dir: "/work"}, layout{width: 80})
			for _, e := range tt.events {
				p.show(event.New(e))
			}
			p.stopping()
			if got := out.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNothingIsStoppedAfterTheSummary(t *testing.T) {
	var out bytes.Buffer
	p := newPlain(&out, displayOptions{}, layout{width: 80})
	p.show(event.New(event.Done{Status: event.DoneError, Result: "it broke"}))
	p.stopping()
	if got := out.String(); strings.Contains(got, "stopping") || !strings.Contains(got, "it broke") {
		t.Errorf("got %q, want the summary alone", got)
	}
	var errs bytes.Buffer
	j := newJSONDisplay(io.Discard, &errs, func(err error) { t.Error(err) })
	j.show(event.New(event.Done{Status: event.DoneSuccess}))
	j.stopping()
	if errs.Len() > 0 {
		t.Errorf("beside JSON: got %q, want nothing", errs.String())
	}
}

func TestTheAnswer(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts displayOptions
		done event.Done
		want string
	}{
		{"text", displayOptions{Quiet: true}, event.Done{Result: "a\n\tb\n\n"}, "a\n\tb\n"},
		{"apart from the lines", displayOptions{}, event.Done{Result: "a"}, "\na\n"},
		{"JSON", displayOptions{Quiet: true}, event.Done{Result: "x", Output: json.RawMessage(`{"a":[1]}`)}, "{\n  \"a\": [\n    1\n  ]\n}\n"},
		{"none", displayOptions{}, event.Done{}, ""},
		{"none of a run that failed", displayOptions{}, event.Done{Status: event.DoneError, Result: "broken"}, ""},
		{"in a form of its own", displayOptions{Quiet: true, Answer: func(w io.Writer, d event.Done) error {
			_, err := fmt.Fprintln(w, "own", d.Result)
			return err
		}}, event.Done{Result: "a"}, "own a\n"},
		{"whose form fails", displayOptions{Quiet: true, Answer: func(io.Writer, event.Done) error { return errors.New("no") }}, event.Done{Result: "a"}, "a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.done.Status == "" {
				tt.done.Status = event.DoneSuccess
			}
			var out bytes.Buffer
			newLines(tt.opts).writeAnswer(&out, tt.done)
			if got := out.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{span(0), "0 ms"},
		{span(200 * time.Microsecond), "0.2 ms"},
		{span(61 * time.Millisecond), "61 ms"},
		{span(1400 * time.Millisecond), "1.4 s"},
		{span(time.Hour + 62*time.Second), "1:01:02"},
		{clock(59 * time.Second), "59 s"},
		{clock(65 * time.Second), "1:05"},
		{clock(-time.Second), "0 s"},
		{size(999), "999 B"},
		{size(1100), "1.1 kB"},
		{size(2500000), "2.5 MB"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestTheStatusLine(t *testing.T) {
	l := newLines(displayOptions{MaxUSD: 0.5, Dir: "/work"})
	check := func(room int, want string) {
		t.Helper()
		if got := l.status(room, false, 12*time.Second); got != want {
			t.Errorf("%d columns:\n got %q\nwant %q", room, got, want)
		}
	}
	check(40, "  model                             12 s")
	l.rows(event.New(event.TextDelta{Delta: "It was a dark and\nstormy "}))
	l.rows(event.New(event.TextDelta{Delta: "night."}))
	check(40, "  model         …and stormy night.  12 s")
	l.rows(event.New(event.Text{Content: "It was a dark and stormy night."}))
	check(40, "  model                             12 s")
	l.rows(event.New(toolCall("1", "Bash", `{"command":"npm test"}`)))
	check(40, "  Bash          npm test            12 s")
	l.rows(event.New(event.ToolProgress{ID: "1", Progress: 3, Total: 10, Message: "suites"}))
	check(60, "  Bash          npm test (3 of 10 suites)               12 s")
	l.rows(event.New(claudecode.Tokens{Input: 1200, Output: 34}))
	check(60, "  Bash          npm test (3 of 10 suites)    12 s  1,234 tok")
	check(20, "  Bash  12 s  1,234…")
	check(3, "  …")
	l.rows(event.New(toolResult("1", "Bash", "")))
	check(40, "  model  12 s  1,234 tok")
}

func TestAClosedViewNeitherWritesNorAsksAndLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	in, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(in.Close(), other.Close(), out.Close()) }()
	v := newView(in, out, displayOptions{Started: time.Now()}, layout{width: 80})
	v.show(event.New(event.Text{Content: "before"}))
	v.close()
	v.close()
	written, _ := os.ReadFile(out.Name())
	if !strings.HasSuffix(string(written), "\r\x1b[J") || !strings.Contains(string(written), "model        before\r\n") {
		t.Errorf("wrote %q, want a line, and the status line cleared in the end", written)
	}
	v.show(event.New(event.Text{Content: "after"}))
	v.stopping()
	v.renew()
	if _, err := v.Approve(t.Context(), gate.Question{}); !errors.Is(err, errViewClosed) {
		t.Errorf("got %v, want %v", err, errViewClosed)
	}
	if again, _ := os.ReadFile(out.Name()); !bytes.Equal(written, again) {
		t.Errorf("wrote %q after the end", again[len(written):])
	}
}

func TestTheScreenIsWrittenOnlyWhenSomethingChanges(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	v := &view{keyboard: new(keyboard), screen: out, layout: layout{width: 80}, lines: newLines(displayOptions{Started: time.Now().Add(time.Hour)})}
	for range 100 {
		v.drawLocked(nil)
	}
	if written, _ := os.ReadFile(out.Name()); strings.Count(string(written), "model") != 1 {
		t.Errorf("wrote %q, want one status line", written)
	}
}
