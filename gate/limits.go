// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"

	"github.com/drover-agents/drover/event"
)

// LimitOptions configures [Limits]. The zero value has no limit on calls.
type LimitOptions struct {
	// MaxCalls is how many calls may be decided; see [Facts.Calls]. Zero means no limit.
	MaxCalls int
}

// Limits denies every call once a limit of the run is reached: the deadline, a budget of tokens, the budget of cost, the
// number of calls, in this order. All but the number of calls come with the [Facts]. It never allows anything.
func Limits(opts LimitOptions) Policy {
	p := Policy{Name: "limits", Stage: StageLimits}
	if opts.MaxCalls < 0 {
		p.err = fmt.Errorf("MaxCalls is %d; it must not be negative", opts.MaxCalls)
	}
	p.Judge = func(_ *Call, f *Facts) (event.Decision, bool) {
		reason := opts.reached(f)
		return event.Decision{Reason: reason}, reason != ""
	}
	return p
}

// reached returns the reason for the first limit that is reached, or "".
func (o LimitOptions) reached(f *Facts) string {
	left := &f.Remaining
	switch {
	case !f.Deadline.IsZero() && !f.Now.Before(f.Deadline):
		return deadlineExceeded
	case spent(left.Tokens), spent(left.InputTokens), spent(left.OutputTokens):
		return tokensExhausted
	case left.CostUSD != nil && !(*left.CostUSD > 0): // no number is no budget either
		return costExhausted
	case o.MaxCalls > 0 && f.Calls >= o.MaxCalls:
		return fmt.Sprintf(callsExhausted, f.Calls, o.MaxCalls)
	}
	return ""
}

func spent(left *int64) bool { return left != nil && *left <= 0 }
