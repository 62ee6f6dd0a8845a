// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

func TestContext_OutsideACallHasNothing(t *testing.T) {
	ctx := t.Context()
	if call, ok := tool.CallFrom(ctx); ok {
		t.Errorf("got the call %+v, want none", call)
	}
	reported := false
	ctx = tool.WithProgress(ctx, func(context.Context, float64, float64, string) error { reported = true; return nil })
	if err := tool.Progress(ctx, 1, 2, "m"); err != nil || reported {
		t.Errorf("got %v and reported %t, want nothing", err, reported)
	}
	if tool.Logger(ctx).Enabled(ctx, slog.LevelError) {
		t.Error("a line outside a call goes somewhere")
	}
}

func TestCallFrom_HandlerKnowsItsCall(t *testing.T) {
	var got tool.Call
	made := doing(func(ctx context.Context) (tool.Result, error) {
		got, _ = tool.CallFrom(ctx)
		return tool.Result{}, nil
	})
	made.Run(t.Context(), tool.Call{ID: "c1", Name: "doing", AgentID: "a", Timeout: time.Hour})
	want := tool.Call{ID: "c1", Name: "doing", AgentID: "a", Timeout: time.Hour, Input: json.RawMessage(`{}`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A tool that calls another one lends it its own call only if the other is a part of it.
func TestCallFrom_NestedCallKnowsItself(t *testing.T) {
	inner := tool.Must("inner", "d", func(ctx context.Context, _ map[string]int) (string, error) {
		call, _ := tool.CallFrom(ctx)
		return string(call.ID) + string(call.Input), nil
	})
	for _, tc := range []struct{ name, outer, inner, want string }{
		{"without ids", "", "", `{"n":1}`},
		{"one without", "whole", "", `{"n":1}`},
		{"another id", "whole", "other", `other{"n":1}`},
		{"a part", "whole", "whole", `whole{}`},
	} {
		outer := doing(func(ctx context.Context) (tool.Result, error) {
			return inner.Run(ctx, tool.Call{ID: event.CallID(tc.inner), Input: json.RawMessage(`{"n":1}`)}), nil
		})
		if r := outer.Run(t.Context(), tool.Call{ID: event.CallID(tc.outer)}); r.Render() != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, r.Render(), tc.want)
		}
	}
}

func TestProgress_ReachesTheCaller(t *testing.T) {
	var got []string
	stop := errors.New("no reader")
	ctx := tool.WithProgress(t.Context(), func(_ context.Context, done, total float64, message string) error {
		got = append(got, fmt.Sprint(done, "/", total, " ", message))
		if done == 2 {
			return stop
		}
		return nil
	})
	made := doing(func(ctx context.Context) (tool.Result, error) {
		if err := tool.Progress(ctx, 1, 0, ""); err != nil {
			return tool.Result{}, err
		}
		return tool.Text("done"), tool.Progress(ctx, 2, 3, "half")
	})
	r := made.Run(ctx, tool.Call{})
	if diff := cmp.Diff([]string{"1/0 ", "2/3 half"}, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if !errors.Is(r.Err, stop) {
		t.Errorf("got %v, want the error of the listener", r.Err)
	}
}

func TestProgress_FailsAfterTheCall(t *testing.T) {
	var kept context.Context
	made := doing(func(ctx context.Context) (tool.Result, error) { kept = ctx; return tool.Result{}, nil }, tool.WithTimeout(time.Minute))
	made.Run(t.Context(), tool.Call{})
	if err := tool.Progress(kept, 1, 1, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestProgress_PartsReportUnderTheCall(t *testing.T) {
	part := doing(func(ctx context.Context) (tool.Result, error) {
		tool.Logger(ctx).Info("from the part")
		return tool.Result{}, tool.Progress(ctx, 1, 2, "part")
	})
	whole := tool.Must("whole", "d", func(ctx context.Context, _ tool.None) (tool.Result, error) {
		call, _ := tool.CallFrom(ctx)
		return part.Run(ctx, call), nil
	})
	var got []string
	r := tool.MustRegistry(&tool.Options{Emit: func(e event.Event) {
		switch p := e.Payload.(type) {
		case event.ToolProgress:
			got = append(got, "progress "+string(p.ID)+" "+p.Message)
		case event.ToolLog:
			got = append(got, "log "+string(p.ID)+" "+p.Message)
		}
	}}, whole)
	r.Execute(t.Context(), tool.Call{ID: "c", Name: "whole"})
	if diff := cmp.Diff([]string{"log c from the part", "progress c part"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKey_KeysOfOneNameDoNotCollide(t *testing.T) {
	mine, theirs, other := tool.NewKey[string]("session"), tool.NewKey[string]("session"), tool.NewKey[int]("session")
	ctx := mine.With(t.Context(), "mine")
	if got, ok := mine.From(ctx); !ok || got != "mine" {
		t.Errorf("got %q, %t, want the value", got, ok)
	}
	if got, ok := theirs.From(ctx); ok || got != "" {
		t.Errorf("another key of the name: got %q, %t, want nothing", got, ok)
	}
	if got, ok := other.From(ctx); ok || got != 0 {
		t.Errorf("another key of another type: got %d, %t, want nothing", got, ok)
	}
	if got := mine.String(); !strings.Contains(got, "session") {
		t.Errorf("got %q, want the name in it", got)
	}
}

func TestKey_ValuesReachTheHandler(t *testing.T) {
	key := tool.NewKey[int]("answer")
	got := 0
	made := doing(func(ctx context.Context) (tool.Result, error) { got, _ = key.From(ctx); return tool.Result{}, nil }, tool.WithTimeout(time.Minute))
	made.Run(key.With(t.Context(), 42), tool.Call{})
	if got != 42 {
		t.Errorf("got %d, want 42", got)
	}
}

func TestDetach_KnowsTheCallUntilItEnds(t *testing.T) {
	key := tool.NewKey[int]("answer")
	var later context.Context
	made := doing(func(ctx context.Context) (tool.Result, error) {
		later = tool.Detach(ctx)
		if call, ok := tool.CallFrom(later); !ok || call.ID != "call-1" {
			t.Errorf("during the call it is %+v", call)
		}
		return tool.Result{}, nil
	}, tool.WithTimeout(time.Minute))
	made.Run(key.With(t.Context(), 42), tool.Call{ID: "call-1"})
	if call, ok := tool.CallFrom(later); ok || later.Err() != nil {
		t.Errorf("after the call it is %+v (%v), want none", call, later.Err())
	}
	if got, _ := key.From(later); got != 42 {
		t.Errorf("got %d, want the other values", got)
	}
}
