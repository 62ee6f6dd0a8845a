// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"math"
	"testing"
	"time"

	"github.com/drover-agents/drover/event"
)

func TestLimits_Decide(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	all := Custom("all", func(*Call, *Facts) (event.Decision, bool) { return event.Decision{Verdict: event.Allow}, true })
	cases := []struct {
		name  string
		max   int
		facts Facts
		want  string // the reason; empty means allowed
	}{
		{"nothing known", 0, Facts{}, ""},
		{"before the deadline", 0, Facts{Now: now, Deadline: now.Add(1)}, ""},
		{"at the deadline", 0, Facts{Now: now, Deadline: now}, "Deadline exceeded"},
		{"after the deadline", 0, Facts{Now: now.Add(1), Deadline: now}, "Deadline exceeded"},
		{"one token left", 0, Facts{Remaining: Remaining{Tokens: new(int64(1))}}, ""},
		{"no tokens", 0, Facts{Remaining: Remaining{Tokens: new(int64(0))}}, "Token budget exhausted"},
		{"less than none", 0, Facts{Remaining: Remaining{Tokens: new(int64(-1))}}, "Token budget exhausted"},
		{"no input tokens", 0, Facts{Remaining: Remaining{InputTokens: new(int64(0))}}, "Token budget exhausted"},
		{"no output tokens", 0, Facts{Remaining: Remaining{OutputTokens: new(int64(0))}}, "Token budget exhausted"},
		{"a little money", 0, Facts{Remaining: Remaining{CostUSD: new(0.01)}}, ""},
		{"no money", 0, Facts{Remaining: Remaining{CostUSD: new(0.0)}}, "Cost budget exhausted"},
		{"money that is no number", 0, Facts{Remaining: Remaining{CostUSD: new(math.NaN())}}, "Cost budget exhausted"},
		{"calls without limit", 0, Facts{Calls: 1000}, ""},
		{"the last call", 3, Facts{Calls: 2}, ""},
		{"one call too many", 3, Facts{Calls: 3}, "Tool call limit reached: 3 of 3 calls made. Call no more tools; give your final answer."},
		{"the deadline before the budget", 1, Facts{Now: now, Deadline: now, Calls: 1, Remaining: Remaining{Tokens: new(int64(0))}}, "Deadline exceeded"},
		{"the tokens before the money", 1, Facts{Calls: 1, Remaining: Remaining{Tokens: new(int64(0)), CostUSD: new(0.0)}}, "Token budget exhausted"},
		{"the money before the calls", 1, Facts{Calls: 1, Remaining: Remaining{CostUSD: new(0.0)}}, "Cost budget exhausted"},
	}
	for _, c := range cases {
		got := ForClaude(all, Limits(LimitOptions{MaxCalls: c.max})).Decide(event.ToolCall{Name: "Read"}, c.facts)
		if got.Reason != c.want || (got.Verdict == event.Allow) != (c.want == "") {
			t.Errorf("%s: got %s %q, want %q", c.name, got.Verdict, got.Reason, c.want)
		}
	}
	if got := ForClaude(Limits(LimitOptions{})).Decide(event.ToolCall{Name: "Read"}, Facts{}); got.Verdict != event.Deny {
		t.Errorf("limits alone: got %s, want deny: they never allow", got.Verdict)
	}
	if _, err := New(Limits(LimitOptions{MaxCalls: -1})); err == nil {
		t.Error("negative MaxCalls: got no error")
	}
}
