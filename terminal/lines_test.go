// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
)

// TestLines_OfRecordedRuns shows recorded events as lines of several widths. Each file says why it is
// there, has the events one per line, and a section for each width.
func TestLines_OfRecordedRuns(t *testing.T) {
	files, err := filepath.Glob("testdata/lines/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings (%v)", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			events := readEvents(t, archive.Files[0].Data)
			for i, f := range archive.Files[1:] {
				columns, err := strconv.Atoi(f.Name)
				if err != nil {
					t.Fatalf("section %s: its name must be a width", f.Name)
				}
				got := shown(events, Options{Dir: "/work", MaxUSD: 0.5, Catalogue: catalogue.Tools()}, layout{width: columns})
				checkWidth(t, got, columns)
				if *update {
					archive.Files[1+i].Data = []byte(got)
				} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
					t.Errorf("%s columns (-want +got), -update rewrites it:\n%s", f.Name, diff)
				}
			}
			if *update {
				writeFile(t, path, txtar.Format(archive))
			}
		})
	}
}

func readEvents(t *testing.T, data []byte) []event.Event {
	t.Helper()
	var events []event.Event
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// shown are the lines of events whose times count from the start.
func shown(events []event.Event, opts Options, l layout) string {
	opts.started = time.UnixMilli(0)
	var out bytes.Buffer
	p := newPlain(&out, opts, l)
	for _, e := range events {
		p.Show(e)
	}
	p.Close()
	return out.String()
}

// checkWidth fails if a line before the answer is too wide or ends in blanks.
func checkWidth(t *testing.T, text string, most int) {
	t.Helper()
	lines, _, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		if columns(line) > most || strings.HasSuffix(line, " ") || safe(line) != strings.TrimSpace(line) {
			t.Errorf("%q has %d columns of %d, or ends in blanks, or could act on the terminal", line, columns(line), most)
		}
	}
}

// Names of packages help programmers, not people.
func TestLines_HaveNoNamesOfPackages(t *testing.T) {
	for name, x := range map[string]struct {
		payload event.Payload
		want    string
	}{
		"error":       {event.Error{Code: "CELL_LIMIT", Message: "isolation: too many files\n  next: write fewer"}, "CELL_LIMIT: too many files\n  next: write fewer"},
		"trouble":     {event.Error{Recoverable: true, Message: "agent: gate: no"}, "no"},
		"limit":       {gateway.Limit{Limit: "stopped", Reason: "isolation: too many files"}, "too many files"},
		"breach":      {isolation.Breach{Message: "isolation: too many files"}, "too many files"},
		"done":        {event.Done{Status: event.DoneError, Result: "isolation: too many files"}, "too many files"},
		"interrupted": {event.Done{Status: event.DoneInterrupted, Reason: "isolation: too many files"}, "too many files"},
	} {
		r := newLines(Options{}).rows(event.New(x.payload))[0]
		got := r.subject
		if r.what == "done" {
			got = r.because
		}
		if got != x.want {
			t.Errorf("%s: the line has %q, want %q", name, got, x.want)
		}
	}
	l := newLines(Options{})
	l.rows(event.New(event.Error{Message: "isolation: too many files"}))
	if r := l.rows(event.New(event.Done{Status: event.DoneError, Result: "isolation: too many files"}))[0]; r.because != "" {
		t.Errorf("the done line repeats the error: %q", r.because)
	}
}

// A call that takes long is shown with its subject and why it was denied, however many calls were made meanwhile.
func TestLines_ALongCallIsShown(t *testing.T) {
	l := newLines(Options{})
	begin := func(id string) {
		p := event.ToolCall{ID: event.CallID(id), Name: "Bash", Input: []byte(`{"command":"make all"}`)}
		l.begin(event.New(p), p)
	}
	end := func(id string) []row {
		p := event.ToolResult{ID: event.CallID(id), Name: "Bash", Status: event.ToolSuccess}
		return l.end(event.New(p), p)
	}
	begin("long")
	for i := range shownCalls {
		begin(fmt.Sprint(i))
		end(fmt.Sprint(i))
	}
	rows := end("long")
	if len(rows) == 0 || rows[len(rows)-1].subject == "" {
		t.Errorf("the row of the call is %+v, want its command", rows)
	}
}

// The view knows no agent: what one adds is known by its kind and its fields, as a value of the adapter and as JSON.
func TestNotice_OfAnyAgent(t *testing.T) {
	used := 0.5
	for _, payload := range []event.Payload{
		claudecode.Task{ID: "t", State: claudecode.TaskEnded, Description: "tests", Status: "failed", Error: "no", DurationMS: 1200},
		claudecode.Compaction{TokensBefore: 1000, TokensAfter: new(20)},
		claudecode.RateLimit{Type: "five_hour", Status: "rejected", Utilization: &used},
	} {
		text, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(string(payload.EventKind()), ":")
		want := map[string]row{
			"task":       {what: "task", subject: "tests", mark: "failed", because: "no", took: "1.2 s", tone: toneBad},
			"compaction": {what: "compact", subject: "the conversation was summarised", figures: "1,000 to 20 tok"},
			"rate_limit": {what: "limit", subject: "five hour: rejected", figures: "50 % used", tone: toneBad},
		}[name]
		for _, p := range []event.Payload{payload, event.Extension{Kind: event.Kind("other:" + name), Data: text}} {
			rows := newLines(Options{}).notice(row{}, p)
			if len(rows) != 1 || !cmp.Equal(rows[0], want, cmp.AllowUnexported(row{})) {
				t.Errorf("%T: %+v, want %+v", p, rows, want)
			}
		}
	}
}
