// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
)

// Two runs of a session, each of two turns with parts of text and decisions: what is delivered live is the log, entry by
// entry, and the log read by run id is the run.
func TestStream_IsTheLogByPosition(t *testing.T) {
	s := session.New(nil)
	for range 2 {
		rounds := 0
		opts := &drover.Options{Session: s, Settings: agent.Settings{PartialText: true}, Completion: guard.CheckerFunc(func(context.Context, guard.Attempt) (guard.Completion, error) {
			if rounds++; rounds%2 == 1 {
				return guard.Completion{Feedback: "There is more."}, nil
			}
			return guard.Complete(), nil
		})}
		adapter := &agenttest.Adapter{Tools: catalogue.Tools(), Steps: []agenttest.Step{
			agenttest.Emit(event.TextDelta{Delta: "I "}), agenttest.Emit(event.TextDelta{Delta: "see."}), agenttest.Emit(event.Text{Content: "I see."}),
			makes(call("c1", "Read", `{"file_path":"/a"}`), `"text"`, ""),
			agenttest.Emit(event.TextDelta{Delta: "Done."}), agenttest.Emit(event.Text{Content: "Done."}),
			answers(),
		}}
		run := drover.Stream(t.Context(), adapter, reviewPrompt(t), opts)
		before := s.Last()
		var live []event.Event
		for e, err := range run.Events() {
			if err != nil {
				t.Fatal(err)
			}
			live = append(live, e)
		}
		checkLive(t, s, before, live)
		checkLog(t, s, live)
	}
}

// checkLive checks the numbers and positions of what a reader got.
func checkLive(t *testing.T, s *session.Session, before int64, live []event.Event) {
	t.Helper()
	entries := map[int64]event.Event{}
	for i, e := range logOf(s) {
		entries[int64(i+1)] = e
	}
	var last event.Position
	for i, e := range live {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		if _, isPart := e.Payload.(event.TextDelta); isPart {
			want := event.Position{Entry: max(last.Entry, before), Part: 1}
			if last.Part > 0 && last.Entry == e.Position.Entry {
				want.Part = last.Part + 1
			}
			if e.Position.Entry < want.Entry || e.Position.Part != want.Part {
				t.Errorf("part %d is at %s, want part %d of entry %d or later", i+1, e.Position, want.Part, want.Entry)
			}
		} else if entry := entries[e.Position.Entry]; e.Position.Part != 0 || entry.Kind != e.Kind || entry.RunID != e.RunID {
			t.Errorf("%s is at %s, where the log has %s", e.Kind, e.Position, entry.Kind)
		}
		if e.Position.Entry >= last.Entry { // a decision was recorded before
			last = e.Position
		}
	}
}

// checkLog reads the run back from the log.
func checkLog(t *testing.T, s *session.Session, live []event.Event) {
	t.Helper()
	var want, got []event.Event
	for _, e := range live {
		switch e.Payload.(type) {
		case event.TextDelta, event.Decision:
		default:
			e.Position = event.Position{}
			want = append(want, e)
		}
	}
	turns := 0
	for _, e := range logOf(s) {
		if e.RunID == live[0].RunID && e.Seq > 0 {
			got = append(got, e)
		}
		if e.RunID == live[0].RunID && e.Kind == "turn:done" {
			turns++
		}
	}
	same := cmp.Transformer("line", func(e event.Event) string { line, _ := e.MarshalJSON(); return string(line) })
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("the run in the log (-live +log):\n%s", diff)
	}
	if turns != 2 {
		t.Errorf("the log has %d turns of the run, want 2", turns)
	}
}

func logOf(s *session.Session) (all []event.Event) {
	for e := range s.Events() {
		all = append(all, e)
	}
	return all
}
