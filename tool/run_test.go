// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/tool"
)

func TestTimeout_LowerOneApplies(t *testing.T) {
	for _, tc := range []struct {
		name            string
		tool, call, ctx time.Duration
		want            time.Duration // zero: none
	}{
		{"none", 0, 0, 0, 0},
		{"the tool's", time.Minute, 0, 0, time.Minute},
		{"the call's", 0, time.Minute, 0, time.Minute},
		{"the call's is lower", time.Hour, time.Minute, 0, time.Minute},
		{"the tool's is lower", time.Minute, time.Hour, 0, time.Minute},
		{"the context's is lower", time.Hour, time.Hour, time.Minute, time.Minute},
		{"a negative one means no bound", 0, -time.Minute, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				if tc.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.ctx)
					defer cancel()
				}
				made := doing(func(ctx context.Context) (tool.Result, error) {
					deadline, ok := ctx.Deadline()
					if !ok {
						return tool.OK(time.Duration(0)), nil
					}
					return tool.OK(time.Until(deadline)), nil
				}, tool.WithTimeout(tc.tool))
				if r := made.Run(ctx, tool.Call{Timeout: tc.call}); r.Value != tc.want {
					t.Errorf("the handler sees %v, want %v (%s)", r.Value, tc.want, r.Render())
				}
			})
		})
	}
}

func TestTimeout_StopsAHandlerThatObservesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := false
		made := doing(func(ctx context.Context) (tool.Result, error) {
			<-ctx.Done()
			stopped = true
			return tool.Result{}, ctx.Err()
		}, tool.WithTimeout(time.Minute))
		r := made.Run(t.Context(), tool.Call{ID: "c"})
		if !stopped || r.Duration != time.Minute || r.CallID != "c" || r.Tool != "doing" {
			t.Errorf("stopped %t after %s: %+v, want stopped after a minute", stopped, r.Duration, r)
		}
		if r.Outcome != tool.Failed || r.Err.Code != tool.CodeTimeout || r.Err.Category != tool.CategoryTimeout || !r.Err.Retryable {
			t.Errorf("got %s, %+v, want a timeout that may be tried again", r.Outcome, r.Err)
		}
		if want := "The tool did not finish in time. Check what the tool did before you call it again."; r.Render() != want {
			t.Errorf("got %q, want %q", r.Render(), want)
		}
	})
}

// A model that reads that the tool did not run need not check what it did.
func TestTimeout_BeforeTheToolRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		made := doing(func(ctx context.Context) (tool.Result, error) {
			ran++
			<-ctx.Done()
			return tool.OK("stopped"), nil
		})
		r := tool.MustRegistry(&tool.Options{Concurrency: 1}, made)
		over, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		long, stop := context.WithCancel(t.Context())
		done := make(chan tool.Result)
		go func() { done <- r.Execute(long, tool.Call{Name: "doing"}) }()
		synctest.Wait() // the only slot is taken
		for name, got := range map[string]tool.Result{
			"of the tool alone":  made.Run(over, tool.Call{}),
			"of a registry":      r.Execute(over, tool.Call{Name: "doing"}),
			"waiting for a slot": r.Execute(short, tool.Call{Name: "doing"}),
		} {
			want := "The time for this call was over before the tool ran, and it did nothing. Call it again if you still need it."
			if got.Render() != want || got.Err.Code != tool.CodeTimeout || !got.Err.Retryable {
				t.Errorf("%s: got %q, %+v, want %q", name, got.Render(), got.Err, want)
			}
		}
		stop()
		<-done
		if ran != 1 {
			t.Errorf("the tool ran %d times, want once", ran)
		}
	})
}

func TestTimeout_DoesNotWaitForAHandlerThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var effect atomic.Bool
		made := doing(func(context.Context) (tool.Result, error) {
			time.Sleep(time.Hour)
			effect.Store(true)
			return tool.OK("late"), nil
		}, tool.WithTimeout(time.Minute))
		r := made.Run(t.Context(), tool.Call{})
		if r.Duration != time.Minute+time.Second || effect.Load() {
			t.Errorf("returned after %s, effect %t, want after the minute and a second of grace", r.Duration, effect.Load())
		}
		if want := "The tool did not finish in time. It was asked to stop and still runs after 1s. Do not call it again; its effects may come later."; r.Render() != want {
			t.Errorf("got %q, want %q", r.Render(), want)
		}
		if r.Err.Code != tool.CodeTimeout || r.Err.Retryable {
			t.Errorf("got %+v, want a timeout that must not be tried again", r.Err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if !effect.Load() {
			t.Error("the handler was not what this test is about: it never came to its effect")
		}
	})
}

// A handler that finishes within the grace period has done its work, and its result counts.
func TestTimeout_ResultWithinTheGracePeriodCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := doing(func(context.Context) (tool.Result, error) {
			time.Sleep(time.Minute + time.Second/2)
			return tool.OK("done"), nil
		}, tool.WithTimeout(time.Minute))
		if r := made.Run(t.Context(), tool.Call{}); !r.OK() || r.Render() != "done" {
			t.Errorf("got %q, want the result", r.Render())
		}
	})
}

func TestRun_Cancellation(t *testing.T) {
	gone := errors.New("the user has left")
	listens := func(ctx context.Context) (tool.Result, error) { <-ctx.Done(); return tool.Result{}, ctx.Err() }
	for _, tc := range []struct {
		name  string
		cause error
		fn    func(context.Context) (tool.Result, error)
		want  string
	}{
		{"without a cause", nil, listens, "Cancelled"},
		{"with a cause", gone, listens, "Cancelled: the user has left"},
		{"a handler that returns the cause", gone, func(ctx context.Context) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, context.Cause(ctx)
		}, "Cancelled: the user has left"},
		{"a handler that does not listen", gone, func(context.Context) (tool.Result, error) { time.Sleep(time.Hour); return tool.Result{}, nil }, "Cancelled: the user has left. It was asked to stop and still runs after 1s. Do not call it again; its effects may come later."},
		{"a handler that does not listen, without a cause", nil, func(context.Context) (tool.Result, error) { time.Sleep(time.Hour); return tool.Result{}, nil }, "Cancelled. It was asked to stop and still runs after 1s. Do not call it again; its effects may come later."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(tc.cause) })
				r := doing(tc.fn).Run(ctx, tool.Call{})
				if r.Outcome != tool.Cancelled || r.Err.Code != tool.CodeCancelled || r.Err.Category != tool.CategoryCancelled || r.Err.Retryable {
					t.Errorf("got %s, %+v, want a cancellation", r.Outcome, r.Err)
				}
				if r.Render() != tc.want {
					t.Errorf("got %q, want %q", r.Render(), tc.want)
				}
				time.Sleep(2 * time.Hour) // lets the handler end that does not listen
			})
		})
	}
}

func TestRun_CancelledCallDoesNotRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("too late"))
	ran := false
	r := doing(func(context.Context) (tool.Result, error) { ran = true; return tool.Result{}, nil }).Run(ctx, tool.Call{})
	if ran || r.Outcome != tool.Cancelled || r.Render() != "Cancelled: too late" {
		t.Errorf("ran %t: got %s, %q, want a cancellation", ran, r.Outcome, r.Render())
	}
}

func TestRun_HandlerThatEndsItsGoroutineIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := doing(func(context.Context) (tool.Result, error) { runtime.Goexit(); return tool.Result{}, nil }).Run(ctx, tool.Call{})
	if want := "Error: the tool ended its goroutine without a result"; r.Render() != want {
		t.Errorf("got %q, want %q", r.Render(), want)
	}
}

func TestTimeout_DoesNotOutliveTheCall(t *testing.T) {
	var kept context.Context
	made := doing(func(ctx context.Context) (tool.Result, error) { kept = ctx; return tool.Result{}, nil }, tool.WithTimeout(time.Hour))
	made.Run(t.Context(), tool.Call{})
	if kept.Err() == nil {
		t.Error("the context of the call lives on after it")
	}
}

func TestRun_DryRun(t *testing.T) {
	ran := false
	real := func(context.Context, search) (string, error) { ran = true; return "done", nil }
	dry := tool.WithDryRun(func(_ context.Context, input json.RawMessage) (tool.Result, error) {
		return tool.Text("would search " + string(input)), nil
	})
	for _, tc := range []struct {
		name  string
		tool  *tool.Tool
		input string
		want  string
		code  string
	}{
		{"answered", tool.Must("search", "d", real, dry), `{"path":"a"}`, `would search {"path":"a"}`, ""},
		{"of a tool that is declared alone", tool.Must[search, string]("search", "d", nil, dry), `{"path":"a"}`, `would search {"path":"a"}`, ""},
		{"of a tool without a dry run", tool.Must("search", "d", real), `{"path":"a"}`, "Tool search has no dry run. Continue without this call.", tool.CodeNoDryRun},
		{"with wrong arguments", tool.Must("search", "d", real, dry), `{}`, `Validation error: value does not match its schema: (root): property "path" is missing. Correct the arguments and call the tool again.`, tool.CodeInvalidInput},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tc.tool.Run(t.Context(), tool.Call{DryRun: true, Input: json.RawMessage(tc.input)})
			code := ""
			if r.Err != nil {
				code = r.Err.Code
			}
			if r.Render() != tc.want || code != tc.code || ran || r.OK() && !r.DryRun {
				t.Errorf("got %q, %q, ran %t, marked %t, want %q, %q", r.Render(), code, ran, r.DryRun, tc.want, tc.code)
			}
		})
	}
}

func TestRun_ToolWithoutASchemaAcceptsAnyObject(t *testing.T) {
	made := &tool.Tool{Name: "x", Handler: func(_ context.Context, input json.RawMessage) (tool.Result, error) {
		return tool.OK(string(input)), nil
	}}
	for _, tc := range []struct {
		input string
		ok    bool
	}{{"", true}, {" ", true}, {`{"a":[1]}`, true}, {`[1]`, false}, {`"a"`, false}, {`null`, false}, {`{`, false}, {`{"a":1,"a":2}`, false}} {
		if r := made.Run(t.Context(), tool.Call{Input: json.RawMessage(tc.input)}); r.OK() != tc.ok {
			t.Errorf("%q: got %q, want ok %t", tc.input, r.Render(), tc.ok)
		}
	}
}

func TestRun_EveryResultNamesItsCall(t *testing.T) {
	for name, input := range map[string]string{"a success": `{"a":1,"b":2}`, "wrong arguments": `{}`} {
		got := sum().Run(t.Context(), tool.Call{ID: "c7", Name: "anything", Input: json.RawMessage(input)})
		if got.CallID != "c7" || got.Tool != "sum" {
			t.Errorf("%s: the result is of call %q of %q, want c7 of sum", name, got.CallID, got.Tool)
		}
	}
}
