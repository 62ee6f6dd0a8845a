// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
)

// ErrBudgetExhausted is matched by every [*BudgetError].
var ErrBudgetExhausted = errors.New("guard: budget exhausted")

// A Budget is what may be consumed. A field that is zero limits nothing.
type Budget struct {
	// MaxTotalTokens limits input and output tokens together.
	MaxTotalTokens  int64 `json:"maxTotalTokens,omitzero"`
	MaxInputTokens  int64 `json:"maxInputTokens,omitzero"`
	MaxOutputTokens int64 `json:"maxOutputTokens,omitzero"`
	// MaxCostUSD is counted to a billionth of a dollar.
	MaxCostUSD float64 `json:"maxCostUsd,omitzero"`
	// MaxRequests limits how many requests to the model may begin; see [Tracker.BeginRequest].
	MaxRequests int64    `json:"maxRequests,omitzero"`
	Deadline    Deadline `json:"deadline,omitzero"`
}

// Validate reports the limits that make no sense: negative ones, and a cost that is no finite number.
// A [Tracker] of such a budget is exhausted from the start.
func (b Budget) Validate() error {
	var errs []error
	refuse := func(field string, value any) {
		errs = append(errs, advice.Wrap(fmt.Errorf("guard: Budget.%s is %v", field, value), "set a limit above zero, or zero for no limit"))
	}
	for _, l := range b.limits(count{}) {
		if l.unit == 1 && l.max < 0 {
			refuse(l.field, l.max)
		}
	}
	if c := b.MaxCostUSD; c < 0 || math.IsNaN(c) || math.IsInf(c, 0) {
		refuse("MaxCostUSD", c)
	}
	return errors.Join(errs...)
}

// Usage is what was consumed.
type Usage struct {
	// InputTokens are all of them, also those read from and written to a cache.
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	CostUSD      float64 `json:"costUsd"`
	// Requests are the requests to the model that were begun.
	Requests int64 `json:"requests,omitzero"`
}

// UsageOf takes from a run's usage what budgets are about. Unreported figures are zero.
func UsageOf(u event.Usage) Usage {
	return Usage{InputTokens: u.InputTokens(), OutputTokens: u.OutputTokens(), CostUSD: u.TotalCostUSD()}
}

// TotalTokens returns input and output together.
func (u Usage) TotalTokens() int64 { return countOf(u).tokens() }

// A BudgetError names the limit that is reached. It matches [ErrBudgetExhausted].
type BudgetError struct {
	// Limit is the field of [Budget] that is reached, such as "MaxTotalTokens".
	Limit string
	// Consumed and Max are tokens, for MaxCostUSD dollars, for MaxRequests requests. Consumed is not less than Max.
	Consumed, Max float64
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("%s: %s is %s, and %s are consumed", ErrBudgetExhausted, e.Limit, plain(e.Max), plain(e.Consumed))
}

// Advice implements [advice.Adviser].
func (e *BudgetError) Advice() string { return "raise " + e.Limit + ", or give the work less to do" }

// Is makes the error match [ErrBudgetExhausted].
func (e *BudgetError) Is(target error) bool { return target == ErrBudgetExhausted }

func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// perDollar is how many parts a dollar is counted in.
const perDollar = 1e9

// A limit is one limit of a budget beside what was consumed of it, both counted in whole parts.
type limit struct {
	field         string
	set           bool
	max, consumed int64
	unit          float64 // how many parts are one token or one dollar
}

// requestLimit comes last, because what is reached before it ends requests that are under way.
const requestLimit = "MaxRequests"

// limits lists all limits in the order in which they are checked.
func (b *Budget) limits(c count) [5]limit {
	return [5]limit{
		{"MaxTotalTokens", b.MaxTotalTokens != 0, b.MaxTotalTokens, c.tokens(), 1},
		{"MaxInputTokens", b.MaxInputTokens != 0, b.MaxInputTokens, c.input, 1},
		{"MaxOutputTokens", b.MaxOutputTokens != 0, b.MaxOutputTokens, c.output, 1},
		{"MaxCostUSD", b.MaxCostUSD != 0, b.maxCost(), c.cost, perDollar},
		{requestLimit, b.MaxRequests != 0, b.MaxRequests, c.requests, 1},
	}
}

// maxCost allows nothing where the limit is no finite number.
func (b *Budget) maxCost() int64 {
	if math.IsInf(b.MaxCostUSD, 0) {
		return 0
	}
	return parts(b.MaxCostUSD)
}

func (l *limit) reached() bool { return l.set && l.consumed >= l.max }

// left is negative for a limit that was passed, and nil for none. A negative limit has no more left
// than zero, independent of consumption: the difference could overflow.
func (l *limit) left() *int64 {
	if !l.set {
		return nil
	}
	return new(max(l.max, 0) - l.consumed)
}

func (b *Budget) exhausted(c count) error {
	for _, l := range b.limits(c) {
		if l.reached() {
			return &BudgetError{Limit: l.field, Consumed: float64(l.consumed) / l.unit, Max: float64(l.max) / l.unit}
		}
	}
	return nil
}

// A count is a usage in whole parts, none of them negative. It grows up to the largest integer and
// stays there, so that no order of additions makes a difference.
type count struct{ input, output, cost, requests int64 }

// countOf counts what is negative or no number as nothing.
func countOf(u Usage) count {
	return count{max(u.InputTokens, 0), max(u.OutputTokens, 0), parts(u.CostUSD), max(u.Requests, 0)}
}

func parts(dollars float64) int64 {
	switch n := math.Round(dollars * perDollar); {
	case n >= math.MaxInt64:
		return math.MaxInt64
	case n > 0:
		return int64(n)
	default:
		return 0
	}
}

func (c count) tokens() int64 { return sum(c.input, c.output) }

func (c count) plus(o count) count {
	return count{sum(c.input, o.input), sum(c.output, o.output), sum(c.cost, o.cost), sum(c.requests, o.requests)}
}

func (c count) minus(o count) count {
	return count{c.input - o.input, c.output - o.output, c.cost - o.cost, c.requests - o.requests}
}

func (c count) atLeast(o count) count {
	return count{max(c.input, o.input), max(c.output, o.output), max(c.cost, o.cost), max(c.requests, o.requests)}
}

func (c count) usage() Usage {
	return Usage{c.input, c.output, float64(c.cost) / perDollar, c.requests}
}

func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
