// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

func TestApprover_EveryQuestionIsAnsweredOrDenied(t *testing.T) {
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
			name: "yes", answer: answering(gate.Answer{Verdict: event.Allow}).answer,
			want: event.Decision{Verdict: event.Allow, Asked: true},
		},
		{
			name: "no", answer: answering(gate.Answer{Reason: "Not today."}).answer,
			want: event.Decision{Reason: "Not today.", Asked: true},
		},
		{
			name: "the zero answer", answer: answering(gate.Answer{}).answer,
			want: event.Decision{Reason: "Bash was not approved. Continue without this call.", Asked: true},
		},
		{
			name: "ask is no answer", answer: answering(gate.Answer{Verdict: event.Ask}).answer,
			want: event.Decision{Reason: "Bash was not approved. Continue without this call.", Asked: true},
		},
		{
			name: "no approver",
			want: event.Decision{Reason: needs + "no approver is set. Continue without this call."},
		},
		{
			name: "an error", answer: func(context.Context, gate.Question) (gate.Answer, error) {
				return gate.Answer{Verdict: event.Allow}, errGone
			},
			want: event.Decision{Reason: needs + "the approver failed: it returned an error. Continue without this call.", Asked: true},
		},
		{
			name: "a panic", answer: func(context.Context, gate.Question) (gate.Answer, error) { panic("a secret of the host") },
			want: event.Decision{Reason: needs + "the approver failed: it panicked. Continue without this call.", Asked: true},
		},
		{
			name: "never, with the usual time", answer: never,
			want: event.Decision{Reason: needs + "no answer came within 5m0s. Continue without this call.", Asked: true}, after: 5 * time.Minute,
		},
		{
			name: "never, with a time of its own", answer: never, timeout: time.Second,
			want: event.Decision{Reason: needs + "no answer came within 1s. Continue without this call.", Asked: true}, after: time.Second,
		},
		{
			name: "withdrawn", answer: never, timeout: -1, cancel: time.Hour,
			want: event.Decision{Reason: needs + "the question was withdrawn before an answer came (the run was stopped). Continue without this call.", Asked: true}, after: time.Hour,
		},
		{
			name: "in the last moment", timeout: time.Minute, answer: after(time.Minute - 1),
			want: event.Decision{Verdict: event.Allow, Asked: true}, after: time.Minute - 1,
		},
		{
			name: "too late", timeout: time.Minute, answer: after(time.Minute + 1),
			want: event.Decision{Reason: needs + "no answer came within 1m0s. Continue without this call.", Asked: true}, after: time.Minute,
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
				e := gate.NewEngine(askingGate(), opts)
				got := e.Decide(ctx, toolCall("c", "Bash", `{}`))
				tt.want.CallID, tt.want.Tool, tt.want.Policy = "c", "Bash", "approver"
				if diff := cmp.Diff(tt.want, got, withoutChain); diff != "" {
					t.Errorf("decision (-want +got):\n%s", diff)
				}
				if got := time.Since(started); got != tt.after {
					t.Errorf("it took %s, want %s", got, tt.after)
				}
				time.Sleep(time.Hour) // the answer that is too late comes
				if diff := cmp.Diff(tt.want, e.Decide(t.Context(), toolCall("c", "Bash", `{}`)), withoutChain); diff != "" {
					t.Errorf("the second time (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func never(ctx context.Context, _ gate.Question) (gate.Answer, error) {
	<-ctx.Done()
	return gate.Answer{Verdict: event.Allow}, nil // no caller may receive this
}

// after approves for good after a while, whether or not a caller still waits.
func after(d time.Duration) func(context.Context, gate.Question) (gate.Answer, error) {
	return func(context.Context, gate.Question) (gate.Answer, error) {
		time.Sleep(d)
		return gate.Answer{Verdict: event.Allow, Remember: gate.SameTool}, nil
	}
}

func TestApprover_LateAnswerIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{answer: after(time.Hour)}
		e := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p, ApprovalTimeout: time.Minute})
		e.Decide(t.Context(), toolCall("c1", "Bash", `{}`))
		time.Sleep(2 * time.Hour) // now the answer has come
		if d := e.Decide(t.Context(), toolCall("c1", "Bash", `{}`)); d.Verdict != event.Deny {
			t.Errorf("%+v: the late answer changed the verdict", d)
		}
		if d := e.Decide(t.Context(), toolCall("c2", "Bash", `{}`)); d.Verdict != event.Deny || d.Remembered || p.asked.Load() != 2 {
			t.Errorf("%+v after %d questions: the late answer was remembered", d, p.asked.Load())
		}
		time.Sleep(2 * time.Hour) // for the second approver to end
	})
}

func TestAnswer_AppliesToItsScope(t *testing.T) {
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
		{"once", yes(gate.Once), toolCall("2", "save", `{"a":1}`), 0, 2, event.Allow},
		{"same input, asked with it", yes(gate.SameInput), toolCall("2", "mcp__files__save", `{"a": 1}`), 0, 1, event.Allow},
		{"same input, asked with another", yes(gate.SameInput), toolCall("2", "save", `{"a":2}`), 0, 2, event.Allow},
		{"same input, another tool", yes(gate.SameInput), toolCall("2", "load", `{"a":1}`), 0, 2, event.Allow},
		{"same tool, any input", yes(gate.SameTool), toolCall("2", "save", `{"a":2}`), 0, 1, event.Allow},
		{"same tool, another tool", yes(gate.SameTool), toolCall("2", "load", `{"a":1}`), 0, 2, event.Allow},
		{"same tool, that of a foreign server", yes(gate.SameTool), toolCall("2", "mcp__evil__save", `{"a":1}`), 0, 2, event.Allow},
		{"same tool, with an argument in its name", yes(gate.SameTool), toolCall("2", "save(x)", `{"a":1}`), 0, 2, event.Allow},
		{"same tool, but the gate denies", yes(gate.SameTool), toolCall("2", "save", `{"a":"forbidden"}`), 0, 1, event.Deny},
		{"an unknown scope", yes(77), toolCall("2", "save", `{"a":1}`), 0, 2, event.Allow},
		{"a rejection once", gate.Answer{}, toolCall("2", "save", `{"a":1}`), 0, 2, event.Deny},
		{"a rejection of the tool", gate.Answer{Remember: gate.SameTool}, toolCall("2", "save", `{"a":2}`), 0, 1, event.Deny},
		{"a new input is what is remembered", gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"a":9}`), Remember: gate.SameInput}, toolCall("2", "save", `{"a":9}`), 0, 1, event.Allow},
		{"and not the old one", gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"a":9}`), Remember: gate.SameInput}, toolCall("2", "save", `{"a":1}`), 0, 2, event.Allow},
		{"before its end", gate.Answer{Verdict: event.Allow, Remember: gate.SameTool, Until: until}, toolCall("2", "save", `{}`), time.Hour - 1, 1, event.Allow},
		{"at its end", gate.Answer{Verdict: event.Allow, Remember: gate.SameTool, Until: until}, toolCall("2", "save", `{}`), time.Hour, 2, event.Allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := answering(tt.answer)
				e := gate.NewEngine(askingGate(filesRegistry()), &gate.EngineOptions{Approver: p})
				e.Decide(t.Context(), toolCall("1", "mcp__files__save", `{"a":1}`))
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

// Four calls wait for an answer. One answer for the whole tool is enough for all that it is about.
func TestAnswer_AppliesToOpenQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var withdrawn atomic.Int64
		p := &person{answer: func(ctx context.Context, q gate.Question) (gate.Answer, error) {
			if q.Call.ID == "answered" {
				time.Sleep(time.Minute)
				return gate.Answer{Verdict: event.Allow, Remember: gate.SameTool}, nil
			}
			<-ctx.Done()
			withdrawn.Add(1)
			return gate.Answer{}, ctx.Err()
		}}
		e := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p, ApprovalTimeout: time.Hour})
		var all sync.WaitGroup
		for _, tt := range []struct {
			id, tool   string
			want       event.Verdict
			after      time.Duration
			remembered bool
		}{
			{"answered", "Bash", event.Allow, time.Minute, false},
			{"open", "Bash", event.Allow, time.Minute, true},
			{"open too", "Bash", event.Allow, time.Minute, true},
			{"another tool", "Write", event.Deny, time.Hour, false},
		} {
			all.Go(func() {
				started := time.Now()
				d := e.Decide(t.Context(), toolCall(tt.id, tt.tool, `{"id":"`+tt.id+`"}`))
				if d.Verdict != tt.want || time.Since(started) != tt.after || d.Remembered != tt.remembered || !d.Asked {
					t.Errorf("%s: %+v after %s, want %s after %s", tt.id, d, time.Since(started), tt.want, tt.after)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if withdrawn.Load() != 3 {
			t.Errorf("%d questions were withdrawn from the approver, want 3", withdrawn.Load())
		}
	})
}

// The last answer about the tool is a no, so that the earlier yes to one input does not hold.
func TestAnswer_RejectionOfTheToolOverridesAnEarlierApproval(t *testing.T) {
	answers := map[string]gate.Answer{
		`{"a":1}`: {Verdict: event.Allow, Remember: gate.SameInput}, `{"a":2}`: {Reason: "No more.", Remember: gate.SameTool},
	}
	p := &person{answer: func(_ context.Context, q gate.Question) (gate.Answer, error) {
		return answers[string(q.Call.Input)], nil
	}}
	e := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p})
	for i, want := range []event.Verdict{event.Allow, event.Deny, event.Deny} {
		if d := e.Decide(t.Context(), toolCall(fmt.Sprint(i), "Bash", []string{`{"a":1}`, `{"a":2}`, `{"a":1}`}[i])); d.Verdict != want {
			t.Errorf("call %d: %+v, want %s", i, d, want)
		}
	}
}

// An answer that comes when the question is withdrawn already counts for nothing, whichever of both
// is noticed first.
func TestApprover_AnswerAfterWithdrawalIsIgnored(t *testing.T) {
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		p := &person{answer: func(context.Context, gate.Question) (gate.Answer, error) {
			cancel()
			return gate.Answer{Verdict: event.Allow}, nil
		}}
		if d := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p}).Decide(ctx, toolCall("c", "Bash", `{}`)); d.Verdict != event.Deny {
			t.Fatalf("try %d: %+v, want it denied", i, d)
		}
	}
}

// The tool that was approved read only. The one that has taken its name does more.
func TestAnswer_ApprovalEndsWhenTheToolIsReplaced(t *testing.T) {
	look := func(risk tool.Risk) *tool.Tool {
		return tool.Must("look", "Looks.", func(context.Context, struct{}) (string, error) { return "", nil }, risk)
	}
	registry := tool.MustRegistry(nil, look(tool.ReadOnly))
	p := answering(gate.Answer{Verdict: event.Allow, Remember: gate.SameTool})
	e := gate.NewEngine(askingGate(gate.Knows("x", registry)), &gate.EngineOptions{Approver: p})
	for i, want := range []int64{1, 1, 2} {
		if i == 2 {
			if err := registry.Replace(look(tool.Dangerous)); err != nil {
				t.Fatal(err)
			}
		}
		e.Decide(t.Context(), toolCall(fmt.Sprint(i), "look", `{}`))
		if got := p.asked.Load(); got != want {
			t.Errorf("asked %d times after call %d, want %d", got, i, want)
		}
	}
}

func TestApprover_ItsInputIsJudged(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		want        event.Decision
	}{
		{"fine", `{"a":2}`, event.Decision{Verdict: event.Allow, Input: json.RawMessage(`{"a":2}`), Policy: "approver"}},
		{"denied", `{"a":"forbidden"}`, event.Decision{Reason: "That is forbidden.", Policy: "test"}},
		{"no object", `[1]`, event.Decision{Reason: "Bash is denied: the approver gave an input that is not a JSON object. Continue without this call.", Policy: "approver"}},
		{"no JSON", `{"a"`, event.Decision{Reason: "Bash is denied: the approver gave an input that is not a JSON object. Continue without this call.", Policy: "approver"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := answering(gate.Answer{Verdict: event.Allow, Input: json.RawMessage(tt.input), Remember: gate.SameTool})
			e := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p})
			got := e.Decide(t.Context(), toolCall("c", "Bash", `{"a":1}`))
			tt.want.CallID, tt.want.Tool, tt.want.Asked = "c", "Bash", true
			if diff := cmp.Diff(tt.want, got, withoutChain); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if tt.want.Verdict != event.Deny {
				return
			}
			if d := e.Decide(t.Context(), toolCall("d", "Bash", `{"a":1}`)); d.Remembered {
				t.Errorf("%+v: the approval of an input that was denied is remembered", d)
			}
		})
	}
}
