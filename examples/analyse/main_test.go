// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

const printed = `Two files are left to finish.
Analyzed 2 files
Found 3 total issues
cart.py:2: round to cents
cart.py:3: taxes
shop.py:1: open on Sundays
`

func TestAnalyse_FailedFileLeavesNoFindings(t *testing.T) {
	cli := claudetest.CLI(t)
	cli.WriteFile(t, "cart.py", "total = 0\n# TODO: round to cents\n# TODO: taxes\n")
	cli.WriteFile(t, "shop.py", "# TODO: open on Sundays\n")
	cli.WriteFile(t, "broken.py", "# TODO: fix\n\xff\xfe\n") // fails after it has found something
	call := func(id, file string) script.Turn {
		return script.Reply(script.ToolCall{ID: id, Name: "mcp__drover__analyze", Input: script.Input{"file_path": file}})
	}
	model := claudetest.NewModel(t,
		call("toolu_1", "cart.py"), call("toolu_2", "broken.py"), call("toolu_3", "shop.py"), call("toolu_4", "cart.py"),
		script.Structured(script.Input{"summary": "Two files are left to finish."}),
	).RequireAllUsed()
	log := filepath.Join(t.TempDir(), "analysis.jsonl")
	s := begin(t, log)
	var out strings.Builder
	if err := run(t.Context(), &out, cli.Options(model), s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(printed, out.String()); diff != "" {
		t.Errorf("analyse printed (-want +got):\n%s", diff)
	}
	for id, want := range map[string]string{
		"toolu_1": "Found 2 issues", "toolu_2": "Line 2 of broken.py is no text.",
		"toolu_3": "Found 1 issues", "toolu_4": "Already analyzed: cart.py",
	} {
		if got, _, _ := model.LastRequest().ToolResult(id); got != want {
			t.Errorf("the model read %q of %s, want %q", got, id, want)
		}
	}
	before := known(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := begin(t, log)
	defer func() { _ = again.Close() }() // nothing was written
	if diff := cmp.Diff(before, known(again)); diff != "" {
		t.Errorf("the session that was opened again knows something else (-before +now):\n%s", diff)
	}
	if got := before.Calls["toolu_2"]; got != event.ToolError || len(before.Calls) != 5 {
		t.Errorf("the session knows the calls %v, want 4 and the answer, the second one failed", before.Calls)
	}
}

// begin opens the session as the program does, with a clock and ids that are always the same.
func begin(t *testing.T, log string) *session.Session {
	t.Helper()
	s, err := open(log, &session.Options{
		ID:    "analysis",
		Now:   func() time.Time { return time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC) },
		NewID: func() string { return "an-id" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// knowledge is what a session has about the analysis.
type knowledge struct {
	State  AnalysisState
	Issues []Issue
	Calls  map[string]event.ToolStatus
}

func known(s *session.Session) knowledge {
	k := knowledge{Calls: map[string]event.ToolStatus{}}
	k.State, _ = session.Query[AnalysisState](s).Latest()
	for issue := range session.Query[Issue](s).All() {
		k.Issues = append(k.Issues, issue)
	}
	for call := range session.Query[session.ToolInvoked](s).All() {
		k.Calls[string(call.CallID)] = call.Status
	}
	return k
}
