// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

var update = flag.Bool("update", false, "rewrite what the files in testdata expect")

// goldenTime is when the first line of every test comes; each further line comes a second later.
var goldenTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// newNormaliser makes one whose clock and ids are the same in every run.
func newNormaliser() (n *normaliser, tick func()) {
	now, ids := goldenTime, 0
	n = &normaliser{
		now:   func() time.Time { return now },
		newID: func() string { ids++; return "made_" + string(rune('0'+ids)) },
	}
	return n, func() { now = now.Add(time.Second) }
}

func decode(t testing.TB, line string) claude.Message {
	t.Helper()
	m, err := claude.DecodeMessage([]byte(line))
	if err != nil {
		t.Fatalf("line %s: %v", line, err)
	}
	return m
}

// play gives lines to a normaliser, and the end of the turn that their results make.
func play(t testing.TB, n *normaliser, tick func(), lines ...string) []event.Event {
	t.Helper()
	var all []event.Event
	end := new(claude.TurnEnd)
	for _, line := range lines {
		m := decode(t, line)
		all = append(all, n.events(m)...)
		if r, ok := m.(*claude.ResultMessage); ok && r.IsAnswer() {
			end.Answer = r
		}
		tick()
	}
	return append(all, n.done(end)...)
}

// TestCLAUDE003_RecordedLines shows what becomes of lines that the real CLI wrote; see TestRecord_Scenarios.
func TestCLAUDE003_RecordedLines(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded lines: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { checkGolden(t, file) })
	}
}

func checkGolden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(archive.Comment)) == "" {
		t.Errorf("%s does not say why it exists", file)
	}
	n, tick := newNormaliser()
	events := play(t, n, tick, linesOf(archive.Files[0].Data)...)
	checkStream(t, events)
	got := strings.Join(marshalled(t, events), "\n") + "\n"
	if *update {
		archive.Files = append(archive.Files[:1], txtar.File{Name: "events", Data: []byte(got)})
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(archive.Files) < 2 {
		t.Fatalf("%s has no events; run with -update", file)
	}
	if diff := cmp.Diff(linesOf(archive.Files[1].Data), linesOf([]byte(got))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func linesOf(data []byte) []string {
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func marshalled(t testing.TB, events []event.Event) []string {
	t.Helper()
	out := make([]string, len(events))
	for i, e := range events {
		line, err := e.MarshalJSON()
		if err != nil {
			t.Fatalf("event %d, %+v: %v", i, e, err)
		}
		out[i] = string(line)
	}
	return out
}

// checkStream checks what holds for every stream.
func checkStream(t testing.TB, events []event.Event) {
	t.Helper()
	calls, results, ends, inits := map[string]bool{}, map[string]bool{}, map[string]bool{}, 0
	once := func(seen map[string]bool, what, id string) {
		if seen[id] {
			t.Errorf("%s %q came twice", what, id)
		}
		seen[id] = true
	}
	for i, e := range events {
		if e.Payload == nil || e.Kind != e.Payload.EventKind() || e.Agent != Agent {
			t.Errorf("event %d is %+v", i, e)
			continue
		}
		switch p := e.Payload.(type) {
		case event.Init:
			inits++
		case event.ToolCall:
			once(calls, "tool_use", string(p.ID))
			if !plainjson.IsObject(p.Input) || p.Name == "" || p.ID == "" {
				t.Errorf("tool_use %+v", p)
			}
		case event.ToolResult:
			once(results, "tool_result", string(p.ID))
			if (p.Status == event.ToolSuccess) != (p.Failure == nil) || p.Duration < 0 {
				t.Errorf("tool_result %+v", p)
			}
		case Task:
			if p.State == TaskEnded {
				once(ends, "end of task", p.ID)
			}
		case event.Done:
			if i != len(events)-1 {
				t.Errorf("event %d of %d is the done event", i, len(events))
			}
			if err := p.Usage.Validate(); err != nil {
				t.Error(err)
			}
			if p.Usage.ToolUses != len(calls) {
				t.Errorf("the done event counts %d tool uses, want %d", p.Usage.ToolUses, len(calls))
			}
		}
	}
	if inits > 1 {
		t.Errorf("%d init events, want at most one", inits)
	}
}

// recorded are the lines of a file in testdata.
func recorded(t testing.TB, name string) []string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/recorded/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	return linesOf(archive.Files[0].Data)
}
