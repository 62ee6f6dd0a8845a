// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
)

// The usage of a run in a cell is the gateway's count, and where the CLI's complete count is another one, the
// difference is reported.
func TestMeter_TheGatewaysCountIsTheUsage(t *testing.T) {
	const whole, partial = event.CoverageComplete, event.CoveragePartial
	reported := func(in, out int64, usd float64, coverage event.Coverage) event.Usage {
		count := event.TokenCount{Input: event.InputTokens{Total: in}, Output: event.OutputTokens{Total: out}}
		return event.Usage{ToolUses: 3, Cost: costOf(usd), Tokens: &event.Tokens{Coverage: coverage, Totals: count, Records: []event.TokenRecord{{Model: "reported", Tokens: count}}}}
	}
	counted := func(in, out int64, usd float64, unpriced ...string) gateway.Usage {
		n := gateway.Count{Requests: 1, Tokens: gateway.Tokens{Input: in, Output: out}, USD: usd}
		return gateway.Usage{Total: n, ByModel: map[string]gateway.Count{"counted": n}, Unpriced: unpriced}
	}
	for _, tc := range []struct {
		name     string
		reported event.Usage
		whole    Tokens
		counted  gateway.Usage
		differs  bool
		of       string // whose tokens
		usd      float64
		coverage event.Coverage
		aborted  Tokens
	}{
		{"the same", reported(10, 5, 1, whole), Tokens{10, 5}, counted(10, 5, 1), false, "reported", 1, whole, Tokens{}},
		{"nearly the same cost", reported(10, 5, 1.005, whole), Tokens{10, 5}, counted(10, 5, 1), false, "reported", 1.005, whole, Tokens{}},
		{"no cost", reported(10, 5, 0, whole), Tokens{10, 5}, counted(10, 5, 1), true, "counted", 1, whole, Tokens{}},
		{"another cost", reported(10, 5, 2, whole), Tokens{10, 5}, counted(10, 5, 1), true, "counted", 1, whole, Tokens{}},
		{"a model without a price", reported(10, 5, 2, whole), Tokens{10, 5}, counted(10, 5, 0, "counted"), false, "reported", 2, whole, Tokens{}},
		{"a cut answer that the CLI counts", reported(20, 6, 1, whole), Tokens{10, 5}, counted(20, 6, 1), false, "reported", 1, whole, Tokens{}},
		{"a cut answer that it does not", reported(10, 5, 1, whole), Tokens{10, 5}, counted(20, 6, 2), false, "counted", 2, whole, Tokens{}},
		{"less input than was answered", reported(9, 5, 1, whole), Tokens{10, 5}, counted(10, 5, 1), true, "counted", 1, whole, Tokens{}},
		{"less output", reported(10, 4, 1, whole), Tokens{10, 5}, counted(10, 5, 1), true, "counted", 1, whole, Tokens{}},
		{"more than has passed", reported(11, 5, 1, whole), Tokens{10, 5}, counted(10, 5, 1), true, "counted", 1, whole, Tokens{}},
		{"a claim without a call", reported(11, 5, 1, whole), Tokens{}, gateway.Usage{}, true, "", 0, "", Tokens{}},
		{"a part only", reported(1, 1, 1, partial), Tokens{10, 5}, counted(10, 5, 3), false, "counted", 3, partial, Tokens{}},
		{"nothing", event.Usage{ToolUses: 3}, Tokens{10, 5}, counted(10, 5, 3), false, "counted", 3, partial, Tokens{}},
		{"less, and a model without a price", reported(9, 5, 2, whole), Tokens{10, 5}, counted(10, 5, 0, "counted"), true, "counted", 2, whole, Tokens{}},
		{"a call that the agent left", reported(10, 5, 1, whole), Tokens{10, 5}, counted(20, 6, 2), true, "counted", 2, whole, Tokens{10, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &ending{done: event.Done{Usage: tc.reported}}
			e.meter(tc.counted, tc.whole, tc.aborted, true)
			if got := e.last.Metadata[UsageDiffers] != nil; got != tc.differs {
				t.Errorf("got %s, want a difference: %t", e.last.Metadata[UsageDiffers], tc.differs)
			}
			of, coverage := "", event.Coverage("")
			if tokens := e.done.Usage.Tokens; tokens != nil {
				of, coverage = tokens.Records[0].Model, tokens.Coverage
			}
			if got := e.done.Usage; of != tc.of || coverage != tc.coverage || got.TotalCostUSD() != tc.usd || got.ToolUses != 3 {
				t.Errorf("usage %+v of %q (%s), want that of %q (%s) for %v dollars", got, of, coverage, tc.of, tc.coverage, tc.usd)
			}
			if err := e.done.Usage.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A count that may hold what an earlier turn did not report is not compared, and is not the usage.
func TestMeter_AnIncomparableCountIsReplaced(t *testing.T) {
	count := event.TokenCount{Input: event.InputTokens{Total: 20}, Output: event.OutputTokens{Total: 20}}
	e := &ending{done: event.Done{Usage: event.Usage{Tokens: &event.Tokens{Coverage: event.CoverageComplete, Totals: count}}}}
	n := gateway.Count{Requests: 1, Tokens: gateway.Tokens{Input: 10, Output: 5}}
	e.meter(gateway.Usage{Total: n, ByModel: map[string]gateway.Count{"m": n}}, Tokens{10, 5}, Tokens{}, false)
	if got := e.done.Usage.Tokens.Totals.Input.Total; got != 10 || e.last.Metadata[UsageDiffers] != nil {
		t.Errorf("input tokens %d, difference %s, want 10 and none", got, e.last.Metadata[UsageDiffers])
	}
}
