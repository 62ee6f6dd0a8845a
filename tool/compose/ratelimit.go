// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-agents/drover/tool"
)

// RateOptions configures [RateLimited]. The zero value is ready to use: one call per second.
type RateOptions struct {
	// Calls is how many calls may begin within Per. Zero means 1.
	Calls int
	// Per is the length of time in which calls are counted, wherever it begins. Zero means one second.
	Per time.Duration
	// Wait makes calls over the limit wait for their turn, in the order in which they came, rather
	// than fail. One that cannot last until then still fails.
	Wait bool
}

// RateLimited makes a tool that runs only so often. A call over the limit fails with
// [tool.CodeRateLimited] and states when to try again. Calls with wrong arguments and dry runs do not count.
func RateLimited(t *tool.Tool, o RateOptions, opts ...tool.Option) *tool.Tool {
	if o.Calls <= 0 {
		o.Calls = 1
	}
	if o.Per <= 0 {
		o.Per = time.Second
	}
	l := &limiter{RateOptions: o, name: t.Name, turn: make(chan struct{}, 1), begun: make([]time.Time, o.Calls)}
	return wrap(t, opts, func(ctx context.Context, input json.RawMessage, dry bool) (tool.Result, error) {
		if !dry {
			if err := l.admit(ctx); err != nil {
				return tool.Result{}, err
			}
		}
		return runPart(ctx, t, input, dry), nil
	})
}

type limiter struct {
	RateOptions
	name string
	// turn is held by the call that is being admitted. Go serves those who wait in order.
	turn  chan struct{}
	begun []time.Time // when the last calls began, as a ring
	next  int         // the oldest of them
}

func (l *limiter) admit(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if wait := time.Until(l.begun[l.next].Add(l.Per)); wait > 0 {
		if !l.Wait || tooLong(ctx, wait) {
			return l.exceeded(wait)
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
	l.begun[l.next] = time.Now()
	l.next = (l.next + 1) % len(l.begun)
	return nil
}

func (l *limiter) exceeded(wait time.Duration) *tool.Error {
	return &tool.Error{
		Code: tool.CodeRateLimited, Category: tool.CategoryTransient, Retryable: true, RetryAfter: wait,
		Message: fmt.Sprintf(rateLimited, l.name, l.Calls, l.Per, wait.Round(time.Millisecond)),
	}
}
