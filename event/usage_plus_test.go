// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
)

func used(model string, input, output int64, usd float64) event.Usage {
	tokens, err := event.NewTokens(event.CoverageComplete, event.TokenRecord{
		Model: model, Requests: 1, Cost: &event.Cost{USD: usd}, PricedUnits: []event.PricedUnit{{Name: "search", Quantity: 1}},
		Tokens: event.TokenCount{Input: event.InputTokens{Total: input, CacheRead: new(int64(1))}, Output: event.OutputTokens{Total: output}},
	})
	if err != nil {
		panic(err)
	}
	return event.Usage{ToolUses: 1, Tokens: tokens, Cost: &event.Cost{USD: usd, Source: event.CostAgentEstimate}}
}

// What two runs consumed is added up, model by model, and stays right in itself.
func TestUsage_Plus(t *testing.T) {
	one, two, other := used("a", 10, 2, 0.25), used("a", 5, 1, 0.5), used("b", 1, 1, 1)
	sum := one.Plus(two).Plus(other)
	if err := sum.Validate(); err != nil {
		t.Fatal(err)
	}
	if sum.ToolUses != 3 || sum.InputTokens() != 16 || sum.OutputTokens() != 4 || sum.TotalCostUSD() != 1.75 || sum.Cost.Source != event.CostAgentEstimate {
		t.Errorf("the sum is %+v with %+v", sum, sum.Tokens)
	}
	want := []event.TokenRecord{
		{
			Model: "a", Requests: 2, Cost: &event.Cost{USD: 0.75}, PricedUnits: []event.PricedUnit{{Name: "search", Quantity: 2}},
			Tokens: event.TokenCount{Input: event.InputTokens{Total: 15, CacheRead: new(int64(2))}, Output: event.OutputTokens{Total: 3}},
		},
		other.Tokens.Records[0],
	}
	if diff := cmp.Diff(want, sum.Tokens.Records); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(used("a", 10, 2, 0.25), one); diff != "" {
		t.Errorf("what was added is changed (-want +got):\n%s", diff)
	}
}

// What only one of two reports is partial, unless the other has done nothing at all.
func TestUsage_PlusOfUnreportedUsageIsPartial(t *testing.T) {
	known := used("a", 10, 2, 0.25)
	unknown := event.Usage{ToolUses: 3}
	partial := known
	partial.Tokens = new(*known.Tokens)
	partial.Tokens.Coverage = event.CoveragePartial
	whole := event.Usage{Tokens: &event.Tokens{Coverage: event.CoverageComplete, Totals: known.Tokens.Totals}, Cost: &event.Cost{USD: 1}}
	for name, x := range map[string]struct {
		a, b     event.Usage
		coverage event.Coverage
		records  int
		source   event.CostSource
	}{
		"nothing":      {known, event.Usage{}, event.CoverageComplete, 1, event.CostAgentEstimate},
		"no tokens":    {known, unknown, event.CoveragePartial, 1, event.CostAgentEstimate},
		"partial":      {known, partial, event.CoveragePartial, 1, event.CostAgentEstimate},
		"no shares":    {known, whole, event.CoverageComplete, 0, ""},
		"other source": {whole, whole, event.CoverageComplete, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sum := range []event.Usage{x.a.Plus(x.b), x.b.Plus(x.a)} {
				if sum.Tokens.Coverage != x.coverage || len(sum.Tokens.Records) != x.records || sum.Cost.Source != x.source || sum.Validate() != nil {
					t.Errorf("the sum is %+v of %+v, %v", sum.Tokens, sum.Cost, sum.Validate())
				}
			}
		})
	}
	if sum := unknown.Plus(unknown); sum.Tokens != nil || sum.Cost != nil || sum.ToolUses != 6 {
		t.Errorf("the sum of unreported usage is %+v", sum)
	}
}
