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
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	_ "github.com/drover-agents/drover/internal/testsize"
	"github.com/drover-agents/drover/tool"
)

// judged is a policy made of a function.
func judged(judge func(c gate.Call) (event.Decision, bool)) gate.Policy {
	return gate.Policy{Name: "test", Stage: gate.StageCustom, Judge: func(c gate.Call, _ gate.Facts) (event.Decision, bool) { return judge(c) }}
}

// asks is a gate that asks about every call, except that it denies inputs that contain "forbidden".
func asks(policies ...gate.Policy) *gate.Gate {
	return gate.Must(append(policies, judged(func(c gate.Call) (event.Decision, bool) {
		if strings.Contains(string(c.Input), "forbidden") {
			return event.Decision{Reason: "That is forbidden."}, true
		}
		return event.Decision{Verdict: event.Ask, Reason: "just to be sure"}, true
	}))...)
}

// files is a registry with a tool of ours, served under the key "files".
func files() gate.Policy {
	save := tool.Must("save", "Saves.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Mutates)
	return gate.Policy{Name: "files", Tools: map[string]gate.Lookup{"files": tool.MustRegistry(nil, save)}}
}

// A person answers questions as told, and counts them.
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

func saying(a gate.Answer) *person {
	return &person{answer: func(context.Context, gate.Question) (gate.Answer, error) { return a, nil }}
}

func call(id, name, input string) event.ToolCall {
	return event.ToolCall{ID: id, Name: name, Input: json.RawMessage(input)}
}

func TestOneVerdictForOneCall(t *testing.T) {
	first := call("c1", "mcp__files__save", `{"path":"a","mode":1}`)
	for _, tt := range []struct {
		name  string
		again event.ToolCall
		asked int64
	}{
		{"the same", first, 1},
		{"keys in another order", call("c1", "mcp__files__save", `{ "mode": 1, "path": "a" }`), 1},
		{"by its bare name", call("c1", "save", `{"path":"a","mode":1}`), 1},
		{"by its id", call("c1", "default:save", `{"path":"a","mode":1}`), 1},
		{"with the input that the answer gave", call("c1", "save", `{"path":"b"}`), 1},
		{"another id", call("c2", "mcp__files__save", `{"path":"a","mode":1}`), 2},
		{"another input", call("c1", "mcp__files__save", `{"path":"a","mode":2}`), 2},
		{"a number that is not quite the same", call("c1", "mcp__files__save", `{"path":"a","mode":1.0000000000000000001}`), 2},
		{"another tool", call("c1", "Write", `{"path":"a","mode":1}`), 2},
		{"a foreign server's tool of the same name", call("c1", "mcp__evil__save", `{"path":"a","mode":1}`), 2},
		{"an input that the answer would give, to another tool", call("c1", "mcp__evil__save", `{"path":"b"}`), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := saying(gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"path":"b"}`)})
			e := gate.NewEngine(asks(files()), &gate.EngineOptions{Approver: p})
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

func TestACallWithoutAnIDIsDecidedEachTime(t *testing.T) {
	p := saying(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(asks(), &gate.EngineOptions{Approver: p})
	for range 3 {
		e.Decide(t.Context(), call("", "Bash", `{}`))
	}
	if got := p.asked.Load(); got != 3 {
		t.Errorf("asked %d times, want 3", got)
	}
}

// Two registries have a tool of the name. What was said about one must not count for the bare name,
// which may mean the other.
func TestANameThatMeansTwoToolsIsItsOwnCall(t *testing.T) {
	other := gate.Policy{Name: "other", Tools: map[string]gate.Lookup{"other": tool.MustRegistry(nil,
		tool.Must("save", "Saves elsewhere.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Dangerous))}}
	p := saying(gate.Answer{Verdict: event.Allow, Remember: gate.SameTool})
	e := gate.NewEngine(asks(files(), other), &gate.EngineOptions{Approver: p})
	for i, name := range []string{"mcp__files__save", "mcp__other__save", "save"} {
		e.Decide(t.Context(), call("c1", name, `{}`))
		if got := p.asked.Load(); got != int64(i+1) {
			t.Errorf("asked %d times after %s, want %d", got, name, i+1)
		}
	}
}

func TestQuestionsAboutACallWaitForItsDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{answer: func(context.Context, gate.Question) (gate.Answer, error) {
			time.Sleep(time.Minute)
			return gate.Answer{Verdict: event.Allow}, nil
		}}
		e := gate.NewEngine(asks(), &gate.EngineOptions{Approver: p})
		var all sync.WaitGroup
		started := time.Now()
		for range 20 {
			all.Go(func() {
				if d := e.Decide(t.Context(), call("c", "Bash", `{}`)); d.Verdict != event.Allow {
					t.Errorf("%+v, want it allowed", d)
				}
			})
		}
		synctest.Wait() // one asks, the others wait
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d := e.Decide(ctx, call("c", "Bash", `{}`)); d.Verdict != event.Deny || !strings.Contains(d.Reason, "withdrawn") || time.Since(started) != time.Second {
			t.Errorf("after %s: %+v, want a denial when the context of the one that waits ends", time.Since(started), d)
		}
		all.Wait()
		if d := e.Decide(t.Context(), call("c", "Bash", `{}`)); d.Verdict != event.Allow {
			t.Errorf("%+v: who withdrew must not decide for the others", d)
		}
		if p.asked.Load() != 1 || time.Since(started) != time.Minute {
			t.Errorf("asked %d times, %s; want once, a minute", p.asked.Load(), time.Since(started))
		}
	})
}

func TestAnAskIsAnsweredOrDenied(t *testing.T) {
	const needs = "Bash needs approval (just to be sure), and "
	errGone := errors.New("a secret of the host")
	for _, tt := range []struct {
		name    string
		answer  func(ctx context.Context, q gate.Question) (gate.Answer, error) // nil for no approver
		timeout time.Duration
		cancel  time.Duration // when the caller gives up
		want    event.Decision
		after   time.Duration
	}{
		{
			name: "yes", answer: saying(gate.Answer{Verdict: event.Allow}).answer,
			want: event.Decision{Verdict: event.Allow, Asked: true},
		},
		{
			name: "no", answer: saying(gate.Answer{Reason: "Not today."}).answer,
			want: event.Decision{Reason: "Not today.", Asked: true},
		},
		{
			name: "the zero answer", answer: saying(gate.Answer{}).answer,
			want: event.Decision{Reason: "Bash was not approved.", Asked: true},
		},
		{
			name: "ask is no answer", answer: saying(gate.Answer{Verdict: event.Ask}).answer,
			want: event.Decision{Reason: "Bash was not approved.", Asked: true},
		},
		{
			name: "nobody is there",
			want: event.Decision{Reason: needs + "nobody is there to give it (no approver is set). Go on without this call."},
		},
		{
			name: "an error", answer: func(context.Context, gate.Question) (gate.Answer, error) {
				return gate.Answer{Verdict: event.Allow}, errGone
			},
			want: event.Decision{Reason: needs + "asking for it failed (the approver returned an error). Go on without this call.", Asked: true},
		},
		{
			name: "a panic", answer: func(context.Context, gate.Question) (gate.Answer, error) { panic("a secret of the host") },
			want: event.Decision{Reason: needs + "asking for it failed (the approver panicked). Go on without this call.", Asked: true},
		},
		{
			name: "never, with the usual time", answer: never,
			want: event.Decision{Reason: needs + "nobody answered within 5m0s. Go on without this call.", Asked: true}, after: 5 * time.Minute,
		},
		{
			name: "never, with a time of its own", answer: never, timeout: time.Second,
			want: event.Decision{Reason: needs + "nobody answered within 1s. Go on without this call.", Asked: true}, after: time.Second,
		},
		{
			name: "withdrawn", answer: never, timeout: -1, cancel: time.Hour,
			want: event.Decision{Reason: needs + "the question was withdrawn before an answer came (the run was stopped). Go on without this call.", Asked: true}, after: time.Hour,
		},
		{
			name: "in the last moment", timeout: time.Minute, answer: after(time.Minute - 1),
			want: event.Decision{Verdict: event.Allow, Asked: true}, after: time.Minute - 1,
		},
		{
			name: "too late", timeout: time.Minute, answer: after(time.Minute),
			want: event.Decision{Reason: needs + "nobody answered within 1m0s. Go on without this call.", Asked: true}, after: time.Minute,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := &gate.EngineOptions{ApprovalTimeout: tt.timeout}
				if tt.answer != nil {
					opts.Approver = gate.ApproverFunc(tt.answer)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, func() { cancel(errors.New("the run was stopped")) })
				}
				started := time.Now()
				e := gate.NewEngine(asks(), opts)
				got := e.Decide(ctx, call("c", "Bash", `{}`))
				tt.want.CallID, tt.want.Tool, tt.want.Policy = "c", "Bash", "approver"
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("decision (-want +got):\n%s", diff)
				}
				if got := time.Since(started); got != tt.after {
					t.Errorf("it took %s, want %s", got, tt.after)
				}
				synctest.Wait()
				if diff := cmp.Diff(tt.want, e.Decide(t.Context(), call("c", "Bash", `{}`))); diff != "" {
					t.Errorf("the second time (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func never(ctx context.Context, _ gate.Question) (gate.Answer, error) {
	<-ctx.Done()
	return gate.Answer{Verdict: event.Allow}, nil // nobody may hear this
}

// after says yes for good after a while, whether or not anybody still listens.
func after(d time.Duration) func(context.Context, gate.Question) (gate.Answer, error) {
	return func(context.Context, gate.Question) (gate.Answer, error) {
		time.Sleep(d)
		return gate.Answer{Verdict: event.Allow, Remember: gate.SameTool}, nil
	}
}

func TestALateAnswerIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{answer: after(time.Hour)}
		e := gate.NewEngine(asks(), &gate.EngineOptions{Approver: p, ApprovalTimeout: time.Minute})
		e.Decide(t.Context(), call("c1", "Bash", `{}`))
		time.Sleep(2 * time.Hour) // now the answer has come
		if d := e.Decide(t.Context(), call("c1", "Bash", `{}`)); d.Verdict != event.Deny {
			t.Errorf("%+v: the late answer changed the verdict", d)
		}
		if d := e.Decide(t.Context(), call("c2", "Bash", `{}`)); d.Verdict != event.Deny || d.Remembered || p.asked.Load() != 2 {
			t.Errorf("%+v after %d questions: the late answer was remembered", d, p.asked.Load())
		}
		time.Sleep(2 * time.Hour) // for the second approver to end
	})
}

func TestAnAnswerHoldsAsFarAsItSays(t *testing.T) {
	until := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC) // synctest begins at midnight
	yes := func(s gate.Scope) gate.Answer { return gate.Answer{Verdict: event.Allow, Remember: s} }
	for _, tt := range []struct {
		name   string
		answer gate.Answer
		second event.ToolCall
		wait   time.Duration
		asked  int64
		want   event.Verdict
	}{
		{"once", yes(gate.Once), call("2", "save", `{"a":1}`), 0, 2, event.Allow},
		{"same input, asked with it", yes(gate.SameInput), call("2", "mcp__files__save", `{"a": 1}`), 0, 1, event.Allow},
		{"same input, asked with another", yes(gate.SameInput), call("2", "save", `{"a":2}`), 0, 2, event.Allow},
		{"same input, another tool", yes(gate.SameInput), call("2", "load", `{"a":1}`), 0, 2, event.Allow},
		{"same tool, any input", yes(gate.SameTool), call("2", "save", `{"a":2}`), 0, 1, event.Allow},
		{"same tool, another tool", yes(gate.SameTool), call("2", "load", `{"a":1}`), 0, 2, event.Allow},
		{"same tool, that of a foreign server", yes(gate.SameTool), call("2", "mcp__evil__save", `{"a":1}`), 0, 2, event.Allow},
		{"same tool, with an argument in its name", yes(gate.SameTool), call("2", "save(x)", `{"a":1}`), 0, 2, event.Allow},
		{"same tool, but the gate denies", yes(gate.SameTool), call("2", "save", `{"a":"forbidden"}`), 0, 1, event.Deny},
		{"an unknown scope", yes(77), call("2", "save", `{"a":1}`), 0, 2, event.Allow},
		{"a rejection once", gate.Answer{}, call("2", "save", `{"a":1}`), 0, 2, event.Deny},
		{"a rejection of the tool", gate.Answer{Remember: gate.SameTool}, call("2", "save", `{"a":2}`), 0, 1, event.Deny},
		{"a new input is what is remembered", gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"a":9}`), Remember: gate.SameInput}, call("2", "save", `{"a":9}`), 0, 1, event.Allow},
		{"and not the old one", gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"a":9}`), Remember: gate.SameInput}, call("2", "save", `{"a":1}`), 0, 2, event.Allow},
		{"before its end", gate.Answer{Verdict: event.Allow, Remember: gate.SameTool, Until: until}, call("2", "save", `{}`), time.Hour - 1, 1, event.Allow},
		{"at its end", gate.Answer{Verdict: event.Allow, Remember: gate.SameTool, Until: until}, call("2", "save", `{}`), time.Hour, 2, event.Allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := saying(tt.answer)
				e := gate.NewEngine(asks(files()), &gate.EngineOptions{Approver: p})
				e.Decide(t.Context(), call("1", "mcp__files__save", `{"a":1}`))
				time.Sleep(tt.wait)
				d := e.Decide(t.Context(), tt.second)
				if d.Verdict != tt.want || p.asked.Load() != tt.asked {
					t.Errorf("%+v after %d questions, want %s after %d", d, p.asked.Load(), tt.want, tt.asked)
				}
				if again := tt.asked == 1 && d.Policy == "approver"; d.Remembered != again || d.Asked && again {
					t.Errorf("%+v, want Remembered %t", d, again)
				}
			})
		})
	}
}

// The tool that was approved read only. The one that has taken its name does more.
func TestAnApprovalEndsWhenTheToolBecomesAnother(t *testing.T) {
	look := func(risk tool.Risk) *tool.Tool {
		return tool.Must("look", "Looks.", func(context.Context, struct{}) (string, error) { return "", nil }, risk)
	}
	registry := tool.MustRegistry(nil, look(tool.ReadOnly))
	p := saying(gate.Answer{Verdict: event.Allow, Remember: gate.SameTool})
	e := gate.NewEngine(asks(gate.Policy{Tools: map[string]gate.Lookup{"x": registry}}), &gate.EngineOptions{Approver: p})
	for i, want := range []int64{1, 1, 2} {
		if i == 2 {
			if err := registry.Replace(look(tool.Dangerous)); err != nil {
				t.Fatal(err)
			}
		}
		e.Decide(t.Context(), call(fmt.Sprint(i), "look", `{}`))
		if got := p.asked.Load(); got != want {
			t.Errorf("asked %d times after call %d, want %d", got, i, want)
		}
	}
}

func TestAnInputThatTheApproverGivesIsJudged(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		want        event.Decision
	}{
		{"fine", `{"a":2}`, event.Decision{Verdict: event.Allow, Input: json.RawMessage(`{"a":2}`), Policy: "approver"}},
		{"denied", `{"a":"forbidden"}`, event.Decision{Reason: "That is forbidden.", Policy: "test"}},
		{"no object", `[1]`, event.Decision{Reason: "Bash was approved with an input that is not a JSON object, so it is denied.", Policy: "approver"}},
		{"no JSON", `{"a"`, event.Decision{Reason: "Bash was approved with an input that is not a JSON object, so it is denied.", Policy: "approver"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := saying(gate.Answer{Verdict: event.Allow, Input: json.RawMessage(tt.input), Remember: gate.SameTool})
			e := gate.NewEngine(asks(), &gate.EngineOptions{Approver: p})
			got := e.Decide(t.Context(), call("c", "Bash", `{"a":1}`))
			tt.want.CallID, tt.want.Tool, tt.want.Asked = "c", "Bash", true
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if tt.want.Verdict != event.Deny {
				return
			}
			if d := e.Decide(t.Context(), call("d", "Bash", `{"a":1}`)); d.Remembered {
				t.Errorf("%+v: the approval of an input that was denied is remembered", d)
			}
		})
	}
}

// The person sees what would run: the input as the policies have rewritten it.
func TestTheQuestionTellsAllThatIsKnown(t *testing.T) {
	rewrites := judged(func(c gate.Call) (event.Decision, bool) {
		return event.Decision{Verdict: event.Ask, Reason: "it saves", Input: json.RawMessage(`{"path":"/tmp/x"}`)}, true
	})
	p := saying(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(gate.Must(files(), rewrites), &gate.EngineOptions{Approver: p})
	c := call("c", "mcp__files__save", `{"path":"x"}`)
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

func TestEachQuestionAndEachDecisionIsAnEventOnce(t *testing.T) {
	var got []string
	emit := func(ev event.Event) {
		switch p := ev.Payload.(type) {
		case event.PermissionRequest:
			got = append(got, fmt.Sprintf("%s %s %s %s: %s", ev.Kind, p.ID, p.Name, p.Input, p.Reason))
		case event.Decision:
			got = append(got, fmt.Sprintf("%s %s %s %s asked:%t remembered:%t", ev.Kind, p.CallID, p.Tool, p.Verdict, p.Asked, p.Remembered))
		}
	}
	p := saying(gate.Answer{Verdict: event.Allow, Remember: gate.SameInput})
	e := gate.NewEngine(asks(), &gate.EngineOptions{Approver: p, Emit: emit})
	for _, c := range []event.ToolCall{
		call("1", "Bash", `{"a":1}`), call("1", "Bash", `{"a":1}`), call("2", "Bash", `{"a":1}`), call("3", "Bash", `{"a":"forbidden"}`),
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

func TestWithoutAnApproverThereIsStillAQuestion(t *testing.T) {
	var kinds []event.Kind
	e := gate.NewEngine(asks(), &gate.EngineOptions{Emit: func(ev event.Event) { kinds = append(kinds, ev.Kind) }})
	e.Decide(t.Context(), call("1", "Bash", `{}`))
	if diff := cmp.Diff([]event.Kind{event.KindPermissionRequest, event.KindDecision}, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Whatever breaks, the call is denied, and the model does not read the host's own words.
func TestWhatBreaksDenies(t *testing.T) {
	allow := gate.Must(judged(func(gate.Call) (event.Decision, bool) { return event.Decision{Verdict: event.Allow}, true }))
	const secret = "a secret of the host"
	for _, tt := range []struct {
		name string
		gate *gate.Gate
		opts *gate.EngineOptions
		want string
	}{
		{"no gate", nil, nil, "Tool not allowed: Bash"},
		{"facts", allow, &gate.EngineOptions{Facts: func(context.Context, gate.Call) gate.Facts { panic(secret) }}, "failed"},
		{"events", allow, &gate.EngineOptions{Emit: func(event.Event) { panic(secret) }}, "could not be recorded"},
		{"event of the question", asks(), &gate.EngineOptions{
			Approver: saying(gate.Answer{Verdict: event.Allow}),
			Emit: func(ev event.Event) {
				if ev.Kind == event.KindPermissionRequest {
					panic(secret)
				}
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
				d := e.Decide(t.Context(), call("c", "Bash", `{}`))
				if d.Verdict != event.Deny || !strings.Contains(d.Reason, tt.want) || strings.Contains(d.Reason, secret) {
					t.Errorf("%+v, want a denial that says %q", d, tt.want)
				}
			}
			if tt.opts != nil && !strings.Contains(log.String(), secret) {
				t.Errorf("the log says %q, want the panic", log.String())
			}
		})
	}
}

func TestTheEngineCountsCalls(t *testing.T) {
	var seen []int
	limit := gate.Policy{Name: "limit", Judge: func(_ gate.Call, f gate.Facts) (event.Decision, bool) {
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
			e := gate.NewEngine(gate.Must(limit), &gate.EngineOptions{Facts: facts})
			for _, id := range []string{"1", "1", "2", "3"} {
				e.Decide(t.Context(), call(id, "Bash", `{}`))
			}
			if diff := cmp.Diff([]int{0, 1, 2}, seen); diff != "" {
				t.Errorf("calls before (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEngineForgetsTheOldestVerdicts(t *testing.T) {
	p := saying(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(asks(), &gate.EngineOptions{Approver: p})
	const kept = 4096
	for i := range kept + 1 {
		e.Decide(t.Context(), call(fmt.Sprint(i), "Bash", `{}`))
	}
	for _, tt := range []struct {
		id    int
		asked int64
	}{{kept, kept + 1}, {1, kept + 1}, {0, kept + 2}} {
		e.Decide(t.Context(), call(fmt.Sprint(tt.id), "Bash", `{}`))
		if got := p.asked.Load(); got != tt.asked {
			t.Errorf("asked %d times after call %d again, want %d", got, tt.id, tt.asked)
		}
	}
}

// However calls come, at whatever places and at the same time: each is asked about once, and all who
// ask get the same verdict.
func TestOneVerdictHowever(t *testing.T) {
	spellings := map[string][]string{"save": {"save", "mcp__files__save", "default:save"}, "evil": {"mcp__evil__save"}, "Bash": {"Bash", " Bash "}}
	inputs := map[string][]string{"1": {`{"a":1,"b":2}`, `{"b":2,"a":1}`, "{\"a\": 1,\n\"b\": 2}"}, "2": {`{"a":1}`, ` {"a":1}`}, "none": {``, `{}`, ` `}}
	rapid.Check(t, func(t *rapid.T) {
		var mu sync.Mutex
		asked, verdicts := map[string]int{}, map[string]event.Verdict{}
		names := map[string]string{}
		for name, all := range spellings {
			for _, s := range all {
				names[s] = name
			}
		}
		approver := gate.ApproverFunc(func(_ context.Context, q gate.Question) (gate.Answer, error) {
			mu.Lock()
			defer mu.Unlock()
			for meaning, all := range inputs {
				for _, text := range all {
					if text == string(q.Call.Input) {
						asked[q.Call.ID+names[q.Call.Name]+meaning]++
					}
				}
			}
			return gate.Answer{Verdict: event.Verdict(2 * (len(asked) % 2))}, nil
		})
		e := gate.NewEngine(asks(files()), &gate.EngineOptions{Approver: approver})
		var all sync.WaitGroup
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			id := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "id")
			name := rapid.SampledFrom([]string{"save", "evil", "Bash"}).Draw(t, "tool")
			meaning := rapid.SampledFrom([]string{"1", "2", "none"}).Draw(t, "input")
			c := call(id, rapid.SampledFrom(spellings[name]).Draw(t, "spelling"), rapid.SampledFrom(inputs[meaning]).Draw(t, "text"))
			all.Go(func() {
				d := e.Decide(context.Background(), c)
				mu.Lock()
				defer mu.Unlock()
				if before, known := verdicts[id+name+meaning]; known && before != d.Verdict {
					t.Errorf("%s %s %s: %s, and before %s", id, c.Name, c.Input, d.Verdict, before)
				}
				verdicts[id+name+meaning] = d.Verdict
			})
		}
		all.Wait()
		for c, n := range asked {
			if n != 1 {
				t.Errorf("%s: asked %d times", c, n)
			}
		}
		if len(asked) != len(verdicts) {
			t.Errorf("%d questions about %d calls", len(asked), len(verdicts))
		}
	})
}

// An engine decides about the calls of a run: what the gate leaves open is asked once.
func ExampleEngine() {
	careful := gate.Policy{Name: "careful", Judge: func(c gate.Call, _ gate.Facts) (event.Decision, bool) {
		if c.Tool == "Bash" {
			return event.Decision{Verdict: event.Ask, Reason: "it is a shell"}, true
		}
		return event.Decision{Verdict: event.Allow}, true
	}}
	engine := gate.NewEngine(gate.Must(careful), &gate.EngineOptions{
		Approver: gate.ApproverFunc(func(_ context.Context, q gate.Question) (gate.Answer, error) {
			fmt.Printf("May it run %s %s? (%s)\n", q.Call.Name, q.Call.Input, q.Reason)
			return gate.Answer{Reason: "Use Read instead."}, nil
		}),
	})
	shell := event.ToolCall{ID: "toolu_1", Name: "Bash", Input: json.RawMessage(`{"command":"cat x"}`)}
	for range 2 { // at the hook, and at the permission callback
		d := engine.Decide(context.Background(), shell)
		fmt.Println(d.Verdict, "-", d.Reason)
	}
	// Output:
	// May it run Bash {"command":"cat x"}? (it is a shell)
	// deny - Use Read instead.
	// deny - Use Read instead.
}
