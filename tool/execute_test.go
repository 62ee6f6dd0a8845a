// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

func deciding(d event.Decision) tool.Decider {
	return tool.DeciderFunc(func(context.Context, event.ToolCall) event.Decision { return d })
}

// decideWith is a decider of one decision that keeps what it was asked.
type decideWith struct {
	event.Decision
	asked []event.ToolCall
}

func (d *decideWith) Decide(_ context.Context, call event.ToolCall) event.Decision {
	d.asked = append(d.asked, call)
	return d.Decision
}

// A journal keeps events in the order in which they came.
type journal struct {
	mu     sync.Mutex
	events []event.Event
}

func (j *journal) emit(e event.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// lines gives one short line for each event.
func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, e := range j.events {
		line := string(e.Kind)
		switch p := e.Payload.(type) {
		case event.ToolStep:
			line += " " + p.Step
		case event.ToolResult:
			line += " " + string(p.Status)
		case event.Decision:
			line += " " + p.Verdict.String()
		case event.ToolLog:
			line += " " + p.Level + " " + p.Message
		}
		out = append(out, line)
	}
	return out
}

func sumOf(a, b string) tool.Call {
	return tool.Call{ID: "c1", Name: "sum", Input: json.RawMessage(`{"a":` + a + `,"b":` + b + `}`)}
}

func TestExecute_Outcomes(t *testing.T) {
	boom := tool.Must("boom", "panics", func(context.Context, tool.None) (int, error) { panic("ouch") })
	declared := tool.Must[tool.None, int]("declared", "has no handler", nil)
	for _, c := range []struct {
		name    string
		opts    tool.Options
		call    tool.Call
		outcome tool.Outcome
		code    string
		text    string
		steps   []string
	}{
		{
			"a call that succeeds",
			tool.Options{},
			sumOf("1", "2"), tool.Success, "", "3",
			[]string{"tool_use", "tool:step validated", "tool:step allowed", "tool:step started", "tool:step returned", "tool_result success"},
		},
		{
			"by its full name",
			tool.Options{},
			tool.Call{ID: "c1", Name: "mcp__any__sum", Input: json.RawMessage(`{"a":1,"b":2}`)},
			tool.Success, "", "3",
			[]string{"tool_use", "tool:step validated", "tool:step allowed", "tool:step started", "tool:step returned", "tool_result success"},
		},
		{
			"wrong arguments",
			tool.Options{},
			sumOf(`"x"`, "2"), tool.Failed, tool.CodeInvalidInput,
			"Validation error: value does not match its schema: /a: must be an integer, got a string. Correct the arguments and call the tool again.",
			[]string{"tool_use", "tool:step invalid", "tool_result error"},
		},
		{
			"no arguments",
			tool.Options{},
			tool.Call{ID: "c1", Name: "sum"},
			tool.Failed, tool.CodeInvalidInput,
			`Validation error: value does not match its schema: (root): property "a" is missing; (root): property "b" is missing. Correct the arguments and call the tool again.`,
			[]string{"tool_use", "tool:step invalid", "tool_result error"},
		},
		{
			"an unknown tool",
			tool.Options{},
			tool.Call{ID: "c1", Name: "sun"},
			tool.Failed, tool.CodeUnknownTool, `There is no tool "sun". Call one of these: sum, boom.`,
			[]string{"tool_use", "tool_result error"},
		},
		{
			"a tool without a handler",
			tool.Options{},
			tool.Call{ID: "c1", Name: "declared"},
			tool.Failed, tool.CodeNotServed, "Tool declared has no handler. Use another tool.",
			[]string{"tool_use", "tool:step invalid", "tool_result error"},
		},
		{
			"a panic",
			tool.Options{},
			tool.Call{ID: "c1", Name: "boom"},
			tool.Failed, tool.CodePanic, "Error: the tool panicked: ouch",
			[]string{"tool_use", "tool:step validated", "tool:step allowed", "tool:step started", "tool:log error tool panicked", "tool:step returned", "tool_result error"},
		},
		{
			"a decider that denies",
			tool.Options{Decider: deciding(event.Decision{Reason: "not today"})},
			sumOf("1", "2"), tool.Denied, tool.CodeDenied, "not today",
			[]string{"tool_use", "tool:step validated", "tool:step denied", "tool_result denied"},
		},
		{
			"an empty decision denies",
			tool.Options{Decider: deciding(event.Decision{})},
			sumOf("1", "2"), tool.Denied, tool.CodeDenied, "Policy denied",
			[]string{"tool_use", "tool:step validated", "tool:step denied", "tool_result denied"},
		},
		{
			"a decider that asks",
			tool.Options{Decider: deciding(event.Decision{Verdict: event.Ask, Reason: "sure?"})},
			sumOf("1", "2"), tool.NeedsApproval, tool.CodeNeedsApproval, "sure?",
			[]string{"tool_use", "tool:step validated", "tool:step needs_approval", "tool_result needs_approval"},
		},
		{
			"a decider that writes the input",
			tool.Options{Decider: deciding(event.Decision{Verdict: event.Allow, Input: json.RawMessage(`{"a":40,"b":2}`)})},
			sumOf("1", "2"), tool.Success, "", "42",
			[]string{"tool_use", "tool:step validated", "tool:step allowed", "tool:step started", "tool:step returned", "tool_result success"},
		},
		{
			"a decider that writes a wrong input",
			tool.Options{Decider: deciding(event.Decision{Verdict: event.Allow, Input: json.RawMessage(`{}`)})},
			sumOf("1", "2"), tool.Failed, tool.CodeInvalidInput,
			`A policy replaced the arguments, and they are invalid: value does not match its schema: (root): property "a" is missing; (root): property "b" is missing. Continue without this call.`,
			[]string{"tool_use", "tool:step validated", "tool_result error"},
		},
		{
			"a decider that panics",
			tool.Options{Decider: tool.DeciderFunc(func(context.Context, event.ToolCall) event.Decision { panic("gone") })},
			sumOf("1", "2"), tool.Denied, tool.CodeDenied, "The decision about this call failed. Continue without this call.",
			[]string{"tool_use", "tool:step validated", "tool:step denied", "tool_result denied"},
		},
		{
			"a policy that denies",
			tool.Options{Before: []tool.Before{answering(event.Decision{Reason: "before"}), answering(event.Decision{Reason: "never asked"})}},
			sumOf("1", "2"), tool.Denied, tool.CodeDenied, "before",
			[]string{"tool_use", "tool:step validated", "gate:decision deny", "tool:step denied", "tool_result denied"},
		},
		{
			"a policy that asks",
			tool.Options{Before: []tool.Before{answering(event.Decision{Verdict: event.Ask})}},
			sumOf("1", "2"), tool.NeedsApproval, tool.CodeNeedsApproval, "Tool sum needs approval, and no approver was asked. Continue without this call.",
			[]string{"tool_use", "tool:step validated", "gate:decision ask", "tool:step needs_approval", "tool_result needs_approval"},
		},
		{
			"a policy that panics",
			tool.Options{Before: []tool.Before{func(context.Context, *tool.Tool, tool.Call) (event.Decision, bool) { panic("eek") }}},
			sumOf("1", "2"), tool.Denied, tool.CodeDenied, "A policy failed: eek. Continue without this call.",
			[]string{"tool_use", "tool:step validated", "gate:decision deny", "tool:step denied", "tool_result denied"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var j journal
			c.opts.Emit = j.emit
			got := tool.MustRegistry(&c.opts, sum(), boom, declared).Execute(t.Context(), c.call)
			if got.Outcome != c.outcome || got.Render() != c.text || got.CallID != "c1" {
				t.Errorf("got %s %q of call %q, want %s %q of c1", got.Outcome, got.Render(), got.CallID, c.outcome, c.text)
			}
			code := ""
			if got.Err != nil {
				code = got.Err.Code
			}
			if code != c.code {
				t.Errorf("code = %q, want %q", code, c.code)
			}
			if diff := cmp.Diff(c.steps, j.lines()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func answering(d event.Decision) tool.Before {
	return func(context.Context, *tool.Tool, tool.Call) (event.Decision, bool) { return d, true }
}

func TestDecider_JudgesTheCallThatWouldRun(t *testing.T) {
	d := &decideWith{Decision: event.Decision{Verdict: event.Allow}}
	r := tool.MustRegistry(&tool.Options{Decider: d, Before: []tool.Before{answering(event.Decision{Verdict: event.Allow, Input: json.RawMessage(`{"a":7,"b":0}`)})}}, sum())
	if got := r.Execute(t.Context(), sumOf("1", "2")); got.Render() != "7" {
		t.Errorf("got %q, want the sum of the input that the policy wrote", got.Render())
	}
	if got := string(d.asked[0].Input); got != `{"a":7,"b":0}` {
		t.Errorf("the decider saw %s, want what would run", got)
	}
}

// A tool must not be judged by what is known of another that has the same name, or that the caller's
// name for it means.
func TestDecider_ReceivesTheToolThatWouldRun(t *testing.T) {
	for _, c := range []struct{ name, call, as, want string }{
		{"by its name", "read", "", "read"},
		{"by its id, where the name means it too", "two:read", "", "two:read"},
		{"by its id, where the name means another", "one:read", "", "one:read"},
		{"by a name of the caller's", "one:read", "custom_read", "custom_read"},
		{"by a name of the caller's that means another", "one:read", "read", "one:read"},
		{"by the name with its server", "mcp__key__read", "", "mcp__key__read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &decideWith{}
			r := tool.MustRegistry(&tool.Options{Decider: d}, named("read", tool.WithID("one", "")), named("read", tool.WithID("two", "")))
			r.Execute(t.Context(), tool.Call{Name: c.call, As: c.as})
			if d.asked[0].Name != c.want {
				t.Errorf("the decider was asked about %q, want %q", d.asked[0].Name, c.want)
			}
		})
	}
}

func TestBudget_LimitsCallsAndTime(t *testing.T) {
	r := tool.MustRegistry(&tool.Options{Budget: tool.Budget{MaxCalls: 2}}, sum())
	r.Execute(t.Context(), tool.Call{Name: "unknown"}) // reaches no tool, and costs nothing
	for i, want := range []string{"3", "3", "Call budget exhausted: 2 calls are allowed. Call no more tools; give your final answer."} {
		if got := r.Execute(t.Context(), sumOf("1", "2")); got.Render() != want {
			t.Errorf("call %d: %q, want %q", i+1, got.Render(), want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := tool.MustRegistry(&tool.Options{Budget: tool.Budget{MaxDuration: time.Minute}}, sum())
		if got := r.Execute(t.Context(), sumOf("1", "2")); !got.OK() {
			t.Errorf("within the time: %q", got.Render())
		}
		time.Sleep(time.Minute)
		if got := r.Execute(t.Context(), sumOf("1", "2")); got.Outcome != tool.Denied || got.Render() != "Time budget exhausted: calls are allowed for 1m0s. Call no more tools; give your final answer." {
			t.Errorf("after the time: %s %q", got.Outcome, got.Render())
		}
	})
}

func TestRegistry_BoundsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := map[string]int{}, map[string]int{}
		busy := func(name string, opts ...tool.Option) *tool.Tool {
			return tool.Must(name, "is busy for a second", func(context.Context, tool.None) (int, error) {
				mu.Lock()
				now[name]++
				now["all"]++
				most[name], most["all"] = max(most[name], now[name]), max(most["all"], now["all"])
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				now[name]--
				now["all"]--
				return 0, nil
			}, opts...)
		}
		r := tool.MustRegistry(&tool.Options{Concurrency: 3}, busy("wide"), busy("narrow", tool.WithConcurrency(1)))
		var calls []tool.Call
		for range 5 {
			calls = append(calls, tool.Call{Name: "wide"}, tool.Call{Name: "narrow"})
		}
		for _, got := range compose.ExecuteAll(t.Context(), r, calls, nil) {
			if !got.OK() {
				t.Errorf("%s", got.Render())
			}
		}
		if most["narrow"] != 1 || most["all"] != 3 {
			t.Errorf("at once ran %v, want 1 narrow and 3 of all", most)
		}
	})
}

func TestRegistry_TimesOutAndWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := tool.Must("deaf", "does not listen", func(context.Context, tool.None) (int, error) { <-release; return 0, nil })
		listens := tool.Must("listens", "listens", func(ctx context.Context, _ tool.None) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		r := tool.MustRegistry(&tool.Options{Timeout: time.Minute}, deaf, listens)

		got := r.Execute(t.Context(), tool.Call{Name: "listens", Timeout: time.Second})
		if got.Err == nil || got.Err.Code != tool.CodeTimeout || !got.Err.Retryable || got.Duration != time.Second {
			t.Errorf("after %s: %+v, want a timeout after the call's own second that may be retried", got.Duration, got.Err)
		}
		if err := r.Wait(t.Context()); err != nil {
			t.Errorf("a handler that listens was left: %v", err)
		}
		got = r.Execute(t.Context(), tool.Call{Name: "deaf"})
		if want := "It was asked to stop and still runs after 1s"; got.Duration != time.Minute+time.Second || !strings.Contains(got.Render(), want) {
			t.Errorf("after %s: %q, want after the minute and the grace that %q", got.Duration, got.Render(), want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait did not see the handler that still runs: %v", err)
		}
		close(release)
		if err := r.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestExecute_DigestsInputAndOutput(t *testing.T) {
	r := tool.MustRegistry(&tool.Options{Digests: true}, sum())
	one := r.Execute(t.Context(), tool.Call{Name: "sum", Input: json.RawMessage(`{"a":1,"b":2}`)})
	other := r.Execute(t.Context(), tool.Call{Name: "sum", Input: json.RawMessage(`{ "b":2, "a":1 }`)})
	third := r.Execute(t.Context(), tool.Call{Name: "sum", Input: json.RawMessage(`{"a":2,"b":1}`)})
	if one.InputDigest != other.InputDigest || len(one.InputDigest) != 64 {
		t.Errorf("the same input has the digests %q and %q", one.InputDigest, other.InputDigest)
	}
	if one.InputDigest == third.InputDigest || one.OutputDigest != third.OutputDigest {
		t.Error("another input must have another digest, and the same output the same")
	}
	if one.CallID == other.CallID || one.CallID == "" {
		t.Errorf("calls without an id got %q and %q, want one of their own each", one.CallID, other.CallID)
	}
}

func TestAfter_SeesResultsAndChangesNothing(t *testing.T) {
	var saw []tool.Outcome
	var log bytes.Buffer
	r := tool.MustRegistry(&tool.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		After: []tool.After{
			func(_ context.Context, _ *tool.Tool, _ tool.Call, got tool.Result) error {
				saw = append(saw, got.Outcome)
				return errors.New("disk full")
			},
			func(context.Context, *tool.Tool, tool.Call, tool.Result) error { panic("eek") },
		},
	}, sum())
	if got := r.Execute(t.Context(), sumOf("1", "2")); got.Render() != "3" {
		t.Errorf("got %q", got.Render())
	}
	r.Execute(t.Context(), sumOf(`""`, "2"))
	if diff := cmp.Diff([]tool.Outcome{tool.Success, tool.Failed}, saw); diff != "" {
		t.Errorf("outcomes seen (-want +got):\n%s", diff)
	}
	for _, want := range []string{"disk full", "panic: eek", "tool=sum"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

var userKey = tool.NewKey[string]("user")

func TestRegistry_HandlersGetContextLoggerAndProgress(t *testing.T) {
	var j journal
	var saw tool.Call
	var user string
	curious := tool.Must("curious", "looks around", func(ctx context.Context, _ tool.None) (string, error) {
		saw, _ = tool.CallFrom(ctx)
		user, _ = userKey.From(ctx)
		log := tool.Logger(ctx).With("k", 1).WithGroup("g")
		log.InfoContext(ctx, "looking", "err", errors.New("none"), slog.Group("deep", "x", true))
		log.DebugContext(ctx, "not reported")
		return "", tool.Progress(ctx, 1, 2, "half")
	})
	var progress []string
	ctx := tool.WithProgress(t.Context(), func(_ context.Context, done, total float64, message string) error {
		progress = append(progress, message)
		return nil
	})
	r := tool.MustRegistry(&tool.Options{
		Emit: j.emit,
		Context: func(ctx context.Context, call tool.Call) context.Context {
			return userKey.With(ctx, string("user of "+call.ID))
		},
	}, curious)
	if got := r.Execute(ctx, tool.Call{ID: "c9", Name: "curious", AgentID: "sub"}); !got.OK() {
		t.Fatal(got.Render())
	}
	if saw.ID != "c9" || saw.AgentID != "sub" || user != "user of c9" {
		t.Errorf("the handler saw call %+v and user %q", saw, user)
	}
	var log event.ToolLog
	for _, e := range j.events {
		if l, ok := e.Payload.(event.ToolLog); ok {
			log = l
		}
	}
	want := event.ToolLog{ID: "c9", Level: "info", Message: "looking", Attrs: map[string]json.RawMessage{
		"k": json.RawMessage("1"), "g.err": json.RawMessage(`"none"`), "g.deep.x": json.RawMessage("true"),
	}}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("the log event (-want +got):\n%s", diff)
	}
	if lines := strings.Join(j.lines(), "\n"); !strings.Contains(lines, "tool:progress") || strings.Contains(lines, "not reported") {
		t.Errorf("events:\n%s", lines)
	}
	if diff := cmp.Diff([]string{"half"}, progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestExecute_DryRunDoesNotRunTheHandler(t *testing.T) {
	ran := false
	r := tool.MustRegistry(nil, tool.Must("rm", "removes", func(context.Context, tool.None) (int, error) { ran = true; return 0, nil },
		tool.WithDryRun(func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Text("would remove"), nil })), sum())
	if got := r.Execute(t.Context(), tool.Call{Name: "rm", DryRun: true}); got.Render() != "would remove" || !got.DryRun || ran {
		t.Errorf("got %q (dry %v), ran %v", got.Render(), got.DryRun, ran)
	}
	if got := r.Execute(t.Context(), tool.Call{Name: "sum", DryRun: true}); got.Err == nil || got.Err.Code != tool.CodeNoDryRun {
		t.Errorf("got %+v, want that the tool has no dry run", got)
	}
}

func TestRegistry_PartsReportUnderTheWholeCall(t *testing.T) {
	var j journal
	part := tool.Must("part", "reports much", func(ctx context.Context, _ tool.None) (map[string]int, error) {
		tool.Logger(ctx).InfoContext(ctx, "from a part")
		return map[string]int{}, tool.Progress(ctx, 1, 1, "")
	})
	whole, err := compose.Pipe("whole", "two parts", []*tool.Tool{part, part})
	if err != nil {
		t.Fatal(err)
	}
	if got := tool.MustRegistry(&tool.Options{Emit: j.emit}, whole).Execute(t.Context(), tool.Call{ID: "c1", Name: "whole"}); !got.OK() {
		t.Fatal(got.Render())
	}
	want := []string{
		"tool_use", "tool:step validated", "tool:step allowed", "tool:step started",
		"tool:log info from a part", "tool:progress", "tool:log info from a part", "tool:progress",
		"tool:step returned", "tool_result success",
	}
	if diff := cmp.Diff(want, j.lines()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestRegistry_PanickingOptionsDoNotEndTheProgram(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	r := tool.MustRegistry(&tool.Options{Logger: logger, Emit: func(event.Event) { panic("no journal") }}, sum())
	if got := r.Execute(t.Context(), sumOf("1", "2")); got.Render() != "3" || !strings.Contains(log.String(), "no journal") {
		t.Errorf("got %q; the log is %q", got.Render(), log.String())
	}
	r = tool.MustRegistry(&tool.Options{Logger: logger, Context: func(context.Context, tool.Call) context.Context { panic("no session") }}, sum())
	if got := r.Execute(t.Context(), sumOf("1", "2")); got.Outcome != tool.Failed || got.Err.Code != tool.CodePanic || !strings.Contains(log.String(), "no session") {
		t.Errorf("got %s %+v; the log is %q", got.Outcome, got.Err, log.String())
	}
}

func TestConcurrency_HandlerThatIgnoresItsContextKeepsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var runs atomic.Int64
		alone := tool.Must("alone", "must run alone", func(context.Context, tool.None) (int64, error) {
			run := runs.Add(1)
			<-release
			return run, nil
		}, tool.WithConcurrency(1), tool.WithTimeout(time.Second))
		r := tool.MustRegistry(nil, alone)
		if got := r.Execute(t.Context(), tool.Call{Name: "alone"}); !strings.Contains(got.Render(), "still runs") {
			t.Fatalf("got %q, want that the handler still runs", got.Render())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got := r.Execute(ctx, tool.Call{Name: "alone"}); got.Err == nil || got.Err.Code != tool.CodeTimeout || runs.Load() != 1 {
			t.Errorf("a second call beside the first: %q after %d runs, want that it never got its turn", got.Render(), runs.Load())
		}
		close(release)
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.Execute(t.Context(), tool.Call{Name: "alone"}); got.Render() != "2" {
			t.Errorf("after the first has returned: %q, want the second run", got.Render())
		}
	})
}
