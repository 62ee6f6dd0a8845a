// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/telemetry"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at is an event some seconds after the begin; of a subagent if its call is named.
func at(seconds float64, payload event.Payload, parent ...string) event.Event {
	ev := event.New(payload)
	ev.Time = began.Add(time.Duration(seconds * float64(time.Second)))
	if len(parent) > 0 {
		ev.ParentToolUseID, ev.AgentID = event.CallID(parent[0]), "a-"+parent[0]
	}
	return ev
}

func call(id, name string) event.ToolCall {
	return event.ToolCall{ID: event.CallID(id), Name: name, Input: []byte(`{"kind":"Explore"}`)}
}

func result(id string, status event.ToolStatus) event.ToolResult {
	return event.ToolResult{ID: event.CallID(id), Status: status}
}

func chat(agent string, seconds float64) gateway.ModelCall {
	return gateway.ModelCall{Operation: "messages", Model: "m", Agent: agent, Status: 200, DurationMS: seconds * 1000}
}

// trace is the spans of these events: the name, its parent, and the seconds from begin to end.
func trace(t *testing.T, events ...event.Event) []string {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	_, run, err := (&telemetry.Options{TracerProvider: provider}).Begin(t.Context(), telemetry.Start{Agent: "a", Prompt: "p", Subagent: kind})
	if err != nil {
		t.Fatal(err)
	}
	run.Turn("hello")
	for _, ev := range events {
		run.Event(ev)
	}
	run.TurnEnd(event.Done{Status: event.DoneSuccess}, nil)
	run.End(telemetry.End{Status: event.DoneSuccess})
	names := map[string]string{}
	for _, s := range kept.GetSpans() {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	var lines []string
	for _, s := range kept.GetSpans() {
		if s.Name == "turn" || s.Name == "invoke_agent p" {
			continue
		}
		line := fmt.Sprintf("%s in %s: %v-", s.Name, names[s.Parent.SpanID().String()], s.StartTime.Sub(began).Seconds())
		if end := s.EndTime.Sub(began); end < time.Hour {
			line += fmt.Sprint(end.Seconds())
		} else {
			line += "now"
		}
		if s.Status.Code == codes.Error {
			line += " !" + s.Status.Description
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// kind is the kind of the subagent that a call asks for.
func kind(call event.ToolCall) string {
	var in struct{ Kind string }
	_ = json.Unmarshal(call.Input, &in)
	return in.Kind
}

func TestRun_EventsBecomeSpans(t *testing.T) {
	failed := chat("main", 2)
	failed.Status, failed.Error = 529, "overloaded_error"
	broken := chat("main", 2)
	broken.Error = "the agent has gone"
	other := chat("main", 1)
	other.Operation = "count_tokens"
	cases := []struct {
		name   string
		events []event.Event
		want   []string
	}{
		{"a model call that is reported at its end", []event.Event{at(5, chat("main", 2))}, []string{"chat m in turn: 3-5"}},
		{"a model call that failed", []event.Event{at(5, failed)}, []string{"chat m in turn: 3-5 !529"}},
		{"a model call that broke off", []event.Event{at(5, broken)}, []string{"chat m in turn: 3-5 !incomplete"}},
		{"what is no call of a model", []event.Event{at(5, other)}, nil},
		{
			"calls of tools that overlap",
			[]event.Event{at(1, call("1", "Read")), at(2, call("2", "Bash")), at(3, result("1", event.ToolSuccess)), at(4, result("2", event.ToolError))},
			[]string{"execute_tool Bash in turn: 2-4 !error", "execute_tool Read in turn: 1-3"},
		},
		{"a call without a result", []event.Event{at(1, call("1", "Read"))}, []string{"execute_tool Read in turn: 1-now !cancelled"}},
		{"a result without a call, and twice", []event.Event{at(1, result("1", event.ToolSuccess)), at(2, result("1", event.ToolSuccess))}, nil},
		{
			"a subagent whose first model call comes before anybody knows of it",
			[]event.Event{at(1, call("1", "Agent")), at(3, chat("a-1", 1)), at(4, call("2", "Read"), "1"), at(5, result("2", event.ToolSuccess), "1"), at(6, chat("a-1", 0.5)), at(7, result("1", event.ToolSuccess))},
			[]string{"chat m in invoke_agent Explore: 2-3", "chat m in invoke_agent Explore: 5.5-6", "execute_tool Agent in turn: 1-7", "execute_tool Read in invoke_agent Explore: 4-5", "invoke_agent Explore in execute_tool Agent: 1-6"},
		},
		{
			"a subagent in the background, which goes on after its call",
			[]event.Event{at(1, call("1", "Agent")), at(2, event.Text{Content: "x"}, "1"), at(3, result("1", event.ToolSuccess)), at(9, event.Text{Content: "y"}, "1")},
			[]string{"execute_tool Agent in turn: 1-3", "invoke_agent Explore in execute_tool Agent: 1-9"},
		},
		{
			"two subagents at once",
			[]event.Event{at(1, call("1", "Agent")), at(1, call("2", "Agent")), at(2, event.Text{Content: "x"}, "2"), at(3, event.Text{Content: "x"}, "1"), at(4, chat("a-2", 1)), at(5, result("1", event.ToolSuccess)), at(5, result("2", event.ToolSuccess))},
			[]string{"chat m in invoke_agent Explore: 3-4", "execute_tool Agent in turn: 1-5", "execute_tool Agent in turn: 1-5", "invoke_agent Explore in execute_tool Agent: 1-3", "invoke_agent Explore in execute_tool Agent: 1-4"},
		},
		{"a model call of an unknown agent", []event.Event{at(3, chat("stranger", 1))}, []string{"chat m in turn: 2-3"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, trace(t, c.events...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The provider is the one that the gateway reports, on the spans that began before it was known too.
func TestRun_ProviderIsThatOfTheModelCalls(t *testing.T) {
	for name, c := range map[string]struct {
		provider, want string
	}{
		"a gateway reports it": {"aws.bedrock", "aws.bedrock"},
		"it is not known":      {"", "claude-code"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := tracetest.NewInMemoryExporter()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))
			defer func() { _ = provider.Shutdown(context.Background()) }()
			_, run, err := (&telemetry.Options{TracerProvider: provider}).Begin(t.Context(), telemetry.Start{Agent: "claude-code", Prompt: "p"})
			if err != nil {
				t.Fatal(err)
			}
			main, sub := chat("main", 1), chat("a-1", 1)
			main.Provider, sub.Provider = c.provider, c.provider
			run.Turn("x")
			for _, ev := range []event.Event{at(1, main), at(1, call("1", "Agent")), at(2, event.Text{Content: "x"}, "1"), at(3, sub)} {
				run.Event(ev)
			}
			run.End(telemetry.End{Status: event.DoneSuccess})
			found := 0
			for _, s := range kept.GetSpans() {
				for _, a := range s.Attributes {
					if a.Key != "gen_ai.provider.name" {
						continue
					}
					if found++; a.Value.AsString() != c.want {
						t.Errorf("the provider of %s is %q, want %q", s.Name, a.Value.AsString(), c.want)
					}
				}
			}
			if found != 4 { // two agents, two model calls
				t.Errorf("%d spans have a provider, want 4", found)
			}
		})
	}
}

func TestBegin_WithoutOptionsDoesNothing(t *testing.T) {
	var o *telemetry.Options
	ctx, run, err := o.Begin(t.Context(), telemetry.Start{})
	if ctx != t.Context() || run != nil || err != nil {
		t.Errorf("got %v, %v, %v", ctx, run, err)
	}
	for _, o := range []*telemetry.Options{nil, {}, {Content: true}} {
		_, run, err := o.Begin(t.Context(), telemetry.Start{Prompt: "p"})
		if err != nil {
			t.Fatal(err)
		}
		run.Event(at(0, call("1", "Read"))) // before the first turn
		run.Turn("x")
		run.Event(at(1, call("1", "Read")))
		run.TurnEnd(event.Done{}, errors.New("x"))
		run.TurnEnd(event.Done{}, nil) // it is over
		run.End(telemetry.End{Err: errors.New("x")})
	}
}

func TestContent_IsRecordedOnRequest(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	_, run, err := (&telemetry.Options{TracerProvider: provider, Content: true}).Begin(t.Context(), telemetry.Start{Prompt: "p"})
	if err != nil {
		t.Fatal(err)
	}
	run.Turn(`what the "user" says`)
	run.Event(at(1, event.ToolCall{ID: "1", Name: "Read", Input: []byte(`{"what":"goes in"}`)}))
	run.Event(at(2, event.ToolResult{ID: "1", Status: event.ToolError, Output: []byte(`"what comes out"`), Failure: &event.ToolFailure{Message: "why it failed"}}))
	run.TurnEnd(event.Done{Status: event.DoneSuccess, Result: "what the model says"}, nil)
	run.End(telemetry.End{})
	all := fmt.Sprintf("%+v", kept.GetSpans())
	for _, want := range []string{`[{"role":"user","parts":[{"type":"text","content":"what the \"user\" says"}]}]`, `{"what":"goes in"}`, `"what comes out"`, "why it failed", `"content":"what the model says"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
