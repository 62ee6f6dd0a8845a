// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

type aroundKey struct{}

func TestAround_SeesEveryEndOfACall(t *testing.T) {
	var handled any
	work := func(err error) *tool.Tool {
		return &tool.Tool{Name: "work", Description: "Works.", Handler: func(ctx context.Context, _ json.RawMessage) (tool.Result, error) {
			handled = ctx.Value(aroundKey{})
			return tool.OK("fine"), err
		}}
	}
	cases := []struct {
		name string
		tool *tool.Tool
		call tool.Call
		deny bool
		want tool.Outcome
	}{
		{"success", work(nil), tool.Call{Name: "work"}, false, tool.Success},
		{"error", work(errors.New("broken")), tool.Call{Name: "work"}, false, tool.Failed},
		{"denied", work(nil), tool.Call{Name: "work"}, true, tool.Denied},
		{"wrong arguments", work(nil), tool.Call{Name: "work", Input: json.RawMessage(`[]`)}, false, tool.Failed},
		{"unknown", work(nil), tool.Call{Name: "play"}, false, tool.Failed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var seen []tool.Outcome
			r := tool.MustRegistry(&tool.Options{
				Around: func(ctx context.Context, call *tool.Call, next func(context.Context) tool.Result) tool.Result {
					if call.ID == "" {
						t.Error("the call has no id yet")
					}
					result := next(context.WithValue(ctx, aroundKey{}, "there"))
					seen = append(seen, result.Outcome)
					return result
				},
				Decider: tool.DeciderFunc(func(ctx context.Context, _ event.ToolCall) event.Decision {
					if ctx.Value(aroundKey{}) != "there" {
						t.Error("the decider does not have the context")
					}
					if c.deny {
						return event.Decision{}
					}
					return event.Decision{Verdict: event.Allow}
				}),
			}, c.tool)
			handled = nil
			got := r.Execute(t.Context(), c.call)
			if got.Outcome != c.want || len(seen) != 1 || seen[0] != c.want {
				t.Errorf("the call ended with %q and Around saw %q, want %q once", got.Outcome, seen, c.want)
			}
			if ran := c.name == "success" || c.name == "error"; ran != (handled == "there") {
				t.Errorf("the handler found %v in its context", handled)
			}
		})
	}
}

func TestAround_PanicFailsTheCallOnlyBeforeItRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		before bool
		want   tool.Outcome
	}{{"before", true, tool.Failed}, {"after", false, tool.Success}} {
		t.Run(c.name, func(t *testing.T) {
			ran := 0
			r := tool.MustRegistry(&tool.Options{
				Around: func(ctx context.Context, _ *tool.Call, next func(context.Context) tool.Result) tool.Result {
					if !c.before {
						next(ctx)
						next(ctx) // which runs nothing again
					}
					panic("around")
				},
			}, &tool.Tool{Name: "work", Description: "Works.", Handler: func(context.Context, json.RawMessage) (tool.Result, error) {
				ran++
				return tool.OK("fine"), nil
			}})
			if got := r.Execute(t.Context(), tool.Call{Name: "work"}); got.Outcome != c.want || (ran == 1) == c.before {
				t.Errorf("the call ended with %q and ran %d times, want %q", got.Outcome, ran, c.want)
			}
		})
	}
}

// What Around puts in the place of a result is finished like that of a handler.
func TestAround_ItsResultIsCompleted(t *testing.T) {
	for name, c := range map[string]struct {
		gives tool.Result
		want  tool.Outcome
	}{
		"nothing":          {tool.Result{}, tool.Success},
		"an error":         {tool.Result{Err: &tool.Error{Message: "lost"}}, tool.Failed},
		"an error as OK":   {tool.Result{Outcome: tool.Success, Err: &tool.Error{Message: "lost"}}, tool.Failed},
		"no reason at all": {tool.Result{Outcome: tool.Failed}, tool.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			var emitted event.ToolResult
			r := tool.MustRegistry(&tool.Options{
				Around: func(context.Context, *tool.Call, func(context.Context) tool.Result) tool.Result { return c.gives },
				Emit: func(e event.Event) {
					if result, ok := e.Payload.(event.ToolResult); ok {
						emitted = result
					}
				},
			}, &tool.Tool{Name: "work", Description: "Works.", Handler: func(context.Context, json.RawMessage) (tool.Result, error) { return tool.OK("fine"), nil }})
			got := r.Execute(t.Context(), tool.Call{Name: "default:work"})
			if got.Outcome != c.want || emitted.Status != c.want || got.Tool != "work" || (got.Err == nil) != (c.want == tool.Success) {
				t.Errorf("got %+v and the event says %q, want %q of work", got, emitted.Status, c.want)
			}
		})
	}
}
