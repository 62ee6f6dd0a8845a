// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
)

// A witness allows each call and emits the decision.
type witness struct{ emit func(event.Event) }

func (w *witness) EmitTo(emit func(event.Event)) { w.emit = emit }

func (w *witness) Decide(_ context.Context, c event.ToolCall) event.Decision {
	d := event.Decision{CallID: c.ID, Verdict: event.Allow}
	w.emit(event.New(d))
	return d
}

func TestHost_EmittedEventIsNextToItsCall(t *testing.T) {
	r, err := agent.NewRunner(agenttest.New(
		agenttest.Decide(event.ToolCall{ID: "1", Name: "Bash", Input: json.RawMessage(`{}`)}),
		agenttest.Emit(event.Text{Content: "before"}, event.ToolCall{ID: "1", Name: "Bash", Input: json.RawMessage(`{}`)}, event.Text{Content: "after"}),
		agenttest.Done(""),
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	host := &witness{}
	for range 2 { // each run has a stream of its own
		var got []event.Kind
		for e, err := range r.Run(t.Context(), agent.Request{Prompt: "go", Host: host}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Kind)
		}
		want := []event.Kind{event.KindText, event.KindToolUse, event.KindDecision, event.KindText, event.KindDone}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
