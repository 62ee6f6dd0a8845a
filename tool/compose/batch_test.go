// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

type nap struct {
	Seconds int  `json:"seconds"`
	Fail    bool `json:"fail,omitzero"`
}

// naps sleeps, and listens to its context.
func naps() *tool.Tool {
	return tool.Must("nap", "sleeps", func(ctx context.Context, n nap) (string, error) {
		select {
		case <-time.After(time.Duration(n.Seconds) * time.Second):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if n.Fail {
			return "", fmt.Errorf("slept badly")
		}
		return fmt.Sprint("slept ", n.Seconds), nil
	})
}

func TestExecuteAll_Results(t *testing.T) {
	calls := []tool.Call{
		{Name: "nap", Input: []byte(`{"seconds":3}`)},
		{Name: "nap", Input: []byte(`{"seconds":1,"fail":true}`)},
		{Name: "nap", Input: []byte(`{"seconds":2}`)},
	}
	for _, c := range []struct {
		name string
		how  *compose.Batch
		took time.Duration
		want []string
	}{
		{"all at once, to the end", nil, 3 * time.Second, []string{"slept 3", "Error: slept badly", "slept 2"}},
		{"in order", &compose.Batch{Concurrency: 1}, 6 * time.Second, []string{"slept 3", "Error: slept badly", "slept 2"}},
		{"two at once", &compose.Batch{Concurrency: 2}, 3 * time.Second, []string{"slept 3", "Error: slept badly", "slept 2"}},
		{"all at once, to the first failure", &compose.Batch{FailFast: true}, time.Second, []string{"Cancelled: the call of nap did not succeed", "Error: slept badly", "Cancelled: the call of nap did not succeed"}},
		{"in order, to the first failure", &compose.Batch{Concurrency: 1, FailFast: true}, 4 * time.Second, []string{"slept 3", "Error: slept badly", "Cancelled: the call of nap did not succeed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tool.MustRegistry(nil, naps())
				started := time.Now()
				var got []string
				for _, result := range compose.ExecuteAll(t.Context(), r, calls, c.how) {
					got = append(got, result.Render())
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				if took := time.Since(started); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
			})
		})
	}
}

func TestExecuteAll_NoCalls(t *testing.T) {
	if got := compose.ExecuteAll(t.Context(), tool.MustRegistry(nil), nil, nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestExecuteAll_CancelledBatchAsksNoDeciderAndCostsNothing(t *testing.T) {
	asked := 0
	decider := tool.DeciderFunc(func(context.Context, event.ToolCall) event.Decision { asked++; return event.Decision{} })
	r := tool.MustRegistry(&tool.Options{Decider: decider, Budget: tool.Budget{MaxCalls: 1}}, naps())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, got := range compose.ExecuteAll(ctx, r, []tool.Call{{Name: "nap"}, {Name: "nap"}}, nil) {
		if got.Outcome != tool.Cancelled || got.Render() != "Cancelled" {
			t.Errorf("got %s %q, want that it was cancelled", got.Outcome, got.Render())
		}
	}
	if asked != 0 {
		t.Errorf("the decider was asked %d times", asked)
	}
}
