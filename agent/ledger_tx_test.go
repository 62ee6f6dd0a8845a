// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// A runPlace is a workspace with two files, and the ledger of a run in it. The test plays the agent, whose tools are
// "amend", which writes the file that its input names, and "run", which may change everything.
type runPlace struct {
	*Ledger
	t *testing.T
	w *workspace.Workspace
}

func newPlace(t *testing.T) *runPlace {
	t.Helper()
	w, err := workspace.Open(t.Context(), &workspace.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	p := &runPlace{t: t, w: w}
	p.Ledger = p.ledger(t.Context())
	p.write("a.txt", "old")
	p.write("b.txt", "old")
	return p
}

func (p *runPlace) ledger(within context.Context) *Ledger {
	l := NewLedger(&LedgerOptions{Workspace: p.w, Within: within, Catalogue: &tool.Catalogue{Natives: []tool.Native{
		{Name: "amend", Risk: tool.Mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Fields: tool.Fields{Paths: []string{"file"}}},
		{Name: "run", Risk: tool.Dangerous, Needs: tool.ShellExecute, Fields: tool.Fields{Command: "line"}},
		{Name: "look", Risk: tool.ReadOnly},
	}}})
	p.t.Cleanup(l.Close)
	return l
}

func (p *runPlace) question(asker int, id, name, input string, decide func(context.Context, event.ToolCall) (CallDecision, error)) Question {
	return Question{
		ToolCall: event.ToolCall{ID: event.CallID(id), Name: name, Input: json.RawMessage(input), Dir: p.w.Root()},
		Asker:    asker, Waits: true, Decide: decide,
	}
}

// asks asks about a call and returns why it was denied.
func (p *runPlace) asks(ctx context.Context, q Question) (denied string) {
	p.t.Helper()
	got, err := p.Ask(ctx, q)
	if err != nil {
		p.t.Fatal(err)
	}
	if got.Silent || got.Verdict != event.Deny {
		return ""
	}
	return got.Reason
}

func (p *runPlace) begins(id, name, input string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	if denied := p.asks(ctx, p.question(0, id, name, input, silent)); denied != "" {
		p.t.Fatalf("%s was denied: %s", id, denied)
	}
}

// waits checks that a call does not get its turn, and gives up on it.
func (p *runPlace) waits(id, name, input string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 50*time.Millisecond)
	defer cancel()
	if denied := p.asks(ctx, p.question(0, id, name, input, silent)); !strings.Contains(denied, "did not get its turn") {
		p.t.Errorf("%s got its turn beside the other: %q", id, denied)
	}
}

// untilOpen waits until as many calls with an id have a transaction, or wait for their turn.
func (p *runPlace) untilOpen(id string, want int) {
	p.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		open := 0
		p.mu.Lock()
		for _, r := range p.calls[event.CallID(id)] {
			if r.tx != nil {
				open++
			}
		}
		p.mu.Unlock()
		if open == want {
			return
		}
	}
	p.t.Fatalf("there are not %d open calls with the id %s", want, id)
}

func (p *runPlace) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.w.Root(), name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *runPlace) wants(name, text string) {
	p.t.Helper()
	if got, err := os.ReadFile(filepath.Join(p.w.Root(), name)); string(got) != text {
		p.t.Errorf("%s is %q, want %q: %v", name, got, text, err)
	}
}

const everything = `{"line":"true"}`

// A call that failed leaves the files as they were, one that succeeded as it left them.
func TestLedger_CallsAreTransactions(t *testing.T) {
	for _, failed := range []bool{false, true} {
		p := newPlace(t)
		p.begins("c", "run", everything)
		p.write("a.txt", "new")
		p.waits("other", "run", everything)
		notice := p.End(t.Context(), event.ToolCall{ID: "c"}, failed)
		p.wants("a.txt", map[bool]string{false: "new", true: "old"}[failed])
		if failed != strings.Contains(notice, "a.txt") {
			t.Errorf("failed %t: the model receives %q", failed, notice)
		}
		if p.End(t.Context(), event.ToolCall{ID: "c"}, true) != "" {
			t.Error("it was rolled back twice")
		}
		p.begins("next", "run", everything)
		p.begins("looks", "look", `{}`) // waits for no other call
	}
}

// A call that is denied, before it begins, while it waits for its turn, or afterwards, is in the way of no other.
func TestLedger_DeniedCallsHaveNoTransaction(t *testing.T) {
	p := newPlace(t)
	p.begins("denied later", "run", everything)
	p.asks(t.Context(), p.question(1, "denied later", "run", everything, denies))
	p.begins("first", "run", everything)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	p.asks(ctx, p.question(0, "denied before", "run", everything, denies))
	if denied := p.asks(ctx, p.question(1, "denied before", "run", everything, allows)); denied != "" || ctx.Err() != nil {
		t.Errorf("the denied call waited for the first: %q %v", denied, ctx.Err())
	}
	waiting, asked := make(chan string), make(chan struct{})
	go func() {
		waiting <- p.asks(t.Context(), p.question(0, "denied meanwhile", "run", everything, func(context.Context, event.ToolCall) (CallDecision, error) {
			close(asked)
			return CallDecision{Silent: true}, nil
		}))
	}()
	<-asked
	p.untilOpen("denied meanwhile", 1)
	p.asks(ctx, p.question(1, "denied meanwhile", "run", everything, denies))
	if denied := <-waiting; denied != "" {
		t.Errorf("the call that waited is denied: %q", denied)
	}
	p.End(t.Context(), event.ToolCall{ID: "first"}, false)
	p.begins("next", "run", everything)
}

// An id that was denied may come again with another answer of the model.
func TestLedger_AnIDThatWasDeniedCanBeginAgain(t *testing.T) {
	p := newPlace(t)
	p.asks(t.Context(), p.question(0, "call_0", "run", everything, denies))
	p.EndBatch(t.Context(), event.ToolCall{ID: "call_0"})
	p.begins("call_0", "run", everything)
	p.write("a.txt", "changed")
	if notice := p.EndBatch(t.Context(), event.ToolCall{ID: "call_0"}, event.ToolCall{ID: "unknown"}); !strings.Contains(notice, "a.txt") {
		t.Errorf("the model receives %q", notice)
	}
	p.wants("a.txt", "old")
}

// A call may begin before it is known that it is made with another input.
func TestLedger_AReplacedInputBeginsAgain(t *testing.T) {
	replaces := alwaysDecide(CallDecision{Verdict: event.Allow, Input: json.RawMessage(`{"file":"b.txt"}`)})
	for name, replace := range map[string]func(p *runPlace) error{
		"by a hook": func(p *runPlace) error {
			_, err := p.Ask(t.Context(), p.question(1, "w", "amend", `{"file":"a.txt"}`, replaces))
			return err
		},
		"by a hook that does not wait": func(p *runPlace) error {
			q := p.question(1, "w", "amend", `{"file":"a.txt"}`, replaces)
			q.Waits = false
			_, err := p.Ask(t.Context(), q)
			return err
		},
		"by a question": func(p *runPlace) error {
			_, err := p.AskPermission(t.Context(), p.question(0, "w", "amend", `{"file":"a.txt"}`, replaces))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.begins("w", "amend", `{"file":"a.txt"}`)
			if err := replace(p); err != nil {
				t.Fatal(err)
			}
			p.asks(t.Context(), p.question(2, "w", "amend", `{"file":"a.txt"}`, silent)) // who knows nothing of it
			p.begins("free", "amend", `{"file":"a.txt"}`)
			p.waits("meets it", "amend", `{"file":"b.txt"}`)
			p.write("b.txt", "x")
			if notice := p.End(t.Context(), event.ToolCall{ID: "w"}, true); !strings.Contains(notice, "b.txt") {
				t.Errorf("the model receives %q", notice)
			}
			p.wants("b.txt", "old")
		})
	}
}

// Of two calls with one id at once the one ends whose input is reported, in whatever order.
func TestLedger_NamesakesEndByTheirInput(t *testing.T) {
	p := newPlace(t)
	first, second := `{"file":"a.txt"}`, `{"file":"b.txt"}`
	p.begins("call_0", "amend", first)
	p.begins("call_0", "amend", second)
	p.write("a.txt", "new")
	p.write("b.txt", "half")
	p.End(t.Context(), event.ToolCall{ID: "call_0", Name: "amend", Input: json.RawMessage(second)}, true)
	p.End(t.Context(), event.ToolCall{ID: "call_0", Name: "amend", Input: json.RawMessage(first)}, false)
	p.wants("a.txt", "new")
	p.wants("b.txt", "old")
}

// A hook that must answer soon does not wait for other calls.
func TestLedger_UrgentAnswerDoesNotWait(t *testing.T) {
	p := newPlace(t)
	p.begins("first", "run", everything)
	over, cancel := context.WithCancel(t.Context())
	cancel() // a wait would end with a denial
	q := p.question(0, "second", "run", everything, allows)
	q.Waits = false
	if denied := p.asks(over, q); denied != "" {
		t.Errorf("it was denied: %s", denied)
	}
}

// A call whose end cannot be reported, or that comes after the end of the run, is not made.
func TestLedger_CallsThatAreNotMade(t *testing.T) {
	p := newPlace(t)
	if denied := p.asks(t.Context(), p.question(0, "", "run", everything, allows)); !strings.Contains(denied, "has no id") {
		t.Errorf("without an id: %q", denied)
	}
	p.begins("one", "amend", `{"file":"a.txt"}`)
	p.begins("two", "amend", `{"file":"b.txt"}`)
	p.write("a.txt", "half")
	p.write("b.txt", "half")
	p.Close()
	p.wants("a.txt", "old")
	p.wants("b.txt", "old")
	if denied := p.asks(t.Context(), p.question(0, "late", "run", everything, allows)); !strings.Contains(denied, "the run is over") {
		t.Errorf("after the end: %q", denied)
	}
	next := *p
	next.Ledger = p.ledger(t.Context())
	next.begins("next", "run", everything)
}

// The calls of a run within a call are part of that: they do not wait for it, and go with it.
func TestLedger_ARunWithinACall(t *testing.T) {
	p := newPlace(t)
	outer, tx, err := p.w.Begin(t.Context(), workspace.Call{ID: "outer", Tool: "delegate"})
	if err != nil {
		t.Fatal(err)
	}
	inner := *p
	inner.Ledger = p.ledger(outer)
	inner.begins("one", "run", everything)
	inner.write("a.txt", "kept by the inner one")
	inner.End(t.Context(), event.ToolCall{ID: "one"}, false)
	if inner.Serves(t.Context()) || !inner.Serves(outer) || !p.Serves(t.Context()) {
		t.Error("a ledger serves a run elsewhere")
	}
	tx.Undo(t.Context())
	p.wants("a.txt", "old")
}

// A result that comes before its call does not keep the transaction of the call open: the next call gets its turn.
func TestLedger_AnEndAloneEndsNoTransaction(t *testing.T) {
	p := newPlace(t)
	p.Result(context.Background(), "a", false) // forged
	p.AddReportedEnd("a")
	p.begins("a", "run", `{"line":"1"}`)
	p.Result(context.Background(), "a", true) // the CLI refused it: no hook reports the end
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if denied := p.asks(ctx, p.question(0, "b", "run", `{"line":"2"}`, silent)); denied != "" {
		t.Errorf("the next call was denied: %s", denied)
	}
}
