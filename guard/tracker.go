// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"sync"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// A Tracker counts what is consumed of a [Budget]. Several evaluations, and the attempts of each, may share one. It is safe
// for concurrent use. A nil Tracker counts nothing and limits nothing; the zero value has no budget: it counts.
//
// A figure that is negative or no number counts as nothing.
type Tracker struct {
	budget Budget
	// spent ends when a limit of tokens or cost is reached; its cause is the BudgetError. Without a budget it is nil.
	spent context.Context
	spend context.CancelCauseFunc

	mu       sync.Mutex
	total    count
	reported map[string]count // consumption by evaluation
}

// NewTracker makes a tracker that has consumed nothing.
func NewTracker(b Budget) *Tracker {
	t := &Tracker{budget: b}
	t.spent, t.spend = context.WithCancelCause(context.Background())
	return t
}

// Budget returns the budget that the tracker was made of.
func (t *Tracker) Budget() Budget {
	if t == nil {
		return Budget{}
	}
	return t.budget
}

// Record adds what was consumed since the last Record.
func (t *Tracker) Record(u Usage) {
	t.grow(func() count { return countOf(u) })
}

// RecordCumulative sets what an evaluation has consumed since it began, replacing the earlier report of the same evaluation;
// reports of others stay. Give each attempt an id of its own, such as [RunContext.RunID], because each begins from zero. A
// figure that is lower than an earlier one does not count: reports may come late, and nothing that was spent comes back.
//
// What goes through RecordCumulative must not go through [Tracker.Record] too, or it counts twice.
func (t *Tracker) RecordCumulative(evaluationID string, u Usage) {
	t.grow(func() count {
		before := t.reported[evaluationID]
		now := before.atLeast(countOf(u))
		if t.reported == nil {
			t.reported = map[string]count{}
		}
		t.reported[evaluationID] = now
		return now.minus(before)
	})
}

// grow adds what more returns, which is called under the lock. Everything that is counted comes through here.
func (t *Tracker) grow(more func() count) {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.total = t.total.plus(more())
	total := t.total
	t.mu.Unlock()
	if err := t.budget.exhausted(total); err != nil && !onlyRequests(err) {
		t.spend(err)
	}
}

// onlyRequests reports whether nothing is used up but the number of requests. The last of them is then still welcome to end.
func onlyRequests(err error) bool {
	reached, ok := errors.AsType[*BudgetError](err)
	return ok && reached.Limit == requestLimit
}

// BeginRequest counts a request to the model, if no limit is reached: otherwise it returns what [Tracker.Check] returns, and
// nothing is counted. Of any number of callers at most MaxRequests succeed.
func (t *Tracker) BeginRequest() error {
	if t == nil {
		return nil
	}
	if err := t.budget.Deadline.Check(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.budget.exhausted(t.total); err != nil {
		return err
	}
	t.total = t.total.plus(count{requests: 1})
	return nil
}

// Spent is [Tracker.Check] without the number of requests: it tells whether also what has begun must end.
func (t *Tracker) Spent() error {
	if err := t.Check(); !onlyRequests(err) {
		return err
	}
	return nil
}

// Consumed returns the sum of everything recorded.
func (t *Tracker) Consumed() Usage { return t.counted().usage() }

func (t *Tracker) counted() count {
	if t == nil {
		return count{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Remaining returns what is left of each limit, ready for [gate.Facts]. A limit that was passed has
// less than nothing left. Where there is no limit the field is nil, so look before you follow it:
//
//	if left := tracker.Remaining().Tokens; left != nil && *left < 1000 {
func (t *Tracker) Remaining() gate.Remaining {
	b := t.Budget()
	l := b.limits(t.counted())
	r := gate.Remaining{Tokens: l[0].left(), InputTokens: l[1].left(), OutputTokens: l[2].left()}
	if cost := l[3].left(); cost != nil {
		r.CostUSD = new(float64(*cost) / perDollar)
	}
	return r
}

// Check returns an error if a limit is reached: one that matches [ErrDeadlineExceeded] for the
// deadline, which is looked at first, otherwise a [*BudgetError].
func (t *Tracker) Check() error {
	b := t.Budget()
	if err := b.Deadline.Check(); err != nil {
		return err
	}
	return b.exhausted(t.counted())
}

// Context returns a context that ends as soon as a limit is reached, the deadline included, so that what runs under it is
// interrupted in mid-turn. Its cause is then what [Tracker.Check] returns. The number of requests does not end it: the last
// one may come to its end, only the next does not begin. Call cancel when the work is over.
func (t *Tracker) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, release := t.Budget().Deadline.Context(ctx)
	if t == nil || t.spent == nil {
		return ctx, release
	}
	ctx, end := context.WithCancelCause(ctx)
	if err := t.Spent(); err != nil {
		end(err)
	}
	forget := context.AfterFunc(t.spent, func() { end(context.Cause(t.spent)) })
	return ctx, func() {
		forget()
		release()
	}
}

var trackerKey = tool.NewKey[*Tracker]("tracker")

// WithTracker returns a context in which [TrackerFrom] finds the tracker.
func WithTracker(ctx context.Context, t *Tracker) context.Context { return trackerKey.With(ctx, t) }

// TrackerFrom returns the tracker that counts a tool handler's work. Without one it returns nil, which can be used as well.
func TrackerFrom(ctx context.Context) *Tracker {
	t, _ := trackerKey.From(ctx)
	return t
}
