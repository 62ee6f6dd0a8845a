// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-agents/drover/tool"
)

// RetryOptions configures [Retry]. The zero value is ready to use.
type RetryOptions struct {
	// Attempts is how often the tool is run at most, the first time included. Zero means 3.
	Attempts int
	// Delay is the wait before the second attempt, and before further ones unless Exponential is set. Zero means none.
	Delay time.Duration
	// Exponential doubles the wait from one attempt to the next.
	Exponential bool
	// MaxDelay bounds each wait. A failure that asks for a longer one is not tried again. Zero means no bound.
	MaxDelay time.Duration
	// ShouldRetry reports whether a failure is worth another attempt. Nil means: the error is
	// retryable, and it is not a timeout or a broken connection of a tool that mutates or is dangerous. It is asked only
	// about calls that failed: what was denied, was cancelled or needs approval is not tried again.
	ShouldRetry func(failed tool.Result) bool
	// OnRetry receives each attempt that failed and is followed by another, before the wait.
	OnRetry func(ctx context.Context, attempt int, failed tool.Result, wait time.Duration)
}

// Retry makes a tool that tries again what failed. It waits as long as the failure asks for
// ([tool.Error.RetryAfter]), at least. If the call cannot last that long, the failure is given at once.
//
// That an error is retryable is the tool's own word for it, also for a tool that mutates: it says that nothing was done, or
// that doing it twice is harmless. A timeout or a broken connection says neither. A [Pipe] has the errors of its parts, and
// runs from its beginning: put Retry around the parts of one that mutates, not around the whole.
func Retry(t *tool.Tool, o RetryOptions, opts ...tool.Option) *tool.Tool {
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	var whole *tool.Tool
	if o.ShouldRetry == nil {
		o.ShouldRetry = func(r tool.Result) bool { return retryable(whole, r) }
	}
	whole = wrap(t, opts, func(ctx context.Context, input json.RawMessage, dry bool) (tool.Result, error) {
		for attempt := 1; ; attempt++ {
			r := runPart(ctx, t, input, dry)
			wait, again := o.next(ctx, attempt, r)
			if !again {
				return counted(r, attempt), nil
			}
			if o.OnRetry != nil {
				o.OnRetry(ctx, attempt, r, wait)
			}
			if err := pause(ctx, wait); err != nil {
				return tool.Result{}, err
			}
		}
	})
	return whole
}

func retryable(t *tool.Tool, r tool.Result) bool {
	if (r.Err.Category == tool.CategoryTimeout || r.Err.Code == tool.CodeConnection) && t.Risks()&(tool.Mutates|tool.Dangerous) != 0 {
		return false // it may have done its work
	}
	return r.Err.Retryable
}

// next returns how long to wait for the next attempt, and whether there is one.
func (o *RetryOptions) next(ctx context.Context, attempt int, r tool.Result) (wait time.Duration, again bool) {
	if r.Outcome != tool.Failed || attempt >= o.Attempts || ctx.Err() != nil || !o.ShouldRetry(r) {
		return 0, false
	}
	if o.MaxDelay > 0 && r.Err.RetryAfter > o.MaxDelay {
		return 0, false
	}
	wait = max(o.delay(attempt), r.Err.RetryAfter)
	return wait, !tooLong(ctx, wait)
}

func (o *RetryOptions) delay(attempt int) time.Duration {
	d := o.Delay
	for i := 1; o.Exponential && i < attempt && d < 1<<61; i++ {
		d *= 2
	}
	if o.MaxDelay > 0 {
		d = min(d, o.MaxDelay)
	}
	return d
}

func counted(r tool.Result, attempts int) tool.Result {
	if r.OK() || attempts == 1 {
		return r
	}
	e := *r.Err
	e.Message = fmt.Sprintf("%s (tried %d times)", e.Message, attempts)
	r.Err = &e
	return r
}
