// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// role is what all runners of these tests play.
const role = "tester"

func newRunner(t testing.TB, a agent.Adapter, opts *agent.RunnerOptions) *agent.Runner {
	t.Helper()
	own := agent.RunnerOptions{}
	if opts != nil {
		own = *opts
	}
	own.Role = role
	r, err := agent.NewRunner(a, &own)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// withTools gives a scripted agent the tools of Claude Code.
func withTools(a *agenttest.Adapter) *agenttest.Adapter {
	a.Tools = catalogue.Tools()
	return a
}

// scripted makes a runner of a script.
func scripted(t testing.TB, steps ...agenttest.Step) *agent.Runner {
	t.Helper()
	return newRunner(t, agenttest.New(steps...), nil)
}

// watched counts the runs of an adapter that have not returned.
type watched struct {
	agent.Adapter
	running, begun atomic.Int64
}

func (w *watched) Run(ctx context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		w.begun.Add(1)
		w.running.Add(1)
		defer w.running.Add(-1)
		w.Adapter.Run(ctx, req)(yield)
	}
}

// collect reads a stream to its end. A stream that breaks a promise fails the test.
func collect(t testing.TB, stream iter.Seq2[event.Event, error]) []event.Event {
	t.Helper()
	var events []event.Event
	for e, err := range stream {
		if err != nil {
			t.Fatalf("the run was refused: %v", err)
		}
		events = append(events, e)
	}
	if err := wellFormed(events); err != nil {
		t.Errorf("%v, in %s", err, words(events))
	}
	return events
}

// wellFormed reports which promise about every stream is broken.
func wellFormed(events []event.Event) error {
	if err := numbered(events); err != nil {
		return err
	}
	if len(events) == 0 {
		return errors.New("there are no events")
	}
	if last := events[len(events)-1]; last.Kind != event.KindDone {
		return fmt.Errorf("the last event is a %s, want done", last.Kind)
	}
	return nil
}

// numbered is wellFormed for a stream that was not read to its end.
func numbered(events []event.Event) error {
	for i, e := range events {
		_, isDone := e.Payload.(event.Done)
		switch {
		case e.Seq != int64(i+1):
			return fmt.Errorf("event %d has the number %d", i+1, e.Seq)
		case e.Agent == "" || e.Role != role || e.Time.IsZero() || e.RunID == "" || e.RunID != events[0].RunID:
			return fmt.Errorf("event %d lacks its agent, role, time or run: %+v", i+1, e)
		case e.Kind != e.Payload.EventKind():
			return fmt.Errorf("event %d is a %s with a %T", i+1, e.Kind, e.Payload)
		case isDone && i != len(events)-1:
			return fmt.Errorf("event %d is a done, and %d follow", i+1, len(events)-1-i)
		}
	}
	return nil
}

// words describes events shortly: "text tool_use:a gate:decision:a done:success".
func words(events []event.Event) string {
	text := ""
	for _, e := range events {
		text += " " + string(e.Kind)
		switch p := e.Payload.(type) {
		case event.Error:
			text += ":" + p.Code
		case event.Done:
			text += ":" + string(p.Status)
		default:
			if id := e.CallID(); id != "" {
				text += ":" + string(id)
			}
		}
	}
	if text == "" {
		return "nothing"
	}
	return text[1:]
}

func expect(t testing.TB, events []event.Event, want string) {
	t.Helper()
	if got := words(events); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// doneOf is the payload of the last event.
func doneOf(events []event.Event) event.Done {
	if len(events) == 0 {
		return event.Done{}
	}
	done, _ := events[len(events)-1].Payload.(event.Done)
	return done
}

// droppedIn is the count of dropped events in the last event.
func droppedIn(events []event.Event) string {
	return string(events[len(events)-1].Metadata[agent.DroppedEvents])
}

func call(id, name string) event.ToolCall {
	return event.ToolCall{ID: event.CallID(id), Name: name, Input: json.RawMessage(`{}`)}
}

func text(s string) event.Text { return event.Text{Content: s} }
