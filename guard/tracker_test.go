// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
)

// assertAgreesWithGate checks that a call is denied exactly when the tracker reports that a limit is
// reached.
func assertAgreesWithGate(t rapid.TB, tracker *guard.Tracker) {
	t.Helper()
	g := gate.Must(gate.AllowTools("Read"), gate.Limits(gate.LimitOptions{}))
	decision := g.Decide(event.ToolCall{ID: "1", Name: "Read"}, gate.Facts{Remaining: tracker.Remaining()})
	if exhausted := errors.Is(tracker.Check(), guard.ErrBudgetExhausted); exhausted == (decision.Verdict == event.Allow) {
		t.Errorf("the tracker reports %v, the gate decides %+v", tracker.Check(), decision)
	}
}

func TestTracker_ReachedLimitIsExhausted(t *testing.T) {
	cases := []struct {
		name   string
		budget guard.Budget
		below  guard.Usage // one step from the limit
		step   guard.Usage
		want   guard.BudgetError
	}{
		{
			"total tokens",
			guard.Budget{MaxTotalTokens: 10},
			guard.Usage{InputTokens: 6, OutputTokens: 3, CostUSD: 1e6},
			guard.Usage{OutputTokens: 1},
			guard.BudgetError{Limit: "MaxTotalTokens", Consumed: 10, Max: 10},
		},
		{
			"input tokens",
			guard.Budget{MaxInputTokens: 10},
			guard.Usage{InputTokens: 9, OutputTokens: 1e6},
			guard.Usage{InputTokens: 2},
			guard.BudgetError{Limit: "MaxInputTokens", Consumed: 11, Max: 10},
		},
		{
			"output tokens",
			guard.Budget{MaxOutputTokens: 10},
			guard.Usage{InputTokens: 1e6, OutputTokens: 9},
			guard.Usage{OutputTokens: 1},
			guard.BudgetError{Limit: "MaxOutputTokens", Consumed: 10, Max: 10},
		},
		{ // 0.1 + 0.2 is not 0.3 in floating point
			"cost",
			guard.Budget{MaxCostUSD: 0.3},
			guard.Usage{CostUSD: 0.1},
			guard.Usage{CostUSD: 0.2},
			guard.BudgetError{Limit: "MaxCostUSD", Consumed: 0.3, Max: 0.3},
		},
		{
			"a billionth of a dollar",
			guard.Budget{MaxCostUSD: 1},
			guard.Usage{CostUSD: 0.999999999},
			guard.Usage{CostUSD: 0.000000001},
			guard.BudgetError{Limit: "MaxCostUSD", Consumed: 1, Max: 1},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			tracker := guard.NewTracker(tc.budget)
			tracker.Record(tc.below)
			if err := tracker.Check(); err != nil {
				t.Fatalf("below the limit: %v", err)
			}
			assertAgreesWithGate(t, tracker)
			tracker.Record(tc.step)
			err := tracker.Check()
			got, ok := errors.AsType[*guard.BudgetError](err)
			if !ok || *got != tc.want {
				t.Fatalf("got %+v, want %+v", err, tc.want)
			}
			if !errors.Is(err, guard.ErrBudgetExhausted) || errors.Is(err, guard.ErrDeadlineExceeded) {
				t.Errorf("%v matches the wrong sentinel", err)
			}
			assertAgreesWithGate(t, tracker)
		})
	}
}

func TestBudgetError_StatesTheNextAction(t *testing.T) {
	err := &guard.BudgetError{Limit: "MaxTotalTokens", Consumed: 50_210, Max: 50_000}
	want := "guard: budget exhausted: MaxTotalTokens is 50000, and 50210 are consumed\n  next: raise MaxTotalTokens, or give the work less to do"
	if advice.Text(err) != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestTracker_ChecksTheDeadlineFirst(t *testing.T) {
	c := &setClock{noon}
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 1, Deadline: c.clock().FromNow(time.Second)})
	tracker.Record(guard.Usage{InputTokens: 1})
	if err := tracker.Check(); !errors.Is(err, guard.ErrBudgetExhausted) {
		t.Errorf("before the deadline: %v", err)
	}
	c.now = noon.Add(time.Second)
	if err := tracker.Check(); !errors.Is(err, guard.ErrDeadlineExceeded) {
		t.Errorf("at the deadline: %v", err)
	}
}

func TestTracker_RemainingMayBeNegative(t *testing.T) {
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 100, MaxInputTokens: 50, MaxCostUSD: 1})
	tracker.Record(guard.Usage{InputTokens: 60, OutputTokens: 10, CostUSD: 0.7})
	want := gate.Remaining{Tokens: new(int64(30)), InputTokens: new(int64(-10)), CostUSD: new(0.3)}
	if diff := cmp.Diff(want, tracker.Remaining()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got, want := tracker.Consumed(), (guard.Usage{InputTokens: 60, OutputTokens: 10, CostUSD: 0.7}); got != want {
		t.Errorf("Consumed() = %+v, want %+v", got, want)
	}
	if got := tracker.Budget().MaxTotalTokens; got != 100 {
		t.Errorf("Budget().MaxTotalTokens = %d, want 100", got)
	}
}

func TestTracker_CumulativeReports(t *testing.T) {
	type report struct {
		id            string
		input, output int64
	}
	cases := []struct {
		name    string
		reports []report
		want    guard.Usage
	}{
		{"replace the report of the same evaluation", []report{{"a", 10, 1}, {"a", 30, 2}}, guard.Usage{InputTokens: 30, OutputTokens: 2}},
		{"leave the reports of others", []report{{"a", 10, 1}, {"b", 5, 5}, {"a", 20, 2}}, guard.Usage{InputTokens: 25, OutputTokens: 7}},
		{"may come twice", []report{{"a", 10, 1}, {"a", 10, 1}}, guard.Usage{InputTokens: 10, OutputTokens: 1}},
		{"never go down, figure by figure", []report{{"a", 10, 5}, {"a", 3, 7}}, guard.Usage{InputTokens: 10, OutputTokens: 7}},
		{"count no negative figures", []report{{"a", -10, 5}, {"b", 1, -1}}, guard.Usage{InputTokens: 1, OutputTokens: 5}},
		{"without an id are one evaluation", []report{{"", 10, 5}, {"", 12, 6}}, guard.Usage{InputTokens: 12, OutputTokens: 6}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			tracker := guard.NewTracker(guard.Budget{})
			for _, r := range tc.reports {
				tracker.RecordCumulative(r.id, guard.Usage{InputTokens: r.input, OutputTokens: r.output})
			}
			if got := tracker.Consumed(); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTracker_NegativeUsageIsIgnored(t *testing.T) {
	tracker := guard.NewTracker(guard.Budget{})
	want := guard.Usage{InputTokens: 10, OutputTokens: 5, CostUSD: 1}
	tracker.Record(want)
	for _, u := range []guard.Usage{{InputTokens: -1}, {OutputTokens: math.MinInt64}, {CostUSD: -0.5}, {CostUSD: math.NaN()}, {CostUSD: math.Inf(-1)}} {
		tracker.Record(u)
		if got := tracker.Consumed(); got != want {
			t.Errorf("after %+v: %+v, want %+v", u, got, want)
		}
	}
}

func TestTracker_SumsDoNotOverflow(t *testing.T) {
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: math.MaxInt64, MaxCostUSD: 1e9})
	for range 3 {
		tracker.Record(guard.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CostUSD: math.Inf(1)})
	}
	tracker.Record(guard.Usage{InputTokens: -5, OutputTokens: math.MinInt64, CostUSD: math.NaN()})
	got := tracker.Consumed()
	if got.InputTokens != math.MaxInt64 || got.TotalTokens() != math.MaxInt64 || got.CostUSD < 9e9 {
		t.Errorf("Consumed() = %+v, want the largest figures", got)
	}
	if err := tracker.Check(); !errors.Is(err, guard.ErrBudgetExhausted) {
		t.Errorf("Check() = %v", err)
	}
}

func TestTracker_NilLimitsNothing(t *testing.T) {
	var tracker *guard.Tracker
	tracker.Record(guard.Usage{InputTokens: 1})
	tracker.RecordCumulative("a", guard.Usage{InputTokens: 1})
	if tracker.Check() != nil || tracker.Consumed() != (guard.Usage{}) || tracker.Remaining() != (gate.Remaining{}) || !tracker.Budget().Deadline.IsZero() {
		t.Error("it counts or limits something")
	}
	ctx, cancel := tracker.Context(t.Context())
	if ctx.Err() != nil {
		t.Error("its context is over")
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("its context cannot be cancelled")
	}
}

func TestTracker_ZeroCountsAndLimitsNothing(t *testing.T) {
	var tracker guard.Tracker
	ctx, cancel := tracker.Context(t.Context())
	defer cancel()
	tracker.Record(guard.Usage{InputTokens: 1})
	tracker.RecordCumulative("a", guard.Usage{InputTokens: 2})
	if got := tracker.Consumed().InputTokens; got != 3 || tracker.Check() != nil || ctx.Err() != nil || tracker.Remaining() != (gate.Remaining{}) {
		t.Errorf("it has counted %d tokens and reports %v", got, tracker.Check())
	}
}

// One goroutine of each evaluation reports again and again, out of order; others record. The sum is
// that of the last figures.
func TestTracker_ConcurrentEvaluationsSumExactly(t *testing.T) {
	const goroutines, reports = 64, 300
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: goroutines * reports * 3, MaxCostUSD: goroutines * reports * 0.01})
	var wg sync.WaitGroup
	for i := range goroutines {
		id := string(rune('a' + i/2)) // two goroutines report about the same evaluation
		wg.Go(func() {
			for n := range int64(reports) {
				if i%2 == 0 {
					n = reports - 1 - n
				}
				tracker.RecordCumulative(id, guard.Usage{InputTokens: 2 * (n + 1), OutputTokens: n + 1, CostUSD: float64(n+1) * 0.01})
				tracker.Record(guard.Usage{InputTokens: 1, CostUSD: 0.005})
				_ = tracker.Check()
				_ = tracker.Remaining()
			}
		})
	}
	wg.Wait()
	const evaluations = goroutines / 2
	want := guard.Usage{
		InputTokens:  evaluations*reports*2 + goroutines*reports,
		OutputTokens: evaluations * reports,
		CostUSD:      evaluations*reports*0.01 + goroutines*reports*0.005,
	}
	if got := tracker.Consumed(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := *tracker.Remaining().Tokens; got != goroutines*reports*3-want.TotalTokens() {
		t.Errorf("%d tokens remain, want %d", got, goroutines*reports*3-want.TotalTokens())
	}
}

func TestTracker_ContextEndsInMidTurn(t *testing.T) {
	spend := func(tracker *guard.Tracker) { tracker.Record(guard.Usage{InputTokens: 10}) }
	cases := []struct {
		name   string
		budget guard.Budget
		act    func(*guard.Tracker)
		want   error // that the cause matches; nil if the context goes on
	}{
		{"below the limit", guard.Budget{MaxTotalTokens: 11}, spend, nil},
		{"at the limit", guard.Budget{MaxTotalTokens: 10}, spend, guard.ErrBudgetExhausted},
		{"by a cumulative report", guard.Budget{MaxCostUSD: 1}, func(tr *guard.Tracker) { tr.RecordCumulative("a", guard.Usage{CostUSD: 2}) }, guard.ErrBudgetExhausted},
		{"at the deadline", guard.Budget{MaxTotalTokens: 11, Deadline: guard.At(noon)}, func(*guard.Tracker) { time.Sleep(time.Until(noon)) }, guard.ErrDeadlineExceeded},
		{"without any limit", guard.Budget{}, spend, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker := guard.NewTracker(tc.budget)
				ctx, cancel := tracker.Context(t.Context())
				defer cancel()
				second, cancelSecond := tracker.Context(t.Context())
				cancelSecond()
				tc.act(tracker)
				synctest.Wait()
				if got := context.Cause(ctx); !errors.Is(got, tc.want) {
					t.Errorf("cause %v, want %v", got, tc.want)
				}
				if got := context.Cause(second); got != context.Canceled {
					t.Errorf("the cause of one that was cancelled before is %v", got)
				}
				// A later context has ended before its work begins.
				later, cancelLater := tracker.Context(t.Context())
				defer cancelLater()
				if got := context.Cause(later); !errors.Is(got, tc.want) {
					t.Errorf("later: cause %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestTracker_StartsExactlyTheAllowedRequests(t *testing.T) {
	const allowed = 10
	tracker := guard.NewTracker(guard.Budget{MaxRequests: allowed, MaxTotalTokens: 100})
	ctx, cancel := tracker.Context(t.Context())
	defer cancel()
	var began atomic.Int64
	var wg sync.WaitGroup
	for range 5 * allowed {
		wg.Go(func() {
			if tracker.BeginRequest() == nil {
				began.Add(1)
			}
		})
	}
	wg.Wait()
	if began.Load() != allowed || tracker.Consumed().Requests != allowed {
		t.Errorf("%d began, %d are counted, want %d", began.Load(), tracker.Consumed().Requests, allowed)
	}
	reached, ok := errors.AsType[*guard.BudgetError](tracker.BeginRequest())
	if want := (guard.BudgetError{Limit: "MaxRequests", Consumed: allowed, Max: allowed}); !ok || *reached != want {
		t.Errorf("got %+v, want %+v", reached, want)
	}
	if tracker.Check() == nil || tracker.Spent() != nil || ctx.Err() != nil {
		t.Errorf("Check: %v; the last request is ended by %v, %v", tracker.Check(), tracker.Spent(), ctx.Err())
	}
	tracker.Record(guard.Usage{InputTokens: 100})
	<-ctx.Done()
	if err := tracker.Spent(); !errors.Is(err, guard.ErrBudgetExhausted) || !errors.Is(context.Cause(ctx), guard.ErrBudgetExhausted) {
		t.Errorf("got %v, %v, want both limits", err, context.Cause(ctx))
	}
}

// What the last request consumes does not end it.
func TestTracker_LastRequestFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := guard.NewTracker(guard.Budget{MaxRequests: 1, MaxTotalTokens: 10})
		ctx, cancel := tracker.Context(t.Context())
		defer cancel()
		if err := tracker.BeginRequest(); err != nil {
			t.Fatal(err)
		}
		tracker.Record(guard.Usage{InputTokens: 9})
		synctest.Wait()
		if ctx.Err() != nil {
			t.Errorf("it is ended: %v", context.Cause(ctx))
		}
		tracker.Record(guard.Usage{OutputTokens: 1})
		synctest.Wait()
		if reached, ok := errors.AsType[*guard.BudgetError](context.Cause(ctx)); !ok || reached.Limit != "MaxTotalTokens" {
			t.Errorf("got %v, want the limit of tokens", context.Cause(ctx))
		}
	})
}

func TestTracker_NoRequestStartsPastAnotherLimit(t *testing.T) {
	c := &setClock{noon}
	late := guard.NewTracker(guard.Budget{Deadline: c.clock().FromNow(time.Second)})
	spent := guard.NewTracker(guard.Budget{MaxOutputTokens: 1})
	spent.Record(guard.Usage{OutputTokens: 1})
	c.now = noon.Add(time.Second)
	if err := late.BeginRequest(); !errors.Is(err, guard.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: %v", err)
	}
	if err := spent.BeginRequest(); !errors.Is(err, guard.ErrBudgetExhausted) || spent.Consumed().Requests != 0 {
		t.Errorf("past a limit: %v, and %d are counted", err, spent.Consumed().Requests)
	}
	var none *guard.Tracker
	if none.BeginRequest() != nil || none.Spent() != nil || new(guard.Tracker).BeginRequest() != nil {
		t.Error("no budget limits something")
	}
}
