// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/guard"
)

// A task with five minutes and 50,000 tokens.
func Example() {
	deadline := guard.FromNow(5 * time.Minute)
	budget := guard.Budget{MaxTotalTokens: 50_000, Deadline: deadline}
	tracker := guard.NewTracker(budget)

	switch err := work(tracker, guard.Usage{InputTokens: 12_000, OutputTokens: 800}); {
	case errors.Is(err, guard.ErrDeadlineExceeded):
		fmt.Println("Task took too long")
	case errors.Is(err, guard.ErrBudgetExhausted):
		fmt.Println("Used too many tokens")
	}
	fmt.Println("Tokens remaining:", *tracker.Remaining().Tokens)
	fmt.Println("Expired:", deadline.Expired())

	err := work(tracker, guard.Usage{InputTokens: 40_000, OutputTokens: 2_000})
	fmt.Println(advice.Text(err))
	// Output:
	// Tokens remaining: 37200
	// Expired: false
	// guard: budget exhausted: MaxTotalTokens is 50000, and 54800 are consumed
	//   next: raise MaxTotalTokens, or give the work less to do
}

// work represents the run of an agent.
func work(tracker *guard.Tracker, consumes guard.Usage) error {
	if err := tracker.Check(); err != nil {
		return err
	}
	tracker.Record(consumes)
	return tracker.Check()
}

// Two evaluations share a tracker; each reports its sum so far.
func ExampleTracker_RecordCumulative() {
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 1_000})
	tracker.RecordCumulative("first", guard.Usage{InputTokens: 100, OutputTokens: 10})
	tracker.RecordCumulative("second", guard.Usage{InputTokens: 200, OutputTokens: 20})
	tracker.RecordCumulative("first", guard.Usage{InputTokens: 300, OutputTokens: 30})
	fmt.Println(tracker.Consumed().TotalTokens(), "consumed,", *tracker.Remaining().Tokens, "remain")
	// Output: 550 consumed, 450 remain
}

// What runs under the context of a tracker is interrupted when a limit is reached.
func ExampleTracker_Context() {
	tracker := guard.NewTracker(guard.Budget{MaxCostUSD: 0.30, Deadline: guard.FromNow(time.Minute)})
	ctx, cancel := tracker.Context(context.Background())
	defer cancel()

	tracker.Record(guard.Usage{CostUSD: 0.10})
	tracker.Record(guard.Usage{CostUSD: 0.20})
	<-ctx.Done()
	if e, ok := errors.AsType[*guard.BudgetError](context.Cause(ctx)); ok {
		fmt.Println(e.Limit, e.Consumed, "of", e.Max)
	}
	// Output: MaxCostUSD 0.3 of 0.3
}

// A clock of one's own makes deadlines that do not differ from run to run.
func ExampleClock_FromNow() {
	clock := guard.Clock(func() time.Time { return time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC) })
	deadline := clock.FromNow(5 * time.Minute)
	fmt.Println(deadline, deadline.Remaining(), deadline.Expired())
	// Output: 2030-01-02T12:05:00Z 5m0s false
}

func ExampleHeartbeat() {
	heartbeat := guard.NewHeartbeat(nil)
	heartbeat.OnBeat(func() { fmt.Println("alive") })
	heartbeat.Beat()
	heartbeat.Watch(context.Background(), time.Millisecond, func() { fmt.Println("silent") })
	// Output:
	// alive
	// silent
}

func ExampleLogHandler() {
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(guard.LogHandler(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime})))

	run := guard.RunContext{RunID: "run-1", RequestID: "request-1", Attempt: 1}
	ctx := guard.WithRunContext(context.Background(), run)
	logger.InfoContext(ctx, "started")

	again := run.Next(func() string { return "run-2" })
	logger.InfoContext(guard.WithRunContext(ctx, again), "started", "model", "fast")
	// Output:
	// level=INFO msg=started run_id=run-1 request_id=request-1 attempt=1
	// level=INFO msg=started run_id=run-2 request_id=request-1 attempt=2 model=fast
}

func ExampleRunContext_WithTraceparent() {
	run, err := guard.RunContext{RunID: "run-1"}.WithTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	fmt.Println(run.TraceID, run.SpanID, err)
	fmt.Println(run.Traceparent())
	// Output:
	// 4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7 <nil>
	// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
}
