// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/gateway"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { claudetest.Main(m) }

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPlain_PipeGetsLinesAndNoQuestion(t *testing.T) {
	t.Setenv("TERM", "xterm")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d, approver := New(in, out, Options{})
	if approver != nil {
		t.Errorf("the approver is a %T, want none", approver)
	}
	d.Show(event.New(event.ToolCall{ID: "1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}))
	d.Show(event.New(event.ToolResult{ID: "1", Name: "Bash", Status: event.ToolError}))
	d.Close()
	d.Show(event.New(event.Text{Content: "after the end"}))
	d.Close()
	_ = out.Close()
	text, _ := io.ReadAll(in)
	got := regexp.MustCompile(`(?m)^  \d+\.\d  `).ReplaceAllString(string(text), "  SS.S  ")
	if !strings.HasPrefix(got, "  SS.S  Bash         ls  ") || strings.ContainsAny(got, "\x1b\r") || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line without colours", got)
	}
}

func TestColours_MarkTimeDenialAndSuccess(t *testing.T) {
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

func TestStopping_NamesStoppedCalls(t *testing.T) {
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
			p := newPlain(&out, Options{Dir: "/work", Catalogue: catalogue.Tools()}, layout{width: 80})
			for _, e := range tt.events {
				p.Show(event.New(e))
			}
			p.Stopping()
			if got := out.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestStopping_PrintsNothingAfterTheSummary(t *testing.T) {
	var out bytes.Buffer
	p := newPlain(&out, Options{}, layout{width: 80})
	p.Show(event.New(event.Done{Status: event.DoneError, Result: "it broke"}))
	p.Stopping()
	if got := out.String(); strings.Contains(got, "stopping") || !strings.Contains(got, "it broke") {
		t.Errorf("got %q, want the summary alone", got)
	}
	var errs bytes.Buffer
	j := NewJSON(io.Discard, &errs, Options{}, func(err error) { t.Error(err) })
	j.Show(event.New(event.Done{Status: event.DoneSuccess}))
	j.Stopping()
	if errs.Len() > 0 {
		t.Errorf("beside JSON: got %q, want nothing", errs.String())
	}
}

func TestAnswer_Forms(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts Options
		done event.Done
		want string
	}{
		{"text", Options{Quiet: true}, event.Done{Result: "a\n\tb\n\n"}, "a\n\tb\n"},
		{"apart from the lines", Options{}, event.Done{Result: "a"}, "\na\n"},
		{"JSON", Options{Quiet: true}, event.Done{Result: "x", Output: json.RawMessage(`{"a":[1]}`)}, "{\n  \"a\": [\n    1\n  ]\n}\n"},
		{"none", Options{}, event.Done{}, ""},
		{"none of a run that failed", Options{}, event.Done{Status: event.DoneError, Result: "broken"}, ""},
		{"in a form of its own", Options{Quiet: true, Answer: func(w io.Writer, d event.Done) error {
			_, err := fmt.Fprintln(w, "own", d.Result)
			return err
		}}, event.Done{Result: "a"}, "own a\n"},
		{"whose form fails", Options{Quiet: true, Answer: func(io.Writer, event.Done) error { return errors.New("no") }}, event.Done{Result: "a"}, "a\n"},
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

func TestFigures_Format(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{size(999), "999 B"},
		{size(1100), "1.1 kB"},
		{size(2500000), "2.5 MB"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestStatus_FitsIntoTheRoom(t *testing.T) {
	l := newLines(Options{MaxUSD: 0.5, Dir: "/work"})
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
	check(40, "  model         …and stormy night.  12 s") // it may be the answer
	l.rows(event.New(toolCall("1", "Bash", `{"command":"npm test"}`)))
	check(40, "  Bash          npm test            12 s")
	l.rows(event.New(event.ToolProgress{ID: "1", Progress: 3, Total: 10, Message: "suites"}))
	check(60, "  Bash          npm test (3 of 10 suites)               12 s")
	l.rows(event.New(claudecode.Tokens{Input: 1200, Output: 34}))
	check(60, "  Bash          npm test (3 of 10 suites)    12 s  1,234 tok")
	l.rows(event.New(gateway.ModelCall{CostUSD: 0.02}))
	l.rows(event.New(gateway.ModelCall{Unpriced: true}))
	l.rows(event.New(event.Extension{Kind: gateway.KindModelCall, Data: []byte(`{"costUsd":0.001}`)}))
	check(80, "  Bash          npm test (3 of 10 suites)       12 s  1,234 tok  $0.021 of $0.50")
	check(20, "  Bash  12 s  1,234…")
	check(3, "  …")
	l.rows(event.New(toolResult("1", "Bash", "")))
	check(60, "  model                     12 s  1,234 tok  $0.021 of $0.50")
}

func TestView_ClosedNeitherWritesNorAsks(t *testing.T) {
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
	v := newLive(in, out, Options{started: time.Now()}, layout{width: 80})
	v.Show(event.New(event.Thinking{Summary: "before"}))
	v.Close()
	v.Close()
	written, _ := os.ReadFile(out.Name())
	if !strings.HasSuffix(string(written), "\r\x1b[J") || !strings.Contains(string(written), "thinking     before\r\n") {
		t.Errorf("wrote %q, want a line, and the status line cleared in the end", written)
	}
	v.Show(event.New(event.Text{Content: "after"}))
	v.Stopping()
	v.renew()
	if _, err := v.Approve(t.Context(), gate.Question{}); !errors.Is(err, errClosed) {
		t.Errorf("got %v, want %v", err, errClosed)
	}
	if again, _ := os.ReadFile(out.Name()); !bytes.Equal(written, again) {
		t.Errorf("wrote %q after the end", again[len(written):])
	}
}

func TestLive_WritesOnlyChanges(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	v := &live{keyboard: new(keyboard), screen: out, layout: layout{width: 80}, lines: newLines(Options{started: time.Now().Add(time.Hour)})}
	for range 100 {
		v.drawLocked(nil)
	}
	if written, _ := os.ReadFile(out.Name()); strings.Count(string(written), "model") != 1 {
		t.Errorf("wrote %q, want one status line", written)
	}
}

func TestDocs_TerminalNamesEveryOption(t *testing.T) {
	page, err := os.ReadFile("../docs/terminal.md")
	if err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[Options]().Fields() {
		if field.IsExported() && !bytes.Contains(page, []byte("| `"+field.Name+"` |")) {
			t.Errorf("the page does not name %s", field.Name)
		}
	}
}

func TestWidth_FileHasNone(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if got := Width(file); got != 0 {
		t.Errorf("a file has %d columns, want 0", got)
	}
}
