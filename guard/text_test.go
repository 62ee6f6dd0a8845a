// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/drover-agents/drover/guard"
)

func TestString_OfLimitsAndResults(t *testing.T) {
	at := guard.At(time.Date(2026, 11, 18, 20, 0, 0, 0, time.UTC))
	for name, x := range map[string]struct {
		value any
		want  string
	}{
		"no limit":         {guard.Budget{}, "no limit"},
		"limits":           {&guard.Budget{MaxTotalTokens: 10_000, MaxRequests: 3, MaxCostUSD: 0.5, Deadline: at}, "10,000 tokens, 3 requests, $0.50, until 2026-11-18T20:00:00Z"},
		"both directions":  {guard.Budget{MaxInputTokens: 5, MaxOutputTokens: 6}, "5 input tokens, 6 output tokens"},
		"no requests":      {guard.Usage{InputTokens: 1}, "1 token (1 in, 0 out), $0.0000"},
		"usage":            {guard.Usage{InputTokens: 11, OutputTokens: 4, CostUSD: 0.006, Requests: 2}, "15 tokens (11 in, 4 out), $0.0060, 2 requests"},
		"much usage":       {guard.Usage{InputTokens: 1100, OutputTokens: 104, Requests: 1}, "1,204 tokens (1,100 in, 104 out), $0.0000, 1 request"},
		"complete":         {guard.Complete(), "done"},
		"incomplete":       {guard.Incomplete("<blocker>\nCreate a.txt\n</blocker>"), "not done: Create a.txt"},
		"spent, unchecked": {guard.Completion{Done: true, Skipped: true}, "not checked"},
	} {
		if got := fmt.Sprint(x.value); got != x.want {
			t.Errorf("%s is printed as %q, want %q", name, got, x.want)
		}
	}
}
