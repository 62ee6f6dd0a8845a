// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	_ "github.com/drover-agents/drover/internal/testkit"
)

func toolCall(id, input string) event.ToolCall {
	return event.ToolCall{ID: event.CallID(id), Name: "note", Input: json.RawMessage(input)}
}

// alwaysDecide answers every question in one way.
func alwaysDecide(o CallDecision) func(context.Context, event.ToolCall) (CallDecision, error) {
	return func(context.Context, event.ToolCall) (CallDecision, error) { return o, nil }
}

var (
	allows = alwaysDecide(CallDecision{Verdict: event.Allow})
	denies = alwaysDecide(CallDecision{Verdict: event.Deny, Reason: "no"})
	silent = alwaysDecide(CallDecision{Silent: true})
)

// countingHost allows what has "good" in its input.
type countingHost struct{ asked []event.ToolCall }

func (h *countingHost) Decide(_ context.Context, call event.ToolCall) event.Decision {
	h.asked = append(h.asked, call)
	if strings.Contains(string(call.Input), "good") {
		return event.Decision{Verdict: event.Allow}
	}
	return event.Decision{Reason: "bad input"}
}

func ask(t testing.TB, l *Ledger, asker int, call event.ToolCall, decide func(context.Context, event.ToolCall) (CallDecision, error)) CallDecision {
	t.Helper()
	got, err := l.Ask(t.Context(), Question{ToolCall: call, Asker: asker, Decide: decide})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A reader finds every stage of a call in one list.
func TestLedger_Stages(t *testing.T) {
	var names []string
	for _, s := range stages {
		names = append(names, s.name)
	}
	if diff := cmp.Diff([]string{"identify", "rewrite", "decide", "record", "begin", "end"}, names); diff != "" {
		t.Errorf("the stages (-want +got):\n%s", diff)
	}
}

// An id that comes again is another call, and no decision about the first one applies to it.
func TestLedger_AnIDThatComesAgainIsAnotherCall(t *testing.T) {
	for name, again := range map[string]func(l *Ledger){
		"after the end": func(l *Ledger) {
			l.Result(t.Context(), "call_0", true)
			ask(t, l, 1, toolCall("call_0", `{"n":1}`), silent)
		},
		"after a batch": func(l *Ledger) {
			l.EndBatch(t.Context(), event.ToolCall{ID: "call_0"})
			ask(t, l, 1, toolCall("call_0", `{"n":1}`), silent)
		},
		"the hook asks again": func(l *Ledger) { ask(t, l, 0, toolCall("call_0", `{"n":1}`), silent) },
		"another input":       func(l *Ledger) { ask(t, l, 1, toolCall("call_0", `{"n":2}`), silent) },
		"another tool": func(l *Ledger) {
			ask(t, l, 1, event.ToolCall{ID: "call_0", Name: "other", Input: json.RawMessage(`{"n":1}`)}, silent)
		},
		"the stream reports it twice": func(l *Ledger) { l.AddReported(toolCall("call_0", `{"n":1}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger(nil)
			ask(t, l, 0, toolCall("call_0", `{"n":1}`), denies)
			first := l.AddReported(toolCall("call_0", `{"n":1}`))
			again(l)
			if !l.Denied(first) || l.Denied(l.Last("call_0")) {
				t.Errorf("the first is denied: %t, and the second: %t; want the first alone", l.Denied(first), l.Denied(l.Last("call_0")))
			}
		})
	}
}

// Hooks, questions and the stream that report the same call share one record. Their order and the way the input is
// written do not matter.
func TestLedger_OneRecordForEachCall(t *testing.T) {
	l := NewLedger(nil)
	reported := l.AddReported(toolCall("a", `{"path":"x"}`))
	ask(t, l, 0, toolCall("a", `{"path":"/work/x","n":1}`), silent) // agents complete what the model wrote
	ask(t, l, 1, toolCall("a", `{"n":1,"path":"/work/x"}`), silent)
	if _, err := l.AskPermission(t.Context(), Question{ToolCall: toolCall("a", `{"n":1}`), Decide: denies}); err != nil {
		t.Fatal(err)
	}
	if len(l.order) != 1 || !l.Denied(reported) {
		t.Errorf("%d records, denied %t; want one that is denied", len(l.order), l.Denied(reported))
	}
}

// Whatever keeps a call from being made is a denial: the answer itself, an error, a panic, a Rewrite that fails.
func TestLedger_Denials(t *testing.T) {
	for name, x := range map[string]struct {
		decide  func(context.Context, event.ToolCall) (CallDecision, error)
		rewrite error
		denied  bool
	}{
		"allowed":     {allows, nil, false},
		"no decision": {silent, nil, false},
		"to be asked": {alwaysDecide(CallDecision{Verdict: event.Ask}), nil, false},
		"denied":      {denies, nil, true},
		"an error": {func(context.Context, event.ToolCall) (CallDecision, error) {
			return CallDecision{Silent: true}, errors.New("broken")
		}, nil, true},
		"a panic":       {func(context.Context, event.ToolCall) (CallDecision, error) { panic("broken") }, nil, true},
		"a bad rewrite": {allows, errors.New("broken"), true},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger(&LedgerOptions{Rewrite: func(context.Context, event.ToolCall) (json.RawMessage, error) { return nil, x.rewrite }})
			func() {
				defer func() { _ = recover() }()
				_, _ = l.Ask(t.Context(), Question{ToolCall: toolCall("a", `{}`), Decide: x.decide})
			}()
			if got := l.Denied(l.Last("a")); got != x.denied {
				t.Errorf("denied: %t, want %t", got, x.denied)
			}
		})
	}
}

// A call of our own tool runs because it was allowed with this input, once. All others are decided when they come, and
// a second run of an allowed call is another call.
func TestLedger_OwnCallsAreDecided(t *testing.T) {
	asks := alwaysDecide(CallDecision{Verdict: event.Ask})
	other := alwaysDecide(CallDecision{Verdict: event.Allow, Input: json.RawMessage(`{"n":2}`)})
	question := func(decide func(context.Context, event.ToolCall) (CallDecision, error)) func(l *Ledger) {
		return func(l *Ledger) {
			ask(t, l, 0, toolCall("a", `{"n":1}`), asks)
			_, _ = l.AskPermission(t.Context(), Question{ToolCall: toolCall("a", `{"n":1}`), Decide: decide})
		}
	}
	for name, x := range map[string]struct {
		before func(l *Ledger)
		call   string
		runs   bool
	}{
		"no hook was asked":          {func(*Ledger) {}, `{"n":1}`, false},
		"allowed":                    {func(l *Ledger) { ask(t, l, 0, toolCall("a", `{"n":1}`), allows) }, `{ "n": 1 }`, true},
		"allowed with another input": {func(l *Ledger) { ask(t, l, 0, toolCall("a", `{"n":3}`), allows) }, `{"n":1}`, false},
		"denied":                     {func(l *Ledger) { ask(t, l, 0, toolCall("a", `{"n":1}`), denies) }, `{"n":1}`, false},
		"denied, and allowed by one": {func(l *Ledger) {
			ask(t, l, 0, toolCall("a", `{"n":1}`), denies)
			ask(t, l, 1, toolCall("a", `{"n":1}`), allows)
		}, `{"n":1}`, false},
		"allowed, and denied by one": {func(l *Ledger) {
			ask(t, l, 0, toolCall("a", `{"n":1}`), allows)
			ask(t, l, 1, toolCall("a", `{"n":1}`), denies)
		}, `{"n":1}`, false},
		"to be asked": {func(l *Ledger) {
			ask(t, l, 0, toolCall("a", `{"n":1}`), asks)
			ask(t, l, 1, toolCall("a", `{"n":1}`), allows)
		}, `{"n":1}`, false},
		"asked and allowed":           {question(allows), `{"n":1}`, true},
		"asked and denied":            {question(denies), `{"n":1}`, false},
		"asked, and no decision":      {question(silent), `{"n":1}`, false},
		"replaced":                    {func(l *Ledger) { ask(t, l, 0, toolCall("a", `{"n":1}`), other) }, `{"n":2}`, true},
		"the input that was replaced": {func(l *Ledger) { ask(t, l, 0, toolCall("a", `{"n":1}`), other) }, `{"n":1}`, false},
		"a question about another one": {func(l *Ledger) {
			ask(t, l, 0, toolCall("a", `{"n":1}`), denies)
			ask(t, l, 1, toolCall("a", `{"n":1}`), allows)
			_, _ = l.AskPermission(t.Context(), Question{ToolCall: toolCall("a", ``), Decide: allows}) // a forged one
		}, `{"n":1}`, false},
		"under an id of another tool": {func(l *Ledger) {
			ask(t, l, 0, event.ToolCall{ID: "a", Name: "harmless", Input: json.RawMessage(`{"n":1}`)}, allows)
		}, `{"n":1}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			host := &countingHost{}
			l := NewLedger(&LedgerOptions{Host: host, Dir: "/work"})
			x.before(l)
			_, err := l.Call(t.Context(), toolCall("a", x.call))
			if (err == nil) != x.runs || x.runs != (len(host.asked) == 0) {
				t.Fatalf("the call gives %v after %d decisions, want that it runs: %t", err, len(host.asked), x.runs)
			}
			if _, err := l.Call(t.Context(), toolCall("a", x.call)); err == nil {
				t.Error("it runs twice")
			}
			if last := host.asked[len(host.asked)-1]; last.Dir != "/work" || last.ID == "a" {
				t.Errorf("the second was decided as %+v, want another id and the folder", last)
			}
		})
	}
}

func TestLedger_OwnCallsThatTheHostChanges(t *testing.T) {
	l := NewLedger(&LedgerOptions{Host: hostFunc(func(event.ToolCall) event.Decision {
		return event.Decision{Verdict: event.Allow, Input: json.RawMessage(`{"n":2}`)}
	})})
	if _, err := l.Call(t.Context(), toolCall("a", `{"n":1}`)); err == nil || !strings.Contains(advice.Text(err), "is permitted only with another input. Change the input") {
		t.Errorf("the error is %v", err)
	}
	l = NewLedger(&LedgerOptions{Host: hostFunc(func(event.ToolCall) event.Decision { return event.Decision{} })})
	if _, err := l.Call(t.Context(), toolCall("a", `{}`)); err == nil || !strings.HasSuffix(err.Error(), " is not permitted. Continue without this call.") {
		t.Errorf("without a reason the error is %v", err)
	}
}

type hostFunc func(event.ToolCall) event.Decision

func (f hostFunc) Decide(_ context.Context, call event.ToolCall) event.Decision { return f(call) }

// Rewrite is called once for each call, and everybody is shown the new input.
func TestLedger_Rewrite(t *testing.T) {
	made := 0
	l := NewLedger(&LedgerOptions{Rewrite: func(_ context.Context, c event.ToolCall) (json.RawMessage, error) {
		made++
		return json.RawMessage(strings.ReplaceAll(string(c.Input), "old", "new")), nil
	}})
	for asker := range 3 {
		got := ask(t, l, asker, toolCall("a", `{"n":"old"}`), func(_ context.Context, c event.ToolCall) (CallDecision, error) {
			if string(c.Input) != `{"n":"new"}` {
				t.Errorf("%d is shown %s", asker, c.Input)
			}
			return CallDecision{Silent: true}, nil
		})
		if string(got.Input) != `{"n":"new"}` {
			t.Errorf("the agent receives %q", got.Input)
		}
	}
	if got := ask(t, l, 0, toolCall("b", `{"n":"same"}`), silent); got.Input != nil || made != 2 {
		t.Errorf("made %d times, want 2; an unchanged input is reported as %q", made, got.Input)
	}
}

// The oldest calls are forgotten, those that are over first. The log reports an open one that is forgotten.
func TestLedger_IsBounded(t *testing.T) {
	var log bytes.Buffer
	l := NewLedger(&LedgerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range rememberedCalls {
		ask(t, l, 0, toolCall(fmt.Sprint(i), `{}`), denies)
	}
	l.Result(t.Context(), "7", false)
	ask(t, l, 0, toolCall("one more", `{}`), silent)
	if l.Last("7") != nil || l.Last("0") == nil || log.Len() > 0 {
		t.Errorf("the call that is over is there: %t, the oldest: %t; log: %s", l.Last("7") != nil, l.Last("0") != nil, log.String())
	}
	ask(t, l, 0, toolCall("and one", `{}`), silent)
	if l.Last("0") != nil || strings.Count(log.String(), "too many calls") != 1 {
		t.Errorf("the oldest is there: %t; log: %s", l.Last("0") != nil, log.String())
	}
	for i := range 3 * rememberedCalls {
		l.AddReported(toolCall("same", fmt.Sprint(i)))
		l.EndBatch(t.Context(), event.ToolCall{ID: "same"})
	}
	if len(l.order) != rememberedCalls || len(l.calls) > rememberedCalls {
		t.Errorf("%d calls under %d ids, want %d", len(l.order), len(l.calls), rememberedCalls)
	}
}

// Of large inputs only the digest stays when their calls are over, and it is enough to know a call again.
func TestLedger_LargeInputsAreForgotten(t *testing.T) {
	large := `{"text":"` + strings.Repeat("good", largeInput) + `"}`
	for _, hosted := range []bool{false, true} {
		host := &countingHost{}
		l := NewLedger(&LedgerOptions{Host: host})
		if hosted {
			l.MarkRead(toolCall("a", large))
		}
		ask(t, l, 0, toolCall("a", large), allows)
		if _, err := l.Call(t.Context(), toolCall("a", large)); err != nil {
			t.Fatal(err)
		}
		l.EndBatch(t.Context(), event.ToolCall{ID: "a"})
		r := l.Last("a")
		if hosted {
			if got, record, _ := l.TakeResult("a"); string(got.Input) != large || !record {
				t.Errorf("the host reads %d bytes, to be recorded: %t", len(got.Input), record)
			}
		}
		if r.input.raw != nil || r.run.raw != nil || r.Input != nil {
			t.Errorf("hosted %t: the input of a call that is over is still there", hosted)
		}
		if _, err := l.Call(t.Context(), toolCall("a", large)); err != nil || len(host.asked) != 1 {
			t.Errorf("a second run was decided %d times, want once: %v", len(host.asked), err)
		}
	}
}

// A call whose id the agent does not report is the oldest with its name and input that waits. It does what a list of
// pairs would do.
func TestLedger_CallsWithoutAnID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pair struct{ id, input string }
		var model []pair
		l, askers := NewLedger(nil), map[string]int{}
		without := func(id string) []pair {
			return slices.DeleteFunc(slices.Clone(model), func(p pair) bool { return p.id == id })
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				p := pair{fmt.Sprint("id-", len(askers)), rapid.StringMatching(`\{"n":[123]\}`).Draw(t, "input")}
				askers[p.id] = 0
				model = append(model, p)
				_, _ = l.Ask(context.Background(), Question{ToolCall: toolCall(p.id, p.input), Decide: silent})
			},
			"deny or end": func(t *rapid.T) {
				if len(model) == 0 {
					return
				}
				p := rapid.SampledFrom(model).Draw(t, "pair")
				if model = without(p.id); rapid.Bool().Draw(t, "deny") {
					_, _ = l.Ask(context.Background(), Question{ToolCall: toolCall(p.id, p.input), Asker: 1, Decide: denies})
				} else {
					l.EndBatch(context.Background(), event.ToolCall{ID: event.CallID(p.id)})
				}
			},
			"call": func(t *rapid.T) {
				input := rapid.StringMatching(`\{"n":[123]\}`).Draw(t, "input")
				want := ""
				if i := slices.IndexFunc(model, func(p pair) bool { return p.input == input }); i >= 0 {
					want = model[i].id
				}
				model = without(want)
				if got, err := l.Call(context.Background(), toolCall("", input)); string(got.ID) != want || err != nil {
					t.Fatalf("the call with %s has the id %q, want %q: %v", input, got.ID, want, err)
				}
			},
		})
	})
}

// How a tool of ours failed is put into the result of its call, and of no other.
func TestLedger_FailuresOfOwnTools(t *testing.T) {
	l := NewLedger(nil)
	first := l.AddReported(toolCall("a", `{}`))
	held := event.ToolResult{ID: "a", Status: event.ToolNeedsApproval, Failure: &event.ToolFailure{Message: "held"}}
	l.Failed(held)
	l.EndBatch(t.Context(), event.ToolCall{ID: "a"})
	second := l.AddReported(toolCall("a", `{}`))
	early := held
	early.ID, early.Name = "b", "note"
	l.Failed(early)
	third := l.AddReported(event.ToolCall{ID: "b", Name: "mcp__drover__note"}) // the stream is late
	for _, x := range []struct {
		record *Record
		status event.ToolStatus
		want   event.ToolStatus
	}{
		{first, event.ToolError, event.ToolNeedsApproval},
		{first, event.ToolSuccess, event.ToolSuccess},
		{second, event.ToolError, event.ToolError},
		{third, event.ToolError, event.ToolNeedsApproval},
		{nil, event.ToolError, event.ToolError},
	} {
		r := event.ToolResult{Status: x.status}
		if l.Complete(x.record, &r); r.Status != x.want {
			t.Errorf("%s became %s, want %s", x.status, r.Status, x.want)
		}
	}
}

// A result that comes after the next prompt has begun belongs to no call, and a call of the last prompt is not read
// as one of this.
func TestLedger_ReadingEndsWithThePrompt(t *testing.T) {
	l := NewLedger(nil)
	l.AddReported(toolCall("done", `{}`)).Reading.Over = true
	open := l.AddReported(toolCall("open", `{}`)).Reading
	open.Name, open.Turn = "note", 3
	l.NextPrompt()
	if r := l.Read("done"); r != nil {
		t.Errorf("a call that was over is read as %+v", r.Reading)
	}
	if r := l.Read("open"); r == nil || *r.Reading != (Reading{Name: "note", Over: true}) {
		t.Errorf("a call without a result is %+v, want it to be over", r)
	}
	if r := l.AddReportedEnd("unknown"); r.Reading == nil || l.Read("unknown") != r {
		t.Error("the end of a call of an earlier run is not read")
	}
	if open := l.TakeOpen(true); len(open) != 2 {
		t.Errorf("%d calls are to be recorded, want the two that were called", len(open))
	}
}

// A result that the stream reports before its call, as a command in the cell can, does not take the record of the
// call: hooks, our tools and the host find it as before.
func TestLedger_AnEndAloneTakesNoRecord(t *testing.T) {
	l := NewLedger(&LedgerOptions{Host: &countingHost{}})
	call := toolCall("a", `{"n":1}`)
	ask(t, l, 0, call, allows)
	asked := l.Last("a")
	l.AddReportedEnd("a")
	if got := l.Last("a"); got != asked {
		t.Errorf("the last call is %+v, want the one that was asked about", got)
	}
	if got := l.AddReported(call); got != asked {
		t.Errorf("the stream reports the call, and its record is %+v, want the one that was asked about", got)
	}
	l.MarkRead(call)
	if s, _, known := l.TakeResult("a"); !known || s.Name != call.Name {
		t.Errorf("the host reads the result of %+v, known %t", s, known)
	}
	if open := l.TakeOpen(true); len(open) != 0 {
		t.Errorf("%d calls are left to be recorded, want none", len(open))
	}
}
