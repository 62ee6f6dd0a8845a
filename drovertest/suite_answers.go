// SPDX-License-Identifier: Apache-2.0

package drovertest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

func testText(t *testing.T, s *suite) {
	resp, m := evaluated(t, s, promptOf[prompt.Text](t, prompt.Markdown("task", "Task", "Say what the marker-of-the-text is.")), nil, reply("It is a marker."))
	if got := string(resp.Output); got != "It is a marker." || resp.Text != got {
		t.Errorf("the answer is %q, the text %q", got, resp.Text)
	}
	if !m.Read("marker-of-the-text") {
		t.Error("the model has not read the prompt")
	}
	if resp.PromptName == "" || resp.RunID == "" || resp.Status != event.DoneSuccess || !resp.Completion.Done || resp.Duration <= 0 {
		t.Errorf("the summary is %+v", resp.Summary)
	}
}

// Everything that happens is in the session, in its order, and what is streamed is numbered.
func testEvents(t *testing.T, s *suite) {
	own := session.New(nil)
	a, _ := s.New(t, reply("Done."))
	run := drover.Stream(t.Context(), a, promptOf[prompt.Text](t), &drover.Options{Session: own})
	var last event.Event
	var seq int64
	for e, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; e.Seq != seq || e.RunID == "" {
			t.Errorf("event %d has the number %d and the run %q", seq, e.Seq, e.RunID)
		}
		if last.Kind == event.KindDone {
			t.Error("something comes after the end")
		}
		last = e
	}
	if _, err := run.Response(); err != nil || last.Kind != event.KindDone {
		t.Errorf("the last event is %q, and the error %v", last.Kind, err)
	}
	wantRecord(t, own)
}

// wantRecord checks what an evaluation that has succeeded leaves in its session.
func wantRecord(t *testing.T, s *session.Session) {
	t.Helper()
	rendered, _ := session.Query[session.PromptRendered](s).Latest()
	tools, _ := session.Query[session.RenderedTools](s).Latest()
	executed, _ := session.Query[session.PromptExecuted](s).Latest()
	if rendered.EventID == "" || tools.RenderEventID != rendered.EventID {
		t.Errorf("the tools belong to rendering %q, which is %q", tools.RenderEventID, rendered.EventID)
	}
	if executed.Status != event.DoneSuccess || executed.Error != "" || executed.Name != rendered.Name || executed.Duration <= 0 {
		t.Errorf("the end is %+v", executed)
	}
	var order []string
	for e := range s.Events() {
		switch e.Payload.(type) {
		case session.PromptRendered, session.RenderedTools, session.PromptExecuted:
			order = append(order, string(e.Kind))
		}
	}
	want := []string{string(rendered.EventKind()), string(tools.EventKind()), string(executed.EventKind())}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("the order of the record (-want +got):\n%s", diff)
	}
}

func testStructuredOutput(t *testing.T, s *suite) {
	t.Run("a struct", func(t *testing.T) {
		resp, _ := evaluated(t, s, promptOf[verdict](t), nil, answer(verdict{true, "It holds."}))
		if diff := cmp.Diff(verdict{true, "It holds."}, resp.Output); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a list", func(t *testing.T) {
		resp, _ := evaluated(t, s, promptOf[[]verdict](t), nil, answer([]verdict{{true, "a"}, {false, "b"}}))
		if len(resp.Output) != 2 || resp.Output[1].Why != "b" {
			t.Errorf("the answer is %+v", resp.Output)
		}
	})
	t.Run("a number", func(t *testing.T) {
		resp, _ := evaluated(t, s, promptOf[int](t), nil, answer(42))
		if resp.Output != 42 {
			t.Errorf("the answer is %d", resp.Output)
		}
	})
}

// A run that fails has a terminal event too, and the error has its cost.
func testFailureIsReported(t *testing.T, s *suite) {
	own := session.New(nil)
	a, _ := s.New(t, reply("That is no JSON."), reply("Nor is that."), reply("Nor that."), reply("No."))
	_, err := drover.Evaluate(t.Context(), a, promptOf[verdict](t), &drover.Options{Session: own})
	failure, ok := errors.AsType[*drover.EvaluationError](err)
	if !ok {
		t.Fatalf("the error is %v", err)
	}
	executed, found := session.Query[session.PromptExecuted](own).Latest()
	if !found || executed.Error == "" || executed.Status == event.DoneSuccess {
		t.Errorf("the end is %+v", executed)
	}
	if failure.Prompt == "" {
		t.Errorf("the error has no prompt: %+v", failure)
	}
}

// The transcript is complete, and numbered without gaps.
func testTranscript(t *testing.T, s *suite) {
	resp, _ := evaluated(t, s, promptOf[prompt.Text](t, prompt.Markdown("task", "Task", "Say what the marker-of-the-prompt is.")), nil, reply("The marker-of-the-answer."))
	if resp.Transcript == nil {
		t.Fatal("the response has no transcript")
	}
	next := map[string]int64{}
	var texts strings.Builder
	for e := range resp.Transcript.Entries() {
		if next[e.Source]++; e.Sequence != next[e.Source] {
			t.Errorf("an entry of %s has the number %d, want %d", e.Source, e.Sequence, next[e.Source])
		}
		if e.PromptName != resp.PromptName || e.RunID != resp.RunID || e.Adapter == "" || e.Type == "" {
			t.Errorf("an entry is %+v", e)
		}
		texts.Write(e.Raw)
	}
	for _, text := range []string{"marker-of-the-prompt", "marker-of-the-answer"} {
		if !strings.Contains(texts.String(), text) {
			t.Errorf("the transcript does not have %s", text)
		}
	}
}
