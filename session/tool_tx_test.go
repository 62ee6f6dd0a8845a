// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

type noteInput struct {
	Text string `json:"text"`
	// Then is how the call ends: "fail", "panic", "wait".
	Then string `json:"then,omitempty"`
}

// noteTool dispatches the text of its input, and then ends as its input asks.
func noteTool() *tool.Tool {
	return tool.Must("note", "Notes something.", func(ctx context.Context, in noteInput) (string, error) {
		s, ok := session.From(ctx)
		if !ok {
			return "", errors.New("there is no session")
		}
		if _, err := s.Dispatch(ctx, remark{in.Text}); err != nil {
			return "", err
		}
		switch in.Then {
		case "fail":
			return "", errors.New("it failed")
		case "panic":
			panic("it panicked")
		case "wait":
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "noted " + in.Text, nil
	})
}

func noteCall(id, text, then string) tool.Call {
	input, _ := json.Marshal(noteInput{text, then})
	return tool.Call{ID: event.CallID(id), Name: "note", Input: input}
}

func notes(s *session.Session) []string {
	got := []string{}
	for n := range session.Query[remark](s).All() {
		got = append(got, n.Text)
	}
	return got
}

func TestToolTx_EachCallIsATransactionAndRecordedOnce(t *testing.T) {
	decide := func(v event.Verdict) tool.Decider {
		return tool.DeciderFunc(func(context.Context, event.ToolCall) event.Decision {
			return event.Decision{Verdict: v, Reason: "because"}
		})
	}
	cases := []struct {
		name  string
		call  tool.Call
		opts  tool.Options
		want  tool.Outcome
		error string
		notes []string
	}{
		{"success", noteCall("id", "a", ""), tool.Options{}, tool.Success, "", []string{"a"}},
		{"failure", noteCall("id", "a", "fail"), tool.Options{}, tool.Failed, "it failed", []string{}},
		{"panic", noteCall("id", "a", "panic"), tool.Options{}, tool.Failed, "panicked", []string{}},
		{"timeout", noteCall("id", "a", "wait"), tool.Options{Timeout: time.Millisecond}, tool.Failed, "in time", []string{}},
		{"wrong arguments", tool.Call{ID: "id", Name: "note", Input: json.RawMessage(`{"text":1}`)}, tool.Options{}, tool.Failed, "text", []string{}},
		{"arguments that are no JSON", tool.Call{ID: "id", Name: "note", Input: json.RawMessage(`{"te`)}, tool.Options{}, tool.Failed, "", []string{}},
		{"unknown tool", tool.Call{ID: "id", Name: "nope"}, tool.Options{}, tool.Failed, `no tool "nope"`, []string{}},
		{"denied", noteCall("id", "a", ""), tool.Options{Decider: decide(event.Deny)}, tool.Denied, "because", []string{}},
		{"needs approval", noteCall("id", "a", ""), tool.Options{Decider: decide(event.Ask)}, tool.NeedsApproval, "because", []string{}},
		{"budget", noteCall("id", "a", ""), tool.Options{Budget: tool.Budget{MaxDuration: 1}}, tool.Denied, "budget", []string{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := session.New(nil)
			c.opts.Around = session.ToolTx(s, &session.ToolTxOptions{Adapter: "claude-code", Prompt: "review"})
			result := tool.MustRegistry(&c.opts, noteTool()).Execute(t.Context(), c.call)
			checkCall(t, s, c.call, result, c.want, c.error)
			if diff := cmp.Diff(c.notes, notes(s)); diff != "" {
				t.Errorf("the notes: %s", diff)
			}
		})
	}
}

// checkCall looks at the one report of a call.
func checkCall(t testing.TB, s *session.Session, call tool.Call, result tool.Result, want tool.Outcome, problem string) {
	t.Helper()
	if n := session.Query[session.ToolInvoked](s).Len(); n != 1 {
		t.Fatalf("the call was recorded %d times", n)
	}
	got := latest[session.ToolInvoked](t, s)
	if result.Outcome != want || got.Status != want || got.CallID != call.ID || got.Name != call.Name || got.Source != session.BridgedTool ||
		got.Adapter != "claude-code" || got.Prompt != "review" || got.Output != result.Render() || got.EventID == "" {
		t.Errorf("the call ended with %q and was recorded as %+v", result.Outcome, got)
	}
	if !strings.Contains(got.Error, problem) || (got.Error == "") != (want == tool.Success) {
		t.Errorf("the error is %q, want %q", got.Error, problem)
	}
	if want == tool.Success && string(got.Value) != `"noted a"` {
		t.Errorf("the value is %s", got.Value)
	}
	var last session.Entry
	for entry := range closed(t, s).After(t.Context(), s.Last()-1) {
		last = entry
	}
	if last.Event.Kind != "tool:invoked" || last.Tx != 0 || last.Cause != string(call.ID) {
		t.Errorf("the last entry is %s of call %q in transaction %d, want the report, after the transaction", last.Event.Kind, last.Cause, last.Tx)
	}
}

func TestToolTx_CancelledCallIsRecorded(t *testing.T) {
	s := session.New(nil)
	r := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, noteTool())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Execute(ctx, noteCall("before", "a", ""))
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	r.Execute(ctx, noteCall("during", "b", "wait"))
	if diff := cmp.Diff([]string{"before note cancelled", "during note cancelled"}, invoked(s)); diff != "" || len(notes(s)) != 0 {
		t.Errorf("%s and %q are left", diff, notes(s))
	}
}

func TestToolTx_DryRunLeavesNothing(t *testing.T) {
	s := session.New(nil)
	note := noteTool()
	note.DryRun = note.Handler
	call := noteCall("dry", "a", "")
	call.DryRun = true
	result := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, note).Execute(t.Context(), call)
	if !result.OK() || len(notes(s)) != 0 || len(invoked(s)) != 0 {
		t.Errorf("it ended with %q; %q and %q are left", result.Outcome, notes(s), invoked(s))
	}
}

// Two calls of one tool with one input are distinguished by their ids alone.
func TestToolTx_EqualCallsAreSeparate(t *testing.T) {
	s := session.New(nil)
	same := tool.Must("same", "Notes a text.", func(ctx context.Context, in noteInput) (string, error) {
		if _, err := s.Dispatch(ctx, remark{in.Text}); err != nil {
			return "", err
		}
		if call, _ := tool.CallFrom(ctx); call.ID == "second" {
			return "", errors.New("it failed")
		}
		return "", nil
	})
	r := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, same)
	for _, id := range []string{"first", "second", "third"} {
		call := noteCall(id, "a", "")
		call.Name = "same"
		r.Execute(t.Context(), call)
	}
	if diff := cmp.Diff([]string{"a", "a"}, notes(s)); diff != "" {
		t.Errorf("the notes: %s", diff)
	}
	if diff := cmp.Diff([]string{"first same success", "second same error", "third same success"}, invoked(s)); diff != "" {
		t.Errorf("the calls: %s", diff)
	}
}

func TestToolTx_RepeatedIDGetsANewOne(t *testing.T) {
	s := session.New(&session.Options{NewID: func() string { return "new" }})
	r := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, noteTool())
	r.Execute(t.Context(), noteCall("same", "a", ""))
	r.Execute(t.Context(), noteCall("same", "b", "fail"))
	if diff := cmp.Diff([]string{"same note success", "new note error"}, invoked(s)); diff != "" {
		t.Error(diff)
	}
}

func TestToolTx_HandlerThatOutlivesItsCallChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(nil)
		late := make(chan error, 2)
		deaf := tool.Must("deaf", "Does not listen.", func(ctx context.Context, _ struct{}) (string, error) {
			dispatch(t, ctx, s, remark{"in time"})
			time.Sleep(time.Minute)
			_, err := s.Dispatch(context.WithoutCancel(ctx), remark{"late"})
			late <- err
			_, err = s.Dispatch(ctx, remark{"late"})
			late <- err
			return "", nil
		})
		r := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil), Timeout: time.Second}, deaf)
		r.Execute(t.Context(), tool.Call{ID: "id", Name: "deaf"})
		if err := <-late; !errors.Is(err, session.ErrTxOver) {
			t.Errorf("a late dispatch returns %v, want ErrTxOver", err)
		}
		if err := <-late; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a late dispatch in the handler's context returns %v", err)
		}
		if got := notes(s); len(got) != 0 {
			t.Errorf("%q are left", got)
		}
		if err := r.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"id deaf error"}, invoked(s)); diff != "" {
			t.Error(diff)
		}
		if took := latest[session.ToolInvoked](t, s).Duration; took != 2*time.Second { // the time out and the grace
			t.Errorf("the call took %s", took)
		}
	})
}

func TestToolTx_FailedCallsLeaveParallelCallsIntact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := rapid.SliceOfN(rapid.SampledFrom([]string{"", "fail", "panic"}), 1, 12).Draw(t, "ends")
		s := session.New(nil)
		session.Reduce(s, func(n int, e remark) int { return n + len(e.Text) })
		var together sync.WaitGroup
		together.Add(len(ends))
		meet := tool.Must("meet", "Notes twice, beside the others.", func(ctx context.Context, in noteInput) (string, error) {
			if _, err := s.Dispatch(ctx, remark{in.Text}); err != nil {
				return "", err
			}
			together.Done()
			together.Wait() // all transactions are open, and have written
			if _, err := s.Dispatch(ctx, remark{in.Text}); err != nil {
				return "", err
			}
			switch in.Then {
			case "fail":
				return "", errors.New("it failed")
			case "panic":
				panic("it panicked")
			}
			return "", nil
		})
		var calls []tool.Call
		want := 0
		for i, end := range ends {
			text := strings.Repeat("x", i+1)
			call := noteCall(fmt.Sprint(i), text, end)
			call.Name = "meet"
			calls = append(calls, call)
			if end == "" {
				want += 2 * len(text)
			}
		}
		compose.ExecuteAll(context.Background(), tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, meet), calls, nil)
		if got, _ := session.Query[int](s).Latest(); got != want {
			t.Fatalf("the sum is %d, want %d", got, want)
		}
		var reported []string
		for c := range session.Query[session.ToolInvoked](s).All() {
			reported = append(reported, string(c.CallID))
		}
		slices.Sort(reported)
		if len(slices.Compact(reported)) != len(ends) {
			t.Fatalf("%d calls were recorded as %v", len(ends), reported)
		}
	})
}

func TestToolTx_InnerCallIsRolledBackWithTheOuter(t *testing.T) {
	s := session.New(nil)
	var r *tool.Registry
	outer := tool.Must("outer", "Calls note.", func(ctx context.Context, in noteInput) (string, error) {
		for _, call := range []tool.Call{noteCall("good", "good", ""), noteCall("bad", "bad", "fail")} {
			r.Execute(ctx, call)
		}
		if in.Then == "fail" {
			return "", errors.New("it failed")
		}
		return "", nil
	})
	r = tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, noteTool(), outer)
	call := noteCall("first", "", "")
	call.Name = "outer"
	r.Execute(t.Context(), call)
	if diff := cmp.Diff([]string{"good"}, notes(s)); diff != "" {
		t.Errorf("after the call that succeeded: %s", diff)
	}
	call = noteCall("second", "", "fail")
	call.Name = "outer"
	r.Execute(t.Context(), call)
	if diff := cmp.Diff([]string{"good"}, notes(s)); diff != "" {
		t.Errorf("after the call that failed: %s", diff)
	}
	if n := session.Query[session.ToolInvoked](s).Len(); n != 6 {
		t.Errorf("%d calls are recorded, want 6: %v", n, invoked(s))
	}
}

type answer struct {
	Text string `json:"text"`
}

func TestToolTx_DispatchesValuesOfResults(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		s := session.New(nil)
		ask := tool.Must("ask", "Answers.", func(_ context.Context, in noteInput) (*answer, error) {
			if in.Then == "fail" {
				return nil, errors.New("it failed")
			}
			return &answer{in.Text}, nil
		})
		r := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, &session.ToolTxOptions{DispatchValues: wanted})}, ask, noteTool())
		for i, then := range []string{"", "fail"} {
			call := noteCall(fmt.Sprint(i), "yes", then)
			call.Name = "ask"
			r.Execute(t.Context(), call)
		}
		r.Execute(t.Context(), noteCall("text", "a", "")) // whose value is a string
		got := slices.Collect(session.Query[answer](s).All())
		if want := []answer{{"yes"}}; wanted && !cmp.Equal(got, want) || !wanted && len(got) != 0 {
			t.Errorf("DispatchValues %v gives %v", wanted, got)
		}
	}
}

func TestToolTx_LongOutputIsTruncated(t *testing.T) {
	for limit, want := range map[int]int{0: 999, 10: 9, -1: 3000} {
		s := session.New(nil)
		long := tool.Must("long", "Says much.", func(context.Context, struct{}) (string, error) { return strings.Repeat("ꙮ", 1000), nil })
		tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, &session.ToolTxOptions{MaxOutput: limit})}, long).Execute(t.Context(), tool.Call{Name: "long"})
		if got := len(latest[session.ToolInvoked](t, s).Output); got != want {
			t.Errorf("with MaxOutput %d there are %d bytes, want %d", limit, got, want)
		}
	}
}

func TestToolTx_CallFailsIfItsCommitFails(t *testing.T) {
	s := session.New(nil)
	gone := tool.Must("gone", "Loses its session.", func(ctx context.Context, _ struct{}) (string, error) {
		dispatch(t, ctx, s, remark{"a"})
		return "fine", s.Close()
	})
	result := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, gone).Execute(t.Context(), tool.Call{Name: "gone"})
	if result.OK() || !errors.Is(result.Err, session.ErrClosed) || !strings.Contains(result.Render(), "changes to the session are lost") {
		t.Errorf("the call ended with %q: %s", result.Outcome, result.Render())
	}
}

// A call that fails while the disk is full cannot be rolled back at that moment.
func TestToolTx_FailedRollbackIsRetried(t *testing.T) {
	for _, how := range []string{"dispatch", "commit"} {
		d := newDisk()
		s := openDisk(t, d)
		var late context.Context
		fails := tool.Must("fails", "Fails when nothing can be kept.", func(ctx context.Context, _ struct{}) (string, error) {
			late = ctx
			dispatch(t, ctx, s, remark{"inside"})
			d.full = true
			return "", errors.New("it failed")
		})
		outer, tx := s.Begin(t.Context(), "toolu_outer")
		dispatch(t, outer, s, remark{"outside"})
		tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, fails).Execute(outer, tool.Call{ID: "toolu_1", Name: "fails"})
		if err := tx.Commit(); !errors.Is(err, errFull) {
			t.Errorf("%s: Commit around it = %v, want the full disk", how, err)
		}
		d.full = false
		if _, err := s.Dispatch(context.WithoutCancel(late), remark{"late"}); !errors.Is(err, session.ErrTxOver) {
			t.Errorf("%s: the handler that goes on got %v, want ErrTxOver", how, err)
		}
		if how == "dispatch" {
			dispatch(t, t.Context(), s, added{1})
		} else if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		if got := notes(s); !cmp.Equal(got, []string{"outside"}) {
			t.Errorf("%s: the state is %q, want what was outside the call", how, got)
		}
	}
}

func BenchmarkToolTx(b *testing.B) {
	s := session.New(nil)
	r := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, noteTool())
	call := noteCall("", "a", "")
	b.ReportAllocs()
	for b.Loop() {
		r.Execute(b.Context(), call)
	}
}

func ExampleToolTx() {
	s := session.New(nil)
	note := tool.Must("note", "Notes something.", func(ctx context.Context, in struct{ Text string }) (string, error) {
		own, _ := session.From(ctx)
		if _, err := own.Dispatch(ctx, remark{in.Text}); err != nil {
			return "", err
		}
		if in.Text == "nonsense" {
			return "", errors.New("that makes no sense")
		}
		return "noted", nil
	})
	tools := tool.MustRegistry(&tool.Options{Around: session.ToolTx(s, nil)}, note)
	for _, text := range []string{"sense", "nonsense"} {
		tools.Execute(context.Background(), tool.Call{Name: "note", Input: json.RawMessage(`{"Text":"` + text + `"}`)})
	}
	for n := range session.Query[remark](s).All() {
		fmt.Println("kept:", n.Text)
	}
	for call := range session.Query[session.ToolInvoked](s).All() {
		fmt.Println(strings.TrimSpace(fmt.Sprint(call.Name, " ", call.Status, " ", call.Error)))
	}
	// Output:
	// kept: sense
	// note success
	// note error Error: that makes no sense
}
