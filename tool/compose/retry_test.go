// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

var busy = tool.Errorf(tool.CategoryTransient, "busy")

// flaky gives one result after the other, then succeeds. It notes when it ran.
func flaky(ran *[]time.Duration, failures []error, opts ...tool.Option) *tool.Tool {
	began := time.Now()
	return tool.Must("flaky", "Fails at first.", func(context.Context, addend) (addend, error) {
		*ran = append(*ran, time.Since(began))
		if n := len(*ran); n <= len(failures) {
			return addend{}, failures[n-1]
		}
		return addend{1}, nil
	}, opts...)
}

func TestRetry_RepeatsTransientFailures(t *testing.T) {
	later := &tool.Error{Code: tool.CodeRateLimited, Category: tool.CategoryTransient, Message: "busy", Retryable: true, RetryAfter: 5 * time.Second}
	denied := &tool.Error{Code: tool.CodeDenied, Category: tool.CategoryPermission, Message: "no", Retryable: true}
	const s = time.Second
	cases := []struct {
		name     string
		failures []error
		opts     compose.RetryOptions
		risk     tool.Risk
		limit    time.Duration
		ran      []time.Duration
		want     string
	}{
		{"it succeeds", nil, compose.RetryOptions{}, 0, 0, []time.Duration{0}, `{"n":1}`},
		{"three attempts", []error{busy, busy, busy, busy}, compose.RetryOptions{}, 0, 0, []time.Duration{0, 0, 0}, "busy (tried 3 times)"},
		{"the second succeeds", []error{busy}, compose.RetryOptions{Delay: s}, 0, 0, []time.Duration{0, s}, `{"n":1}`},
		{"the same delay", []error{busy, busy, busy}, compose.RetryOptions{Attempts: 4, Delay: s}, 0, 0, []time.Duration{0, s, 2 * s, 3 * s}, `{"n":1}`},
		{"a doubled delay", []error{busy, busy, busy}, compose.RetryOptions{Attempts: 4, Delay: s, Exponential: true}, 0, 0, []time.Duration{0, s, 3 * s, 7 * s}, `{"n":1}`},
		{"a bounded delay", []error{busy, busy, busy}, compose.RetryOptions{Attempts: 4, Delay: s, Exponential: true, MaxDelay: 3 * s}, 0, 0, []time.Duration{0, s, 3 * s, 6 * s}, `{"n":1}`},
		{"the failure says when", []error{later}, compose.RetryOptions{Delay: s}, 0, 0, []time.Duration{0, 5 * s}, `{"n":1}`},
		{"later than allowed", []error{later}, compose.RetryOptions{MaxDelay: s}, 0, 0, []time.Duration{0}, "busy"},
		{"later than the call lasts", []error{later}, compose.RetryOptions{}, 0, 4 * s, []time.Duration{0}, "busy"},
		{"not retryable", []error{errors.New("broken")}, compose.RetryOptions{}, 0, 0, []time.Duration{0}, "Error: broken"},
		{"denied, whatever ShouldRetry returns", []error{denied}, compose.RetryOptions{ShouldRetry: func(tool.Result) bool { return true }}, 0, 0, []time.Duration{0}, "no"},
		{"as ShouldRetry returns", []error{errors.New("broken")}, compose.RetryOptions{ShouldRetry: func(tool.Result) bool { return true }}, 0, 0, []time.Duration{0, 0}, `{"n":1}`},
		{"a timeout", []error{context.DeadlineExceeded}, compose.RetryOptions{}, 0, 0, []time.Duration{0, 0}, `{"n":1}`},
		{"a timeout of what mutates", []error{context.DeadlineExceeded}, compose.RetryOptions{}, tool.Mutates, 0, []time.Duration{0}, "The tool did not finish in time. Check what the tool did before you call it again."},
		{"a timeout of what is dangerous", []error{context.DeadlineExceeded}, compose.RetryOptions{}, tool.Dangerous, 0, []time.Duration{0}, "The tool did not finish in time. Check what the tool did before you call it again."},
		{"what mutates and is marked as retryable", []error{busy}, compose.RetryOptions{}, tool.Mutates, 0, []time.Duration{0, 0}, `{"n":1}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ran []time.Duration
				retried := compose.Retry(flaky(&ran, c.failures), c.opts, c.risk)
				r := retried.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"n":1}`), Timeout: c.limit})
				if got := r.Render(); got != c.want {
					t.Errorf("result = %q, want %q", got, c.want)
				}
				if diff := cmp.Diff(c.ran, ran); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestRetry_StopsWaitingWhenTheCallIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []time.Duration
		retried := compose.Retry(flaky(&ran, []error{busy}), compose.RetryOptions{Delay: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r := retried.Run(ctx, tool.Call{Input: json.RawMessage(`{"n":1}`)})
		if r.Outcome != tool.Cancelled || len(ran) != 1 || r.Duration != time.Second {
			t.Errorf("%s after %d attempts and %s, want cancelled after 1 and 1s", r.Outcome, len(ran), r.Duration)
		}
	})
}

func TestRetry_OnRetryReceivesEachFurtherAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []time.Duration
		type retry struct {
			Attempt int
			Text    string
			Wait    time.Duration
		}
		var got []retry
		retried := compose.Retry(flaky(&ran, []error{busy, busy, busy}), compose.RetryOptions{
			Delay: time.Second, OnRetry: func(_ context.Context, attempt int, failed tool.Result, wait time.Duration) {
				got = append(got, retry{attempt, failed.Render(), wait})
			},
		})
		retried.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"n":1}`)})
		if diff := cmp.Diff([]retry{{1, "busy", time.Second}, {2, "busy", time.Second}}, got); diff != "" {
			t.Errorf("retries (-want +got):\n%s", diff)
		}
	})
}

// A broken connection does not show whether the work was done.
func TestRetry_BrokenConnectionOfAMutatingToolIsNotTriedAgain(t *testing.T) {
	for risk, want := range map[tool.Risk]int{tool.ReadOnly: 3, tool.Mutates: 1, tool.Dangerous: 1} {
		ran := 0
		part := tool.Must("send", "Sends.", func(context.Context, tool.None) (tool.Result, error) { ran++; return tool.Result{}, syscall.ECONNRESET }, risk)
		if r := compose.Retry(part, compose.RetryOptions{}).Run(t.Context(), tool.Call{}); r.OK() || ran != want {
			t.Errorf("%s: ran %d times, want %d", risk, ran, want)
		}
	}
}
