// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

func TestRateLimit_ExcessCallFailsWithTheTimeToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := compose.RateLimited(adder("add", 1), compose.RateOptions{Calls: 2, Per: 10 * time.Second})
		run := func(input string) tool.Result {
			return limited.Run(t.Context(), tool.Call{Input: json.RawMessage(input)})
		}
		if r := run(`{}`); r.OK() {
			t.Fatal("wrong arguments were taken")
		}
		for range 2 {
			if r := run(`{"n":1}`); !r.OK() {
				t.Fatalf("a call within the limit: %s", r.Render())
			}
			time.Sleep(3 * time.Second)
		}
		r := run(`{"n":1}`)
		want := &tool.Error{
			Code: tool.CodeRateLimited, Category: tool.CategoryTransient, Retryable: true, RetryAfter: 4 * time.Second,
			Message: "Rate limit: add takes 2 calls per 10s. Try again in 4s.",
		}
		if diff := cmp.Diff(want, r.Err); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		time.Sleep(r.Err.RetryAfter)
		if r := run(`{"n":1}`); !r.OK() {
			t.Errorf("after the wait: %s, want a success", r.Render())
		}
		if r := run(`{"n":1}`); r.OK() {
			t.Error("a third call within ten seconds succeeded")
		}
	})
}

func TestRateLimit_CallsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		ran := map[int]time.Duration{}
		part := tool.Must("part", "Notes when it ran.", func(_ context.Context, p addend) (addend, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[p.N] = time.Since(began)
			return p, nil
		})
		limited := compose.RateLimited(part, compose.RateOptions{Calls: 2, Per: 10 * time.Second, Wait: true})
		var wg sync.WaitGroup
		for _, input := range []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`, `{"n":5}`} {
			wg.Go(func() {
				if r := limited.Run(t.Context(), tool.Call{Input: json.RawMessage(input)}); !r.OK() {
					t.Errorf("%s: %s", input, r.Render())
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		want := map[int]time.Duration{1: 0, 2: 0, 3: 10 * time.Second, 4: 10 * time.Second, 5: 20 * time.Second}
		if diff := cmp.Diff(want, ran); diff != "" {
			t.Errorf("when they ran (-want +got):\n%s", diff)
		}
	})
}

func TestRateLimit_CancelledCallTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := compose.RateLimited(adder("add", 1), compose.RateOptions{Per: 10 * time.Second, Wait: true})
		input := json.RawMessage(`{"n":1}`)
		limited.Run(t.Context(), tool.Call{Input: input})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if r := limited.Run(ctx, tool.Call{Input: input}); r.Outcome != tool.Cancelled {
			t.Errorf("outcome = %s, want cancelled", r.Outcome)
		}
		if r := limited.Run(t.Context(), tool.Call{Input: input, Timeout: time.Second}); r.Err == nil || r.Err.Code != tool.CodeRateLimited || r.Duration != 0 {
			t.Errorf("a call that cannot last: %s after %s, want RATE_LIMITED at once", r.Render(), r.Duration)
		}
		if r := limited.Run(t.Context(), tool.Call{Input: input}); !r.OK() || r.Duration != 9*time.Second {
			t.Errorf("%s after %s, want a success after 9s", r.Outcome, r.Duration)
		}
	})
}

func TestRetry_WaitsForARateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		patient := compose.Retry(compose.RateLimited(adder("add", 1), compose.RateOptions{Per: time.Minute}), compose.RetryOptions{})
		for i, want := range []time.Duration{0, time.Minute} {
			if r := patient.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"n":1}`)}); !r.OK() || r.Duration != want {
				t.Errorf("call %d: %s after %s, want a success after %s", i, r.Outcome, r.Duration, want)
			}
		}
	})
}
