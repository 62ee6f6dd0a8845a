// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/record"
)

// A recording of --record shows the same prompt, calls, results, texts and tokens as the run that was kept beside it.
func TestRuns_RecordingShowsWhatTheRunShows(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "echo one", "description": "count"}).Metered(script.Usage{Input: 1000, Output: 50}).Chunked(4, 0),
		script.Call("Bash", script.Input{"command": "echo two; exit 3", "description": "count"}), script.Text("It is two.").Chunked(3, 0))
	p := newProgram(t, model.URL())
	p.setEnv(map[string]string{"XDG_STATE_HOME": state})
	if r := p.run("run", "--quiet", "--allow", "shellExecute", "--record", "r.jsonl", "Count to two."); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	path := filepath.Join(p.cli.Work, "r.jsonl")
	recording, err := record.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := findRun("last")
	if err != nil {
		t.Fatal(err)
	}
	type call struct{ Name, Input, Status string }
	seen := func(run *record.Run) (calls []call, d *record.Details) {
		d, err := run.Details()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Calls {
			calls = append(calls, call{c.Name, string(c.Input), string(c.Status())})
		}
		return calls, d
	}
	wantCalls, want := seen(kept)
	gotCalls, got := seen(recording)
	if diff := cmp.Diff(wantCalls, gotCalls); diff != "" || len(gotCalls) != 2 {
		t.Errorf("the calls (-run +recording):\n%s", diff)
	}
	if diff := cmp.Diff(want.Models, got.Models); diff != "" {
		t.Errorf("the models (-run +recording):\n%s", diff)
	}
	if diff := cmp.Diff(want.Texts, got.Texts); diff != "" {
		t.Errorf("the texts (-run +recording):\n%s", diff)
	}
	if !strings.Contains(got.Prompt, "Count to two.") || recording.State != record.Ended || recording.End.Text != "It is two." {
		t.Errorf("the prompt is %q, the end of the %s recording %+v", got.Prompt, recording.State, recording.End)
	}
	out := mustCommand(t, 0, "runs", "show", path)
	for _, want := range []string{"status     success, ", "prompt     recording: Count to two.", "calls      2 calls: Bash 2\n", "success    Bash  echo one\n", "error      Bash  echo two; exit 3\n", "answer     It is two.\n", " tokens in 3 model calls"} {
		if !strings.Contains(out, want) {
			t.Errorf("shown lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "runs resume") {
		t.Errorf("a recording is to be continued:\n%s", out)
	}
	id := strings.TrimSpace(mustCommand(t, 0, "runs", "import", path))
	if out := mustCommand(t, 0, "runs", "show", id); !strings.Contains(out, "success    Bash  echo one\n") || strings.Contains(out, "runs resume") {
		t.Errorf("the recording that was taken in is\n%s", out)
	}
}
