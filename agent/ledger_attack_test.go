// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

type oneYes struct{ asked int }

func (a *oneYes) Approve(_ context.Context, q gate.Question) (gate.Answer, error) {
	a.asked++
	if a.asked == 1 {
		return gate.Answer{Verdict: event.Allow}, nil
	}
	return gate.Answer{Verdict: event.Deny, Reason: "only once"}, nil
}

func engineOf(t *testing.T, a gate.Approver) *gate.Engine {
	g, err := gate.New(gate.AskTools("note"), gate.Default(event.Allow))
	if err != nil {
		t.Fatal(err)
	}
	return gate.NewEngine(g, &gate.EngineOptions{Approver: a})
}

// One approval is one run, whatever else arrives under the id: a host remembers what it decided about the id.
func TestLedger_OneApprovalIsOneRun(t *testing.T) {
	for name, again := range map[string]func(l *Ledger){
		"control": func(*Ledger) {},
		"a silent hook asked twice": func(l *Ledger) {
			ask(t, l, 1, toolCall("a", `{"n":1}`), silent)
			ask(t, l, 1, toolCall("a", `{"n":1}`), silent)
		},
		"a batch, a silent hook": func(l *Ledger) {
			l.EndBatch(t.Context(), event.ToolCall{ID: "a"})
			ask(t, l, 1, toolCall("a", `{"n":1}`), silent)
		},
		"a silent hook with another input": func(l *Ledger) { ask(t, l, 1, toolCall("a", `{"n":2}`), silent) },
		"the stream twice":                 func(l *Ledger) { l.AddReported(toolCall("a", `{}`)); l.AddReported(toolCall("a", `{}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			yes := &oneYes{}
			e := engineOf(t, yes)
			l := NewLedger(&LedgerOptions{Host: e})
			ask(t, l, 0, toolCall("a", `{"n":1}`), func(ctx context.Context, c event.ToolCall) (CallDecision, error) {
				d := e.Decide(gate.WithCallContext(ctx, gate.CallContext{Begins: true}), c)
				return CallDecision{Verdict: d.Verdict, Reason: d.Reason}, nil
			})
			if _, err := l.Call(t.Context(), toolCall("a", `{"n":1}`)); err != nil {
				t.Fatal(err)
			}
			again(l)
			if _, err := l.Call(t.Context(), toolCall("a", `{"n":1}`)); err == nil {
				t.Errorf("ran twice on one approval (the approver was asked %d times)", yes.asked)
			}
		})
	}
}

// A hook that fails opposes the call, who else allows it.
func TestLedger_AHookThatFailsOpposes(t *testing.T) {
	fails := func(context.Context, event.ToolCall) (CallDecision, error) {
		return CallDecision{}, errors.New("broken")
	}
	for name, decide := range map[string]func(context.Context, event.ToolCall) (CallDecision, error){"error": fails, "denies": denies} {
		for _, order := range []string{"before", "after"} {
			t.Run(name+" "+order, func(t *testing.T) {
				host := &countingHost{}
				l := NewLedger(&LedgerOptions{Host: host})
				q := func(n int, d func(context.Context, event.ToolCall) (CallDecision, error)) {
					_, _ = l.Ask(t.Context(), Question{ToolCall: toolCall("a", `{"n":1}`), Asker: n, Decide: d})
				}
				if order == "before" {
					q(0, decide)
				}
				q(1, allows)
				if order == "after" {
					q(0, decide)
				}
				if _, err := l.Call(t.Context(), toolCall("a", `{"n":1}`)); err == nil {
					t.Errorf("runs although hook 0 %s, host asked %d times", name, len(host.asked))
				}
			})
		}
	}
}

// An opposition holds for the id, the tool and the input, also when another call has the id.
func TestLedger_OppositionOutlivesAnotherRecord(t *testing.T) {
	for name, between := range map[string]func(l *Ledger){
		"batch":  func(l *Ledger) { l.EndBatch(t.Context(), event.ToolCall{ID: "a"}) },
		"stream": func(l *Ledger) { l.AddReported(toolCall("a", `{"n":1}`)); l.AddReported(toolCall("a", `{"n":1}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			host := &countingHost{}
			l := NewLedger(&LedgerOptions{Host: host})
			ask(t, l, 0, toolCall("a", `{"n":1}`), denies)
			between(l)
			ask(t, l, 1, toolCall("a", `{"n":1}`), allows)
			if _, err := l.Call(t.Context(), toolCall("a", `{"n":1}`)); err == nil {
				t.Errorf("runs although it was denied")
			}
		})
	}
}

// A call that the ledger itself has denied, for want of a transaction, does not run.
func TestLedger_ItsOwnDenialKeepsACallFromRunning(t *testing.T) {
	p := newPlace(t)
	host := &countingHost{}
	p.opts.Host = host
	p.begins("x", "run", everything) // holds everything
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if denied := p.asks(ctx, p.question(0, "c", "mcp__s__t", `{"n":1}`, allows)); denied == "" {
		t.Fatal("not denied")
	}
	if _, err := p.Call(t.Context(), event.ToolCall{ID: "c", Name: "mcp__s__t", Input: json.RawMessage(`{"n":1}`)}); err == nil {
		t.Error("a call that the ledger has denied runs (old: the same)")
	}
}

// A call with an open transaction is not forgotten.
func TestLedger_OpenTransactionIsNotForgotten(t *testing.T) {
	for _, how := range []string{"end", "close"} {
		t.Run(how, func(t *testing.T) {
			p := newPlace(t)
			p.begins("c", "run", everything)
			for i := range rememberedCalls {
				p.begins(fmt.Sprint("look", i), "look", `{}`)
			}
			if how == "end" {
				p.End(t.Context(), event.ToolCall{ID: "c"}, false)
			} else {
				p.Close()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, tx, err := p.w.Begin(ctx, workspace.Call{ID: "n", Tool: "run"}); err != nil {
				t.Errorf("the workspace is held for ever after %s: %v", how, err)
			} else {
				tx.Commit()
			}
		})
	}
}

// Two calls may have one id at once, as of two subagents whose service counts. Each ends by itself.
func TestLedger_TwoCallsUnderOneID(t *testing.T) {
	p := newPlace(t)
	p.begins("call_0", "amend", `{"file":"a.txt"}`)
	p.begins("call_0", "amend", `{"file":"b.txt"}`)
	p.write("a.txt", "new")
	p.End(t.Context(), event.ToolCall{ID: "call_0"}, false) // of a.txt
	p.write("b.txt", "new")
	p.End(t.Context(), event.ToolCall{ID: "call_0"}, true) // b.txt failed
	p.wants("a.txt", "new")
	p.wants("b.txt", "old")
}

// The same with commands, of which the second waits.
func TestLedger_SecondCommandUnderOneIDWaits(t *testing.T) {
	p := newPlace(t)
	p.begins("call_0", "run", `{"line":"one"}`)
	second := make(chan string, 1)
	go func() { second <- p.asks(t.Context(), p.question(0, "call_0", "run", `{"line":"two"}`, silent)) }()
	p.untilOpen("call_0", 2)
	p.write("a.txt", "new")
	p.End(t.Context(), event.ToolCall{ID: "call_0"}, false) // PostToolUse of the first
	select {
	case denied := <-second:
		if denied != "" {
			t.Errorf("the second was denied by the end of the first: %s", denied)
		}
	case <-time.After(2 * time.Second):
		t.Error("the second still waits after the end of the first")
	}
	p.EndBatch(t.Context(), event.ToolCall{ID: "call_0"})
	p.wants("a.txt", "new")
}

// The end of a batch leaves no transaction open.
func TestLedger_EndBatchEndsAllTransactions(t *testing.T) {
	p := newPlace(t)
	p.begins("c", "amend", `{"file":"a.txt"}`)
	p.begins("c", "amend", `{"file":"b.txt"}`)
	p.EndBatch(t.Context(), event.ToolCall{ID: "c"})
	p.EndBatch(t.Context(), event.ToolCall{ID: "c"})
	p.End(t.Context(), event.ToolCall{ID: "c"}, false)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if denied := p.asks(ctx, p.question(0, "d", "run", everything, silent)); denied != "" {
		t.Errorf("after the ends no call gets a turn: %s", denied)
	}
}

// What a host has recorded can still be ended.
func TestLedger_HostClosesRecordWithTransaction(t *testing.T) {
	p := newPlace(t)
	p.begins("c", "run", everything)
	p.TakeOpen(true)
	p.End(t.Context(), event.ToolCall{ID: "c"}, true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if denied := p.asks(ctx, p.question(0, "d", "run", everything, silent)); denied != "" {
		t.Errorf("a later call of the conversation gets no turn: %s", denied)
	}
}

// A run that is ended late does not end the next one.
func TestLedger_LateCloseOfTheLastRun(t *testing.T) {
	p := newPlace(t)
	end := p.Begin(p.opts)
	p.Begin(p.opts)
	p.begins("c", "run", everything)
	p.write("a.txt", "new")
	end() // of the run before
	p.End(t.Context(), event.ToolCall{ID: "c"}, false)
	p.wants("a.txt", "new")
}

// A Rewrite that panics denies the call.
func TestLedger_PanickingRewriteDenies(t *testing.T) {
	l := NewLedger(&LedgerOptions{Rewrite: func(context.Context, event.ToolCall) (json.RawMessage, error) { panic("x") }})
	func() {
		defer func() { _ = recover() }()
		_, _ = l.Ask(t.Context(), Question{ToolCall: toolCall("a", `{}`), Decide: allows})
	}()
	if !l.Denied(l.Last("a")) {
		t.Error("not denied")
	}
}

// A call is not forgotten while it waits for its turn.
func TestLedger_WaitingCallIsNotForgotten(t *testing.T) {
	p := newPlace(t)
	_, hold, err := p.w.Begin(t.Context(), workspace.Call{ID: "h", Tool: "run"})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() { got <- p.asks(context.Background(), p.question(0, "c", "run", everything, silent)) }()
	p.untilOpen("c", 1)
	for i := range rememberedCalls {
		p.begins(fmt.Sprint("look", i), "look", `{}`)
	}
	p.Close()
	hold.Commit()
	denied := <-got
	if denied == "" {
		t.Error("a call begins after Close, in a transaction that has no end")
	}
}

// What is known of one id is bounded.
func TestLedger_ApprovalsAreBounded(t *testing.T) {
	l := NewLedger(&LedgerOptions{Host: &countingHost{}})
	start := time.Now()
	for i := range 5000 {
		_, _ = l.Call(t.Context(), toolCall("a", fmt.Sprintf(`{"n":%d,"pad":%q}`, i, strings.Repeat("x", 100))))
	}
	if n := l.approvals.Len(); n > rememberedCalls {
		t.Errorf("%d inputs of one call are kept, after %v", n, time.Since(start))
	}
}

// Of a call that is over nothing large stays.
func TestLedger_EndedCallKeepsNoLargeInput(t *testing.T) {
	l := NewLedger(nil)
	big := json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	c := event.ToolCall{ID: "a", Name: "note", Input: big}
	l.Note(c)
	l.Decided(event.Decision{CallID: "a", Tool: "note", Verdict: event.Allow, Input: big})
	l.MarkRead(c)
	l.TakeResult("a")
	l.End(t.Context(), event.ToolCall{ID: "a"}, false)
	if d := l.Last("a").decision; d != nil && len(d.Input) > largeInput {
		t.Errorf("%d bytes of the input are kept in the decision", len(d.Input))
	}
}

type slowHost struct{ in, out chan struct{} }

func (h *slowHost) Decide(_ context.Context, c event.ToolCall) event.Decision {
	h.in <- struct{}{}
	<-h.out
	return event.Decision{Verdict: event.Allow, Input: c.Input}
}

// The end of a call does not take its input from who decides about it.
func TestLedger_EndWhileTheHostDecides(t *testing.T) {
	h := &slowHost{make(chan struct{}), make(chan struct{})}
	l := NewLedger(&LedgerOptions{Host: h})
	errs := make(chan error, 1)
	go func() {
		_, err := l.Call(context.Background(), toolCall("a", `{"x":"`+strings.Repeat("x", 2000)+`"}`))
		errs <- err
	}()
	<-h.in
	l.End(context.Background(), event.ToolCall{ID: "a"}, false)
	close(h.out)
	if err := <-errs; err != nil {
		t.Errorf("an allowed call is refused: %v", err)
	}
}

// All at once.
func TestLedger_Concurrent(t *testing.T) {
	l := NewLedger(&LedgerOptions{Host: engineOf(t, nil), Rewrite: func(_ context.Context, c event.ToolCall) (json.RawMessage, error) {
		return json.RawMessage(`{"x":"` + strings.Repeat("y", 2000) + `"}`), nil
	}})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				id := fmt.Sprint(i % 7)
				c := toolCall(id, `{"x":"`+strings.Repeat("x", 2000)+`"}`)
				_, _ = l.Ask(context.Background(), Question{ToolCall: c, Asker: g % 3, Decide: allows})
				_, _ = l.AskPermission(context.Background(), Question{ToolCall: c, Decide: allows})
				_, _ = l.Call(context.Background(), c)
				c.ID = ""
				_, _ = l.Call(context.Background(), c)
				c.ID = event.CallID(id)
				l.Note(c)
				l.Decided(event.Decision{CallID: event.CallID(id), Input: c.Input})
				l.MarkRead(c)
				end := l.Runs(&tool.Call{ID: event.CallID(id), Name: "note"})
				l.Denied(l.AddReported(c))
				l.Failed(event.ToolResult{ID: event.CallID(id), Name: "note"})
				end()
				l.TakeEnd(c)
				l.TakeResult(event.CallID(id))
				l.State(event.CallID(id))
				l.End(context.Background(), event.ToolCall{ID: event.CallID(id)}, i%2 == 0)
				l.EndBatch(context.Background(), event.ToolCall{ID: event.CallID(id)})
				if i%50 == 0 {
					l.TakeOpen(true)
				}
			}
		})
	}
	wg.Wait()
}
