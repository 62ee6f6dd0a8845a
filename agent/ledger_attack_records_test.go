// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// notes decides as a host does, which has the ledger know.
func notes(l *Ledger, o CallDecision) func(context.Context, event.ToolCall) (CallDecision, error) {
	return func(_ context.Context, c event.ToolCall) (CallDecision, error) {
		l.Note(c)
		l.Decided(event.Decision{CallID: c.ID, Tool: c.Name, Verdict: o.Verdict})
		return o, nil
	}
}

// A question with another input than the hook's is about the same call, which has one record.
func TestLedger_QuestionWithAnotherInput(t *testing.T) {
	l := NewLedger(nil)
	ask(t, l, 0, toolCall("a", `{"n":1,"timeout":5}`), notes(l, CallDecision{Verdict: event.Allow}))
	q := toolCall("a", `{"n":1}`)
	_, _ = l.AskPermission(t.Context(), Question{ToolCall: q, Decide: func(ctx context.Context, _ event.ToolCall) (CallDecision, error) {
		return notes(l, CallDecision{Verdict: event.Allow})(ctx, q)
	}})
	l.MarkRead(toolCall("a", `{"n":1}`))
	_, first := l.TakeEnd(toolCall("a", `{"n":1}`))
	_, second, _ := l.TakeResult("a")
	open := l.TakeOpen(true)
	n := len(open)
	if first {
		n++
	}
	if second {
		n++
	}
	if n != 1 {
		t.Errorf("%d records for one call: at its end %t, at its result %t, open %v", n, first, second, open)
	}
}

// A tool of ours may be called with another input than hooks saw, if settings of the agent changed it. The call has one record.
func TestLedger_OwnCallWithAnotherInput(t *testing.T) {
	l := NewLedger(nil)
	host := attackHost(func(ctx context.Context, c event.ToolCall) event.Decision {
		l.Note(c)
		d := event.Decision{CallID: c.ID, Verdict: event.Allow}
		l.Decided(d)
		return d
	})
	l.Begin(LedgerOptions{Host: host})
	ask(t, l, 0, toolCall("a", `{"n":1}`), notes(l, CallDecision{Verdict: event.Allow}))
	l.MarkRead(toolCall("a", `{"n":1}`))
	if _, err := l.Call(t.Context(), toolCall("a", `{"n":2}`)); err != nil {
		t.Fatal(err)
	}
	l.Runs(&tool.Call{ID: "a", Name: "note", Input: json.RawMessage(`{"n":2}`)})() // leaves a record
	n := 1
	if _, record := l.TakeEnd(toolCall("a", `{"n":2}`)); record {
		n++
	}
	if _, record, _ := l.TakeResult("a"); record {
		n++
	}
	n += len(l.TakeOpen(true))
	if n != 1 {
		t.Errorf("%d records for one call", n)
	}
}

type attackHost func(context.Context, event.ToolCall) event.Decision

func (f attackHost) Decide(ctx context.Context, c event.ToolCall) event.Decision { return f(ctx, c) }

// Two calls under one id at once have one record each.
func TestLedger_TwoAtOnceHaveOneRecordEach(t *testing.T) {
	for name, order := range map[string][]string{
		"one after the other": {"end a", "result", "end b", "result"},
		"hooks first":         {"end a", "end b", "result", "result"},
		"the second first":    {"end b", "result", "end a", "result"},
		"no hooks":            {"result", "result"},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLedger(nil)
			a, b := toolCall("0", `{"n":1}`), toolCall("0", `{"n":2}`)
			ask(t, l, 0, a, notes(l, CallDecision{Verdict: event.Allow}))
			ask(t, l, 0, b, notes(l, CallDecision{Verdict: event.Allow}))
			l.MarkRead(a)
			l.MarkRead(b)
			var got []string
			for _, what := range order {
				switch what {
				case "end a":
					if s, r := l.TakeEnd(a); r {
						got = append(got, string(s.Input))
					}
				case "end b":
					if s, r := l.TakeEnd(b); r {
						got = append(got, string(s.Input))
					}
				default:
					if s, r, _ := l.TakeResult("0"); r {
						got = append(got, string(s.Input))
					}
				}
			}
			for _, s := range l.TakeOpen(true) {
				got = append(got, "open "+string(s.Input))
			}
			if len(got) != 2 || got[0] == got[1] {
				t.Errorf("the records are of %v", got)
			}
		})
	}
}

// A decision is about the call of its tool, and not about another with the same id.
func TestLedger_DecisionsOfTwoAtOnce(t *testing.T) {
	l := NewLedger(nil)
	a, b := toolCall("0", `{"n":1}`), event.ToolCall{ID: "0", Name: "other", Input: json.RawMessage(`{}`)}
	l.Note(a)
	l.Note(b)
	l.Decided(event.Decision{CallID: "0", Tool: "note", Verdict: event.Deny, Reason: "no"})
	for _, s := range l.TakeOpen(true) {
		if (s.Decision != nil) != (s.Name == "note") {
			t.Errorf("%s has the decision %v", s.Name, s.Decision)
		}
	}
}

// Calls of our tools under one id at once know their agent.
func TestLedger_RegistryCallsUnderOneIDKnowTheirAgent(t *testing.T) {
	l := NewLedger(nil)
	c := toolCall("a", `{}`)
	c.AgentID = "sub"
	l.Note(c)
	own := &tool.Call{ID: "a", Name: "note", Input: json.RawMessage(`{}`)}
	defer l.Runs(own)()
	defer l.Runs(own)()
	if got := l.State("a").AgentID; got != "sub" {
		t.Errorf("the agent of the second is %q", got)
	}
}

// A stream that lags behind reports a denied call when its id is taken again.
func TestLedger_DeniedThenAgainWithALaggingStream(t *testing.T) {
	l := NewLedger(nil)
	c := toolCall("0", `{"n":1}`)
	ask(t, l, 0, c, notes(l, CallDecision{Verdict: event.Deny}))
	l.EndBatch(t.Context(), event.ToolCall{ID: "0"})
	ask(t, l, 0, c, notes(l, CallDecision{Verdict: event.Allow}))
	_, end := l.TakeEnd(c)
	l.MarkRead(c)
	s1, r1, _ := l.TakeResult("0")
	l.MarkRead(c)
	s2, r2, _ := l.TakeResult("0")
	if !end || !r1 || r2 || len(l.TakeOpen(true)) != 0 || s1.Decision == nil || s1.Decision.Verdict != event.Deny {
		t.Errorf("end %t, first %t %+v, second %t %+v", end, r1, s1.Decision, r2, s2.Decision)
	}
}

// A call that the last run left open does not take the result of the next one with its id.
func TestLedger_OpenCallsOfTheLastRunDoNotTakeResults(t *testing.T) {
	l := NewLedger(nil)
	c := toolCall("0", `{"n":1}`)
	l.Note(c)
	l.MarkRead(c)
	l.TakeOpen(true) // the run ended
	l.Begin(LedgerOptions{})
	l.Note(c) // a service that counts again
	l.MarkRead(c)
	if _, r, known := l.TakeResult("0"); !r || !known {
		t.Errorf("the call of the new run: record %t, known %t", r, known)
	}
}
