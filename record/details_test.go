// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/session"
)

func call(id event.CallID, name, input string) event.ToolCall {
	return event.ToolCall{ID: id, Name: name, Input: json.RawMessage(input)}
}

func result(id event.CallID, name string, status event.ToolStatus, output string) event.ToolResult {
	r := event.ToolResult{ID: id, Name: name, Status: status, Output: json.RawMessage(output)}
	if status != event.ToolSuccess {
		r.Failure = &event.ToolFailure{Message: "no"}
	}
	return r
}

func TestRun_Details(t *testing.T) {
	run := keep(t, openStore(t), nil, agenttest.Emit(
		isolation.Protection{Level: isolation.LevelLandlock, Missing: []string{"network"}},
		event.Init{Model: "m-1", Dir: "/work", Tools: []string{"Read"}, Capabilities: map[string]json.RawMessage{"claudeCodeVersion": json.RawMessage(`"9.8.7"`)}},
		event.Decision{CallID: "c1", Tool: "Read", Verdict: event.Allow, Policy: "early"}, // before its call
		call("c1", "Read", `{"file_path":"a"}`), result("c1", "Read", event.ToolSuccess, `"text"`),
		call("c2", "Bash", `{"command":"rm"}`), event.Decision{CallID: "c2", Tool: "Bash", Verdict: event.Deny, Policy: "capabilities", Reason: "No shell."},
		result("c2", "Bash", event.ToolDenied, `"denied"`),
		call("c1", "Read", `{"file_path":"b"}`), result("c1", "Read", event.ToolError, `"gone"`), // the id again
		call("c3", "Bash", `{"command":"sleep 1"}`), // without an end
		gateway.ModelCall{Model: "m-1", CostUSD: 0.5, Tokens: gateway.Tokens{Input: 10, CacheRead: 5, CacheWrite5m: 1, Output: 3}},
		gateway.ModelCall{Model: "m-2", CostUSD: 1, Tokens: gateway.Tokens{Input: 1, Output: 1}, Unpriced: true},
		gateway.ModelCall{Model: "m-1", CostUSD: 0.25, Tokens: gateway.Tokens{Input: 2, Output: 2}},
		event.Error{Code: "RATE", Message: "slow down", Recoverable: true},
	), agenttest.Done(""))
	d, err := run.Details()
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Name, Input, Status, Denied string
		Decisions                   int
	}
	var calls []seen
	for _, c := range d.Calls {
		s := seen{c.Name, string(c.Input), string(c.Status()), "", len(c.Decisions)}
		if by := c.Denied(); by != nil {
			s.Denied = by.Policy
		}
		calls = append(calls, s)
	}
	want := []seen{
		{"Read", `{"file_path":"a"}`, "success", "", 1},
		{"Bash", `{"command":"rm"}`, "denied", "capabilities", 1},
		{"Read", `{"file_path":"b"}`, "error", "", 0},
		{"Bash", `{"command":"sleep 1"}`, "cancelled", "", 0}, // as the session reports it
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	models := []record.ModelUse{
		{Model: "m-2", Calls: 1, Input: 1, Output: 1, CostUSD: 1, Unpriced: true},
		{Model: "m-1", Calls: 2, Input: 18, Output: 5, CacheRead: 5, CacheWrite: 1, CostUSD: 0.75},
	}
	if diff := cmp.Diff(models, d.Models); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if d.Isolation != "landlock" || d.AgentVersion != "9.8.7" || d.Model != "m-1" || len(d.Errors) != 1 || d.Prompt != "Look." {
		t.Errorf("got %+v", d)
	}
}

func TestCompare_FindsWhereRunsPart(t *testing.T) {
	store := openStore(t)
	first := []event.Payload{event.Init{Model: "m", Tools: []string{"Read", "Bash"}}, call("c1", "Read", `{"file_path":"a"}`), result("c1", "Read", event.ToolSuccess, `"text"`)}
	a := keep(t, store, nil, agenttest.Emit(append(first, call("c2", "Bash", `{"command":"ls"}`), result("c2", "Bash", event.ToolSuccess, `"x"`))...), agenttest.Done(""))
	b := keep(t, store, nil, agenttest.Emit(event.Init{Model: "m", Tools: []string{"Read", "Write"}}, first[1], first[2],
		call("c2", "Bash", `{"command":"ls"}`), result("c2", "Bash", event.ToolDenied, `"x"`)), agenttest.Done(""))
	c, err := record.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if c.Same != 1 || c.A == nil || c.B == nil || c.A.Status() != event.ToolSuccess || c.B.Status() != event.ToolDenied {
		t.Errorf("the calls part after %d: %+v and %+v", c.Same, c.A, c.B)
	}
	if strings.Join(c.OnlyA, ",") != "Bash" || strings.Join(c.OnlyB, ",") != "Write" || c.Prompt != "" || c.Settings != "" {
		t.Errorf("got %+v", c)
	}
	same, err := record.Compare(a, a)
	if err != nil || same.A != nil || same.B != nil || same.Same != 2 || same.Answer+same.Changes+same.Prompt != "" {
		t.Errorf("a run compared with itself: %+v, %v", same, err)
	}
}

// Each part in which two runs differ is shown, and no other.
func TestCompare_ShowsEachDifference(t *testing.T) {
	store := openStore(t)
	type parts struct{ prompt, model, answer, output, tool, input, got, diff string }
	run := func(p parts) *record.Run {
		resp, err := drover.Evaluate(t.Context(), agenttest.New(agenttest.Emit(event.Init{Tools: []string{"Read", "Bash"}}, call("c1", p.tool, p.input), result("c1", p.tool, event.ToolSuccess, p.got),
			event.Done{Status: event.DoneSuccess, Result: p.answer})), ask(t, p.prompt), &drover.Options{Settings: agent.Settings{Model: p.model}, Recorder: record.NewRecorder(store, nil)})
		if err != nil {
			t.Fatal(err)
		}
		kept := find(t, store, resp.RunID)
		if err := os.WriteFile(filepath.Join(kept.Path, "workspace.diff"), []byte(p.diff), 0o600); err != nil {
			t.Fatal(err)
		}
		return kept
	}
	same := parts{"Look.", "big", "Yes.", "", "Read", `{"file_path":"a"}`, `"text"`, "+a\n"}
	a := run(same)
	for name, c := range map[string]struct {
		change func(p *parts)
		want   string // of the parts that differ
	}{
		"nothing":  {func(*parts) {}, ""},
		"prompt":   {func(p *parts) { p.prompt = "See." }, "prompt -Look. +See."},
		"settings": {func(p *parts) { p.model = "small" }, `settings -  "model": "big" +  "model": "small"`},
		"answer":   {func(p *parts) { p.answer = "No." }, "answer -Yes. +No."},
		"changes":  {func(p *parts) { p.diff = "+b\n" }, "changes -+a ++b"},
		"tool":     {func(p *parts) { p.tool = "Bash" }, "calls"},
		"input":    {func(p *parts) { p.input = `{"file_path":"b"}` }, "calls"},
		"output":   {func(p *parts) { p.got = `"more"` }, "calls"},
	} {
		t.Run(name, func(t *testing.T) {
			other := same
			c.change(&other)
			got, err := record.Compare(a, run(other))
			if err != nil {
				t.Fatal(err)
			}
			var differ []string
			for _, part := range []struct{ name, diff string }{{"prompt", got.Prompt}, {"settings", got.Settings}, {"answer", got.Answer}, {"changes", got.Changes}} {
				var changed []string
				for line := range strings.Lines(part.diff) {
					if line = strings.TrimRight(line, "\n,"); line[0] == '-' || line[0] == '+' {
						changed = append(changed, line)
					}
				}
				if len(changed) > 0 {
					differ = append(differ, part.name+" "+strings.Join(changed, " "))
				}
			}
			if got.Same == 0 && got.A != nil && got.B != nil {
				differ = append(differ, "calls")
			}
			if text := strings.Join(differ, "; "); text != c.want {
				t.Errorf("different are %q, want %q", text, c.want)
			}
		})
	}
}

// A run whose program is gone is lost, and what it has can be read up to the last whole line.
func TestRun_LostRunIsReadUpToItsLastWholeLine(t *testing.T) {
	store := openStore(t)
	run := keep(t, store, nil, agenttest.Emit(event.Text{Content: "a"}, event.Text{Content: "b"}), agenttest.Done(""))
	all := len(entries(t, run))
	log := filepath.Join(run.Path, "events.jsonl")
	text, err := os.ReadFile(log)
	if err == nil {
		err = os.WriteFile(log, text[:len(text)-5], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	damaged := find(t, store, run.ID)
	if _, err := damaged.Details(); err == nil || !strings.Contains(err.Error(), "events.jsonl") {
		t.Errorf("a log that is cut is whole: %v", err)
	}
	if err := os.Remove(filepath.Join(run.Path, "end.json")); err != nil {
		t.Fatal(err)
	}
	lost := find(t, store, run.ID)
	if got := len(entries(t, lost)); lost.State != record.Lost || got != all-1 {
		t.Errorf("the run is %s with %d entries of %d", lost.State, got, all)
	}
}

// What newer programs have written is refused, and said.
func TestRun_NewerFormatIsRefused(t *testing.T) {
	store := openStore(t)
	run := keep(t, store, nil, agenttest.Done(""))
	path := filepath.Join(run.Path, "run.json")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), `"droverRun":1`, `"droverRun":2`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Find(run.ID); err == nil || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("got %v", err)
	}
}

// oldLog makes a log as an evaluation with a session in a file has made it before runs were kept.
func oldLog(t *testing.T, path string) {
	t.Helper()
	file, err := session.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	noted := func(r *agenttest.Run) {
		r.Request.Transcript(agent.TranscriptLine{Raw: json.RawMessage(`{"a":"AKIAIOSFODNN7EXAMPLE"}`), Source: agent.MainSource})
	}
	_, err = drover.Evaluate(t.Context(), agenttest.New(noted, agenttest.Emit(event.Init{Model: "m", Dir: "/old"}, event.Text{Content: "from " + secret + " and AKIAIOSFODNN7EXAMPLE"}), agenttest.Done("token-1")), ask(t, "Look."), &drover.Options{
		Session: s, Transcript: &drover.TranscriptOptions{File: filepath.Join(filepath.Dir(path), "transcript.jsonl")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A log of a session opens as a run, alone or in the folder of an earlier demo, and can be taken in without secrets.
func TestOpenFile_LogOfASession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "2026-01-02-030405-1")
	log := filepath.Join(dir, "session.jsonl")
	oldLog(t, log)
	for _, path := range []string{log, dir} {
		run, err := record.OpenFile(path, secret)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := run.Details(); err != nil || strings.Join(d.Texts, "") != "from [redacted] and [redacted]" {
			t.Errorf("%s: the texts are %q, %v", path, d.Texts, err)
		}
		if err := run.Export(io.Discard); err == nil || !strings.Contains(advice.Of(err), "drover runs import") {
			t.Errorf("%s is exported: %v, advice %q", path, err, advice.Of(err))
		}
		if run.State != record.Ended || run.End.Status != event.DoneSuccess || run.Folder != "/old" || run.Model != "m" || run.Agent == "" || run.Prompt == "" ||
			run.End.Duration <= 0 || run.End.Ended.Before(run.Began) || run.End.Entries != int64(len(entries(t, run))) || run.End.ResumeToken != "token-1" {
			t.Errorf("%s: %+v, %+v", path, run.Info, run.End)
		}
		transcript := 0
		for entry, err := range run.Transcript() {
			if err != nil || string(entry.Raw) != `{"a":"[redacted]"}` {
				t.Fatalf("%s, %v", entry.Raw, err)
			}
			transcript++
		}
		if isFolder := path == dir; isFolder != (run.ID == filepath.Base(dir)) || isFolder != (transcript > 0) || run.Session == run.ID == isFolder {
			t.Errorf("%s: the run is %s of the session %s, with %d lines of a transcript", path, run.ID, run.Session, transcript)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.jsonl")
	if err := os.WriteFile(cut, []byte(strings.Join(strings.SplitAfter(string(text), "\n")[:3], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if run, err := record.OpenFile(cut); err != nil || run.State != record.Lost || run.End != nil {
		t.Errorf("a log without an end: %+v, %v", run, err)
	}
	store := openStore(t)
	run, err := record.OpenFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := store.Import(run, []string{secret})
	if err != nil {
		t.Fatal(err)
	}
	d, err := taken.Details()
	if err != nil || strings.Join(d.Texts, "") != "from [redacted] and [redacted]" || taken.Imported != dir || taken.State != record.Ended {
		t.Errorf("got %+v, %+v, %v", taken.Info, d, err)
	}
	if _, err := store.Import(run, nil); err == nil || !strings.Contains(err.Error(), "file already exists") {
		t.Errorf("a second time: %v", err)
	}
}

func TestOpenFile_Recording(t *testing.T) {
	run, err := record.OpenFile("../gateway/testdata/recording.v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if all := entries(t, run); len(all) == 0 || all[0].Event.Kind != "gateway:exchange" || run.ID != "recording.v1" {
		t.Errorf("got %d entries of %s", len(all), run.ID)
	}
	taken, err := openStore(t).Import(run, nil)
	if err != nil || len(entries(t, taken)) != len(entries(t, run)) {
		t.Errorf("got %v, %v", taken, err)
	}
}

func TestOpenFile_Refusals(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "text": "hello\n", "newer": `{"drover":"session-log","version":99}` + "\n", "json": "{}\n", "recording": `{"drover_recording":9}` + "\n"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if run, err := record.OpenFile(path); err == nil {
			t.Errorf("%s: got %+v", name, run)
		}
	}
	if _, err := record.OpenFile(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing file was opened")
	}
}
