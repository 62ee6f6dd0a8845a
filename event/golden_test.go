// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite what the files in testdata expect")

var goldenTime = time.Date(2026, 3, 4, 5, 6, 7, 890_123_456, time.UTC)

// goldenEvents has, for each file of testdata/events, the events whose lines it holds.
var goldenEvents = map[string][]Event{
	"init": {
		inRun(1, 0, Init{Model: "claude-sonnet-4-5", Dir: "/work", Tools: []string{"Bash", "Read"}, Capabilities: map[string]json.RawMessage{"claudeCodeVersion": json.RawMessage(`"2.1.325"`)}}),
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Init{}},
	},
	"text": {
		inRun(2, 1, TextDelta{"The tests "}),
		inRun(3, 1, TextDelta{"pass."}),
		inRun(4, 1, Text{"The tests pass."}),
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Text{}},
	},
	"thinking": {
		inRun(5, 1, Thinking{"The failing test compares a < b."}),
	},
	"error": {
		inRun(6, 2, Error{Code: "overloaded", Message: "the model is overloaded; trying again", Recoverable: true}),
		inRun(7, 2, Error{Message: "the CLI ended", Cause: errors.New("exit status 1")}),
	},
	"done": {
		inRun(8, 3, Done{
			Status: DoneSuccess, Result: "The tests pass.", Output: json.RawMessage(`{"passed":12}`), ResumeToken: "s1", Duration: 61*time.Second + 499*time.Microsecond,
			Usage: Usage{
				ToolUses: 2, Cost: &Cost{0.0421, CostAgentEstimate},
				Tokens: &Tokens{CoverageComplete, goldenCount(3), []TokenRecord{
					{Model: "claude-sonnet-4-5", Provider: "firstParty", Requests: 3, Tokens: goldenCount(1), Cost: &Cost{0.04, CostAgentEstimate}, PricedUnits: []PricedUnit{{"web_search_request", 1}}},
					{Tokens: goldenCount(2)},
				}},
			},
		}),
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Done{Status: DoneInterrupted, Reason: "context deadline exceeded"}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Metadata: map[string]json.RawMessage{"droppedEvents": json.RawMessage(`3`)}, Payload: Done{Status: DoneMaxTurns}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Done{Status: DoneMaxBudget, Usage: Usage{Tokens: &Tokens{CoveragePartial, count(0, 0), nil}, Cost: &Cost{USD: 0}}}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Done{Status: DoneError, Result: "the adapter ended without saying done"}},
	},
	"tool_use": {
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: ToolCall{ID: "toolu_1", Name: "Bash", Input: json.RawMessage(`{"command":"ls <a >b && pwd","b":1.50,"a":12345678901234567890}`), Description: "List files"}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", RunID: "r1", Seq: 7, Position: Position{Entry: 12}, Turn: 2, ParentToolUseID: "toolu_0", AgentID: "a1", Role: "reviewer", Metadata: map[string]json.RawMessage{"depth": json.RawMessage(`3`), "model": json.RawMessage(`"m"`)}, Payload: ToolCall{ID: "toolu_2", Name: "mcp__files__read", AgentID: "a1", Dir: "/work"}},
	},
	"tool_result": {
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: ToolResult{ID: "toolu_1", Name: "Bash", Status: ToolSuccess, Output: json.RawMessage(`"<a>"`), Duration: 1500*time.Millisecond + 400*time.Microsecond, InputDigest: "i", OutputDigest: "o"}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: ToolResult{ID: "toolu_2", Name: "Bash", Status: ToolError, Failure: &ToolFailure{Code: "TIMEOUT", Category: "timeout", Message: "too late", Retryable: true}}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: ToolResult{ID: "toolu_3", Name: "Write", Status: ToolDenied, Output: json.RawMessage(`null`), Failure: &ToolFailure{Message: "no"}}},
	},
	"permission_request": {
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: PermissionRequest{ID: "toolu_1", Name: "Write", Input: json.RawMessage(`{"file_path":"/a"}`), Reason: "outside"}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: PermissionRequest{ID: "toolu_2", Name: "Write"}},
	},
	"decision": {
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Decision{CallID: "toolu_1", Tool: "Write", Verdict: Deny, Reason: "Read-only mode: mutating tools disabled.", Policy: "risk"}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Decision{CallID: "toolu_2", Tool: "Write", Verdict: Allow, Policy: "approver", Input: json.RawMessage(`{"z":1,"a":2}`), Asked: true, Remembered: true}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Decision{
			CallID: "toolu_3", Tool: "Write", Verdict: Allow, Policy: "approver", Input: json.RawMessage(`{"file_path":"/tmp/a"}`), Asked: true,
			Chain: []PolicyVerdict{{Policy: "allow-list"}, {Policy: "ask-list", Verdict: new(Ask), Reason: "Write needs approval"}, {Policy: "approver", Verdict: new(Allow)}, {Policy: "allow-list", Verdict: new(Allow), Again: true}, {Policy: "ask-list", Again: true}},
		}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Decision{
			CallID: "toolu_4", Tool: "save", Verdict: Deny, Reason: "save is denied", Policy: "deny-list",
			Chain: []PolicyVerdict{{Policy: "deny-list", Tool: "default:write"}, {Policy: "otherwise", Verdict: new(Allow), Tool: "default:write"}, {Policy: "deny-list", Verdict: new(Deny), Reason: "save is denied", Tool: "save"}},
		}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Decision{Verdict: Ask}},
		{Agent: "claude-code", Time: goldenTime, SessionID: "s1", Payload: Decision{}},
	},
	"steps": {
		{Time: goldenTime, Payload: ToolStep{ID: "toolu_1", Name: "read-file", Step: "started"}},
		{Time: goldenTime, Payload: ToolStep{ID: "toolu_1", Name: "read-file", Step: "denied", Detail: "a > b"}},
	},
	"progress_and_log": {
		{Time: goldenTime, Payload: ToolProgress{ID: "toolu_1", Progress: 0.5}},
		{Time: goldenTime, Payload: ToolProgress{ID: "toolu_1", Progress: 1, Total: 4, Message: "one of four"}},
		{Time: goldenTime, Payload: ToolLog{ID: "toolu_1", Level: "info", Message: "a < b", Attrs: map[string]json.RawMessage{"n": json.RawMessage(`1e2`)}}},
	},
	"extension": {
		{Agent: "codex", Time: goldenTime, SessionID: "s2", Payload: Extension{Kind: "codex:file_change", Data: json.RawMessage(`{"z":[1,2.50,{"b":0,"a":0}],"html":"<b>&amp;</b>","big":1e400}`)}},
		{Agent: "x", Time: time.UnixMilli(-1), Payload: Extension{Kind: "summary", Data: json.RawMessage(`[]`)}},
		{Agent: "x", Time: time.UnixMilli(0), Payload: Extension{Kind: "x:empty"}},
	},
}

// inRun is an event as a run delivers it.
func inRun(seq int64, turn int, p Payload) Event {
	return Event{Agent: "claude-code", Time: goldenTime, SessionID: "s1", RunID: "r1", Seq: seq, Turn: turn, Payload: p}
}

// goldenCount has every figure, n times as large.
func goldenCount(n int64) TokenCount {
	return TokenCount{InputTokens{6 * n, new(1 * n), new(2 * n), new(3 * n)}, OutputTokens{9 * n, new(4 * n), new(5 * n)}}
}

func goldenPath(name string) string { return "testdata/events/" + name + ".txtar" }

// readGolden reads a file of testdata. Its comment must say why it exists.
func readGolden(t testing.TB, name string) (archive *txtar.Archive, lines []string) {
	t.Helper()
	archive, err := txtar.ParseFile(goldenPath(name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(archive.Comment)) == "" {
		t.Errorf("%s does not say why it exists", goldenPath(name))
	}
	if len(archive.Files) == 0 {
		archive.Files = []txtar.File{{Name: "lines"}}
	}
	return archive, strings.Split(strings.TrimSuffix(string(archive.Files[0].Data), "\n"), "\n")
}

func TestEvent_Golden(t *testing.T) {
	for name, events := range goldenEvents {
		t.Run(name, func(t *testing.T) {
			archive, want := readGolden(t, name)
			var got []string
			for _, e := range events {
				got = append(got, string(line(t, e)))
			}
			if *update {
				archive.Files[0].Data = []byte(strings.Join(got, "\n") + "\n")
				if err := os.WriteFile(goldenPath(name), txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGolden_LinesDecodeToTheEvents(t *testing.T) {
	for name, events := range goldenEvents {
		_, lines := readGolden(t, name)
		for i, text := range lines {
			want := onTheWire(events[i])
			if diff := cmp.Diff(want, read(t, text)); diff != "" {
				t.Errorf("%s, line %d (-want +got):\n%s", name, i+1, diff)
			}
		}
	}
}

// TestGolden_EveryKindHasALine fails when a kind is added without a line of JSON.
func TestGolden_EveryKindHasALine(t *testing.T) {
	seen := map[Kind]bool{}
	for _, events := range goldenEvents {
		for _, e := range events {
			seen[e.Payload.EventKind()] = true
		}
	}
	for kind := range decoders {
		if !seen[kind] {
			t.Errorf("no line for %s", kind)
		}
	}
}

// line is the event as a log would hold it.
func line(t testing.TB, e Event) []byte {
	t.Helper()
	text, err := e.MarshalJSON()
	if err != nil {
		t.Fatalf("MarshalJSON of %+v: %v", e, err)
	}
	return text
}

func read(t testing.TB, text string) Event {
	t.Helper()
	var e Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("Unmarshal of %s: %v", text, err)
	}
	return e
}

// onTheWire is what of an event can be read again: its kind is set, times are in milliseconds, causes
// are gone, and where readers expect a list, an object or data there is one.
func onTheWire(e Event) Event {
	e.Kind = e.Payload.EventKind()
	e.Time = time.UnixMilli(e.Time.UnixMilli())
	milliseconds := func(d time.Duration) time.Duration {
		return time.Duration(d.Round(time.Millisecond).Milliseconds()) * time.Millisecond
	}
	otherwise := func(raw json.RawMessage, text string) json.RawMessage {
		if raw == nil {
			return json.RawMessage(text)
		}
		return raw
	}
	switch p := e.Payload.(type) {
	case Init:
		p.Tools = append([]string{}, p.Tools...)
		e.Payload = p
	case ToolCall:
		p.Input = otherwise(p.Input, "{}")
		e.Payload = p
	case PermissionRequest:
		p.Input = otherwise(p.Input, "{}")
		e.Payload = p
	case ToolResult:
		p.Duration = milliseconds(p.Duration)
		e.Payload = p
	case Error:
		p.Cause = nil
		e.Payload = p
	case Done:
		p.Duration = milliseconds(p.Duration)
		e.Payload = p
	case Extension:
		p.Data = otherwise(p.Data, "null")
		e.Payload = p
	}
	return e
}
