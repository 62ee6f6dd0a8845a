// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
)

// stream is an adapter that yields what it has as fast as it can.
type stream struct {
	*agenttest.Adapter
	events []event.Event
}

func (s stream) Run(context.Context, agent.Request) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range s.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func texts(n int) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		events[i] = event.Event{Kind: event.KindText, Time: time.UnixMilli(int64(i)), SessionID: "s", Payload: text("hello")}
	}
	return events
}

// mixed has a tool call and its result in every four events.
func mixed(n int) []event.Event {
	events := texts(n)
	for i := 0; i+3 < len(events); i += 4 {
		id := strconv.Itoa(i)
		events[i+1].Payload = event.ToolCall{ID: event.CallID(id), Name: "Read", Input: json.RawMessage(`{}`)}
		events[i+2].Payload = event.ToolResult{ID: event.CallID(id), Name: "Read", Status: event.ToolSuccess}
	}
	return events
}

// The cost of a runner per event, against ranging over the adapter itself, in one run each.
// "added-ns/event" is the difference, "ratio" the quotient.
func BenchmarkRunner(b *testing.B) {
	for _, c := range []struct {
		name   string
		events []event.Event
	}{{"text", texts(200_000)}, {"mixed", mixed(20_000)}} {
		c.events = append(c.events, event.New(event.Done{Status: event.DoneSuccess}))
		a := stream{agenttest.New(), c.events}
		r := newRunner(b, a, nil)
		var direct time.Duration
		b.Run(c.name+"/direct", func(b *testing.B) {
			direct = perEvent(b, len(c.events), func() iter.Seq2[event.Event, error] { return a.Run(b.Context(), agent.Request{}) })
		})
		b.Run(c.name+"/runner", func(b *testing.B) {
			took := perEvent(b, len(c.events), func() iter.Seq2[event.Event, error] { return r.Run(b.Context(), agent.Request{}) })
			b.ReportMetric(float64(took-direct)/1000, "added-ns/event")
			if direct > 0 {
				b.ReportMetric(float64(took)/float64(direct), "ratio")
			}
		})
	}
}

// perEvent reads streams of so many events and returns how long a thousand of them take.
func perEvent(b *testing.B, events int, open func() iter.Seq2[event.Event, error]) time.Duration {
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for e := range open() {
			if e.Payload != nil {
				n++
			}
		}
	}
	if n != b.N*events {
		b.Fatalf("read %d events, want %d", n, b.N*events)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(n), "ns/event")
	return b.Elapsed() * 1000 / time.Duration(n)
}
