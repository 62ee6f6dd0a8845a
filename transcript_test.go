// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/prompt"
)

type transcriptNote struct {
	Text string `json:"text"`
}

// writesAndAnswers has the model write a text, and then answer.
func writesAndAnswers(text string) script.Turn {
	return script.Reply(script.TextBlock{Text: text}, script.ToolCall{Name: "StructuredOutput", Input: script.Input{"text": text}})
}

func notePrompt(t testing.TB, name, text string) *prompt.Prompt[transcriptNote] {
	t.Helper()
	p, err := prompt.NewPrompt[transcriptNote]("demo", name, prompt.Markdown("task", "Task", text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// numbered checks that the entries of each source have numbers without gaps.
func numbered(t testing.TB, entries []drover.TranscriptEntry) {
	t.Helper()
	last := map[string]int64{}
	for _, e := range entries {
		if last[e.Source]++; e.Sequence != last[e.Source] {
			t.Errorf("an entry of %s has the number %d, want %d", e.Source, e.Sequence, last[e.Source])
		}
	}
}

func ofType(entries []drover.TranscriptEntry, kind agent.TranscriptType) (details []string) {
	for _, e := range entries {
		if e.Type == kind {
			details = append(details, string(e.Detail))
		}
	}
	return details
}

func TestTranscript_OfAnEvaluation(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Reply(script.ThinkingBlock{Thinking: "hmm"}, script.ToolCall{Name: "Bash", Input: script.Input{"command": "false", "description": "Fail"}}),
		writesAndAnswers("Done \u2028 <b>."))
	file := filepath.Join(t.TempDir(), "transcript.jsonl")
	if err := os.WriteFile(file, []byte(`{"torn`), 0o600); err != nil {
		t.Fatal(err)
	}
	base := cli.Options(model)
	base.PermissionMode = claude.ModeBypassPermissions
	var live []drover.TranscriptEntry
	resp, err := drover.Evaluate(t.Context(), claudecode.New(base), notePrompt(t, "look", "Look."), &drover.Options{
		Transcript: &drover.TranscriptOptions{File: file, Entry: func(e drover.TranscriptEntry) { live = append(live, e) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Collect(resp.Transcript.Entries())
	numbered(t, got)
	for _, e := range got {
		if e.PromptName != resp.PromptName || e.Adapter != claudecode.Agent || e.RunID != resp.RunID || e.SessionID != resp.SessionID || e.Source != agent.MainSource || e.Time.IsZero() || len(e.Detail) == 0 {
			t.Errorf("an entry lacks something: %+v", e)
		}
	}
	for kind, want := range map[agent.TranscriptType]int{
		agent.TranscriptUserMessage: 1, agent.TranscriptThinking: 1, agent.TranscriptToolUse: 2, agent.TranscriptToolResult: 2,
		agent.TranscriptAssistantMessage: 1, agent.TranscriptTokenUsage: 2,
	} {
		if found := ofType(got, kind); len(found) != want {
			t.Errorf("%d entries are of type %s, want %d: %s", len(found), kind, want, found)
		}
	}
	if diff := cmp.Diff(got, live); diff != "" {
		t.Errorf("the entries reported live differ (-kept +reported):\n%s", diff)
	}
	written, err := os.ReadFile(file)
	if err != nil || resp.Transcript.Err() != nil {
		t.Fatal(err, resp.Transcript.Err())
	}
	read, faults := readEntries(written)
	if diff := cmp.Diff(got, read); diff != "" || faults != 1 {
		t.Errorf("the file has %d lines that are no entries, want the torn one, and differs (-kept +read):\n%s", faults, diff)
	}
}

func readEntries(written []byte) (entries []drover.TranscriptEntry, faults int) {
	for e, err := range drover.ReadTranscript(bytes.NewReader(written)) {
		if err != nil {
			faults++
			continue
		}
		entries = append(entries, e)
	}
	return entries, faults
}

func TestTranscript_ParallelEvaluationsHaveTheirOwn(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		writesAndAnswers("Answer of A.").When(script.SawText("Task A")).Always(),
		writesAndAnswers("Answer of B.").When(script.SawText("Task B")).Always())
	adapter := claudecode.New(cli.Options(model))
	file := filepath.Join(t.TempDir(), "both.jsonl")
	var wg sync.WaitGroup
	for _, name := range []string{"A", "B"} {
		wg.Go(func() {
			other := map[string]string{"A": "B", "B": "A"}[name]
			resp, err := drover.Evaluate(t.Context(), adapter, notePrompt(t, name, "Task "+name), &drover.Options{Transcript: &drover.TranscriptOptions{File: file}})
			if err != nil {
				t.Error(err)
				return
			}
			got := slices.Collect(resp.Transcript.Entries())
			numbered(t, got)
			for _, e := range got {
				if e.RunID != resp.RunID || e.SessionID != resp.SessionID || strings.Contains(string(e.Raw), "Answer of "+other) {
					t.Errorf("%s has an entry of another run: %+v", name, e)
				}
			}
			if answers := ofType(got, agent.TranscriptAssistantMessage); len(answers) != 1 || !strings.Contains(answers[0], "Answer of "+name) {
				t.Errorf("%s has the answers %s", name, answers)
			}
		})
	}
	wg.Wait()
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	entries, faults := readEntries(written)
	runs := map[string][]drover.TranscriptEntry{}
	for _, e := range entries {
		runs[e.PromptName] = append(runs[e.PromptName], e)
	}
	if faults != 0 || len(runs) != 2 {
		t.Errorf("the file has %d lines that are no entries, and entries of %d runs, want 0 and 2", faults, len(runs))
	}
	for _, entries := range runs {
		numbered(t, entries)
	}
}

func TestTranscript_ConversationHasOne(t *testing.T) {
	cli := claudetest.CLI(t)
	adapter := claudecode.New(cli.Options(claudetest.NewModel(t, writesAndAnswers("One."), writesAndAnswers("Two."))))
	c := drover.Converse(adapter, notePrompt(t, "talk", "Begin."), nil)
	first, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if answers := ofType(slices.Collect(first.Transcript.Entries()), agent.TranscriptAssistantMessage); len(answers) != 1 {
		t.Errorf("after the first turn there are the answers %s", answers)
	}
	second, err := c.Send(t.Context(), "Go on.")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	got := slices.Collect(second.Transcript.Entries())
	numbered(t, got)
	var runs []string
	for _, e := range got {
		if e.Type == agent.TranscriptAssistantMessage {
			runs = append(runs, e.RunID)
		}
	}
	if diff := cmp.Diff([]string{first.RunID, second.RunID}, runs); diff != "" {
		t.Errorf("runs of the answers (-want +got):\n%s", diff)
	}
}

func TestTranscript_NotKeptWhenDisabled(t *testing.T) {
	cli := claudetest.CLI(t)
	adapter := claudecode.New(cli.Options(claudetest.NewModel(t, writesAndAnswers("Done."))))
	resp, err := drover.Evaluate(t.Context(), adapter, notePrompt(t, "quiet", "Say it."), &drover.Options{Transcript: &drover.TranscriptOptions{Disabled: true}})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Transcript != nil || len(slices.Collect(resp.Transcript.Entries())) != 0 || resp.Transcript.Forgotten() != 0 || resp.Transcript.Err() != nil {
		t.Errorf("the transcript is %v, want none", resp.Transcript)
	}
}

func TestTranscript_UnwritableFileIsRefused(t *testing.T) {
	_, err := drover.Evaluate(t.Context(), claudecode.New(nil), notePrompt(t, "nowhere", "Say it."), &drover.Options{
		Transcript: &drover.TranscriptOptions{File: filepath.Join(t.TempDir(), "missing", "t.jsonl")},
	})
	if err == nil || !strings.Contains(advice.Text(err), "set TranscriptOptions.File to a file that can be written") {
		t.Errorf("the error is %v, want it to name the field", err)
	}
}

func TestReadTranscript_InvalidLinesDoNotEndTheReading(t *testing.T) {
	good := `{"prompt_name":"p","adapter":"a","run_id":"r","entry_type":"unknown","sequence_number":1,"source":"main","timestamp":"2026-01-01T00:00:00Z","raw":{"a":1}}`
	text := "nonsense\n\n" + good + "\n{}\n" + good
	entries, faults := readEntries([]byte(text))
	if len(entries) != 2 || faults != 2 {
		t.Fatalf("%d entries and %d faults, want 2 of each", len(entries), faults)
	}
	if want := json.RawMessage(`{"a":1}`); !bytes.Equal(entries[0].Detail, want) {
		t.Errorf("the detail is %s, want %s", entries[0].Detail, want)
	}
}
