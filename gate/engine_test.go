// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// judgedBy is a policy made of a function.
func judgedBy(judge func(c *gate.Call) (event.Decision, bool)) gate.Policy {
	return gate.Policy{Name: "test", Stage: gate.StageCustom, Judge: func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) { return judge(c) }}
}

// askingGate is a gate that asks about every call, except that it denies inputs that contain
// "forbidden".
func askingGate(policies ...gate.Policy) *gate.Gate {
	return gate.ForClaude(append(policies, judgedBy(func(c *gate.Call) (event.Decision, bool) {
		if strings.Contains(string(c.Input), "forbidden") {
			return event.Decision{Reason: "That is forbidden."}, true
		}
		return event.Decision{Verdict: event.Ask, Reason: "just to be sure"}, true
	}))...)
}

// filesRegistry is a registry with a tool of ours, served under the key "files".
func filesRegistry() gate.Policy {
	save := tool.Must("save", "Saves.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Mutates)
	return gate.Knows("files", tool.MustRegistry(nil, save))
}

// A person answers questions with answer, and counts them.
type person struct {
	asked  atomic.Int64
	last   atomic.Pointer[gate.Question]
	answer func(ctx context.Context, q gate.Question) (gate.Answer, error)
}

func (p *person) Approve(ctx context.Context, q gate.Question) (gate.Answer, error) {
	p.asked.Add(1)
	p.last.Store(&q)
	return p.answer(ctx, q)
}

func answering(a gate.Answer) *person {
	return &person{answer: func(context.Context, gate.Question) (gate.Answer, error) { return a, nil }}
}

func toolCall(id, name, input string) event.ToolCall {
	return event.ToolCall{ID: event.CallID(id), Name: name, Input: json.RawMessage(input)}
}

func TestEngine_OneVerdictForOneCall(t *testing.T) {
	first := toolCall("c1", "mcp__files__save", `{"path":"a","mode":1}`)
	for _, tt := range []struct {
		name  string
		again event.ToolCall
		asked int64
	}{
		{"the same", first, 1},
		{"keys in another order", toolCall("c1", "mcp__files__save", `{ "mode": 1, "path": "a" }`), 1},
		{"by its bare name", toolCall("c1", "save", `{"path":"a","mode":1}`), 1},
		{"by its id", toolCall("c1", "default:save", `{"path":"a","mode":1}`), 1},
		{"with the input that the answer gave", toolCall("c1", "save", `{"path":"b"}`), 1},
		{"another id", toolCall("c2", "mcp__files__save", `{"path":"a","mode":1}`), 2},
		{"another input", toolCall("c1", "mcp__files__save", `{"path":"a","mode":2}`), 2},
		{"a number that is not quite the same", toolCall("c1", "mcp__files__save", `{"path":"a","mode":1.0000000000000000001}`), 2},
		{"another tool", toolCall("c1", "Write", `{"path":"a","mode":1}`), 2},
		{"a foreign server's tool of the same name", toolCall("c1", "mcp__evil__save", `{"path":"a","mode":1}`), 2},
		{"an input that the answer would give, to another tool", toolCall("c1", "mcp__evil__save", `{"path":"b"}`), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := answering(gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"path":"b"}`)})
			e := gate.NewEngine(askingGate(filesRegistry()), &gate.EngineOptions{Approver: p})
			for _, c := range []event.ToolCall{first, tt.again} {
				d := e.Decide(t.Context(), c)
				if d.Verdict != event.Allow || string(d.Input) != `{"path":"b"}` || d.Tool != c.Name || d.CallID != c.ID {
					t.Errorf("%s %s: %+v, want it allowed with the new input", c.Name, c.Input, d)
				}
			}
			if got := p.asked.Load(); got != tt.asked {
				t.Errorf("asked %d times, want %d", got, tt.asked)
			}
		})
	}
}

func TestEngine_CallWithoutAnIDIsDecidedEachTime(t *testing.T) {
	p := answering(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p})
	for range 3 {
		e.Decide(t.Context(), toolCall("", "Bash", `{}`))
	}
	if got := p.asked.Load(); got != 3 {
		t.Errorf("asked %d times, want 3", got)
	}
}

// Two registries have a tool of the name. An answer about one must not count for the bare name,
// which may mean the other.
func TestEngine_VerdictForOneToolDoesNotCountForAnAmbiguousName(t *testing.T) {
	other := gate.Knows("other", tool.MustRegistry(nil,
		tool.Must("save", "Saves elsewhere.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Dangerous)))
	p := answering(gate.Answer{Verdict: event.Allow, Remember: gate.SameTool})
	e := gate.NewEngine(askingGate(filesRegistry(), other), &gate.EngineOptions{Approver: p})
	for i, name := range []string{"mcp__files__save", "mcp__other__save", "save"} {
		e.Decide(t.Context(), toolCall("c1", name, `{}`))
		if got := p.asked.Load(); got != int64(i+1) {
			t.Errorf("asked %d times after %s, want %d", got, name, i+1)
		}
	}
}

func TestEngine_SecondCallerWaitsForTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{answer: func(context.Context, gate.Question) (gate.Answer, error) {
			time.Sleep(time.Minute)
			return gate.Answer{Verdict: event.Allow}, nil
		}}
		e := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p})
		var all sync.WaitGroup
		started := time.Now()
		for range 20 {
			all.Go(func() {
				if d := e.Decide(t.Context(), toolCall("c", "Bash", `{}`)); d.Verdict != event.Allow {
					t.Errorf("%+v, want it allowed", d)
				}
			})
		}
		synctest.Wait() // one asks, the others wait
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d := e.Decide(ctx, toolCall("c", "Bash", `{}`)); d.Verdict != event.Deny || !strings.Contains(d.Reason, "withdrawn") || time.Since(started) != time.Second {
			t.Errorf("after %s: %+v, want a denial when the context of the one that waits ends", time.Since(started), d)
		}
		all.Wait()
		if d := e.Decide(t.Context(), toolCall("c", "Bash", `{}`)); d.Verdict != event.Allow {
			t.Errorf("%+v: who withdrew must not decide for the others", d)
		}
		if p.asked.Load() != 1 || time.Since(started) != time.Minute {
			t.Errorf("asked %d times, %s; want once, a minute", p.asked.Load(), time.Since(started))
		}
	})
}

// The person sees what would run: the input as the policies have rewritten it.
func TestQuestion_HasTheRewrittenInputAndAllFacts(t *testing.T) {
	rewrites := judgedBy(func(c *gate.Call) (event.Decision, bool) {
		return event.Decision{Verdict: event.Ask, Reason: "it saves", Input: json.RawMessage(`{"path":"/tmp/x"}`)}, true
	})
	p := answering(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(gate.ForClaude(filesRegistry(), rewrites), &gate.EngineOptions{Approver: p})
	c := toolCall("c", "mcp__files__save", `{"path":"x"}`)
	c.AgentID, c.Description = "helper", "save it"
	d := e.Decide(t.Context(), c)
	c.Input = json.RawMessage(`{"path":"/tmp/x"}`)
	want := &gate.Question{Call: c, Reason: "it saves", Policy: "test", Risk: tool.Mutates}
	if diff := cmp.Diff(want, p.last.Load()); diff != "" {
		t.Errorf("question (-want +got):\n%s", diff)
	}
	if string(d.Input) != `{"path":"/tmp/x"}` {
		t.Errorf("%+v, want the rewritten input", d)
	}
}

func TestEngine_EachQuestionAndDecisionIsOneEvent(t *testing.T) {
	var got []string
	emit := func(ev event.Event) error {
		switch p := ev.Payload.(type) {
		case event.PermissionRequest:
			got = append(got, fmt.Sprintf("%s %s %s %s: %s", ev.Kind, p.ID, p.Name, p.Input, p.Reason))
		case event.Decision:
			got = append(got, fmt.Sprintf("%s %s %s %s asked:%t remembered:%t", ev.Kind, p.CallID, p.Tool, p.Verdict, p.Asked, p.Remembered))
		}
		return nil
	}
	p := answering(gate.Answer{Verdict: event.Allow, Remember: gate.SameInput})
	e := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p, Emit: emit})
	for _, c := range []event.ToolCall{
		toolCall("1", "Bash", `{"a":1}`), toolCall("1", "Bash", `{"a":1}`), toolCall("2", "Bash", `{"a":1}`), toolCall("3", "Bash", `{"a":"forbidden"}`),
	} {
		e.Decide(t.Context(), c)
	}
	want := []string{
		`permission_request 1 Bash {"a":1}: just to be sure`,
		"gate:decision 1 Bash allow asked:true remembered:false",
		"gate:decision 2 Bash allow asked:false remembered:true",
		"gate:decision 3 Bash deny asked:false remembered:false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestEngine_WithoutAnApproverTheQuestionIsStillAnEvent(t *testing.T) {
	var kinds []event.Kind
	e := gate.NewEngine(askingGate(), &gate.EngineOptions{Emit: func(ev event.Event) error { kinds = append(kinds, ev.Kind); return nil }})
	e.Decide(t.Context(), toolCall("1", "Bash", `{}`))
	if diff := cmp.Diff([]event.Kind{event.KindPermissionRequest, event.KindDecision}, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Whatever breaks, the call is denied, and the model does not read the host's own words.
func TestEngine_FailuresDenyWithoutTextOfTheHost(t *testing.T) {
	allow := gate.ForClaude(judgedBy(func(*gate.Call) (event.Decision, bool) { return event.Decision{Verdict: event.Allow}, true }))
	const secret = "a secret of the host"
	for _, tt := range []struct {
		name string
		gate *gate.Gate
		opts *gate.EngineOptions
		want string
	}{
		{"no gate", nil, nil, "Tool not allowed: Bash"},
		{"facts", allow, &gate.EngineOptions{Facts: func(context.Context, gate.Call) gate.Facts { panic(secret) }}, "failed"},
		{"a registry", gate.ForClaude(gate.Knows("x", brokenLookup{})), &gate.EngineOptions{}, "failed"},
		{"events", allow, &gate.EngineOptions{Emit: func(event.Event) error { panic(secret) }}, "could not be recorded"},
		{"events that are not taken", allow, &gate.EngineOptions{Emit: func(event.Event) error { return errors.New(secret) }}, "could not be recorded"},
		{"event of the question", askingGate(), &gate.EngineOptions{
			Approver: answering(gate.Answer{Verdict: event.Allow}),
			Emit: func(ev event.Event) error {
				if ev.Kind == event.KindPermissionRequest {
					return errors.New(secret)
				}
				return nil
			},
		}, "the question could not be recorded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log strings.Builder
			if tt.opts != nil {
				tt.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			}
			e := gate.NewEngine(tt.gate, tt.opts)
			for range 2 {
				d := e.Decide(t.Context(), toolCall("c", "Bash", `{}`))
				if d.Verdict != event.Deny || !strings.Contains(d.Reason, tt.want) || strings.Contains(d.Reason, secret) {
					t.Errorf("%+v, want a denial that says %q", d, tt.want)
				}
			}
			if tt.opts != nil && !strings.Contains(log.String(), "panic=") && !strings.Contains(log.String(), "error=") {
				t.Errorf("the log says %q, want the cause", log.String())
			}
		})
	}
}

// panickingLog is a log handler that fails.
type panickingLog struct{ slog.Handler }

func (panickingLog) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingLog) Handle(context.Context, slog.Record) error { panic("no disk") }

func TestEngine_PanickingLogHandlerDoesNotEndADecision(t *testing.T) {
	e := gate.NewEngine(askingGate(), &gate.EngineOptions{
		Logger: slog.New(panickingLog{slog.DiscardHandler}),
		Facts:  func(context.Context, gate.Call) gate.Facts { panic("no facts") },
	})
	if d := e.Decide(t.Context(), toolCall("c", "Bash", `{}`)); d.Verdict != event.Deny {
		t.Errorf("got %+v, want a denial", d)
	}
}

func TestEngine_CountsCalls(t *testing.T) {
	var seen []int
	limit := gate.Policy{Name: "limit", Judge: func(_ *gate.Call, f *gate.Facts) (event.Decision, bool) {
		seen = append(seen, f.Calls)
		if f.Now.IsZero() {
			t.Error("the facts have no time")
		}
		return event.Decision{Verdict: event.Allow}, true
	}}
	for name, facts := range map[string]func(context.Context, gate.Call) gate.Facts{
		"by itself": nil, "where the caller does not": func(context.Context, gate.Call) gate.Facts { return gate.Facts{Dir: "/"} },
	} {
		t.Run(name, func(t *testing.T) {
			seen = nil
			e := gate.NewEngine(gate.ForClaude(limit), &gate.EngineOptions{Facts: facts})
			for _, id := range []string{"1", "1", "2", "3"} {
				e.Decide(t.Context(), toolCall(id, "Bash", `{}`))
			}
			if diff := cmp.Diff([]int{0, 1, 2}, seen); diff != "" {
				t.Errorf("calls before (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEngine_ForgetsTheOldestVerdicts(t *testing.T) {
	p := answering(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p})
	const kept = 4096
	for i := range kept + 1 {
		e.Decide(t.Context(), toolCall(fmt.Sprint(i), "Bash", `{}`))
	}
	for _, tt := range []struct {
		id    int
		asked int64
	}{{kept, kept + 1}, {1, kept + 1}, {0, kept + 2}} {
		e.Decide(t.Context(), toolCall(fmt.Sprint(tt.id), "Bash", `{}`))
		if got := p.asked.Load(); got != tt.asked {
			t.Errorf("asked %d times after call %d again, want %d", got, tt.id, tt.asked)
		}
	}
}
