// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
)

func TestBudget_InvalidBudgetIsRefusedAndAllowsNothing(t *testing.T) {
	cases := []struct {
		name   string
		budget guard.Budget
		want   string // in the error; empty for none
	}{
		{"zero", guard.Budget{}, ""},
		{"all limits", guard.Budget{MaxTotalTokens: 3, MaxInputTokens: 2, MaxOutputTokens: 1, MaxCostUSD: 0.5, Deadline: guard.FromNow(time.Hour)}, ""},
		{"negative total", guard.Budget{MaxTotalTokens: -1}, "MaxTotalTokens is -1"},
		{"negative input", guard.Budget{MaxInputTokens: math.MinInt64}, "MaxInputTokens is -9223372036854775808"},
		{"negative output", guard.Budget{MaxOutputTokens: -2}, "MaxOutputTokens is -2"},
		{"negative cost", guard.Budget{MaxCostUSD: -0.5}, "MaxCostUSD is -0.5"},
		{"no number", guard.Budget{MaxCostUSD: math.NaN()}, "MaxCostUSD is NaN"},
		{"minus infinity", guard.Budget{MaxCostUSD: math.Inf(-1)}, "MaxCostUSD is -Inf"},
		{"infinity", guard.Budget{MaxCostUSD: math.Inf(1)}, "MaxCostUSD is +Inf"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.budget.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(advice.Text(err), tc.want) {
				t.Errorf("Validate() = %v, want %q", err, tc.want)
			}
			tracker := guard.NewTracker(tc.budget)
			if got := errors.Is(tracker.Check(), guard.ErrBudgetExhausted); got != (tc.want != "") {
				t.Errorf("Check() = %v before anything is consumed", tracker.Check())
			}
			tracker.Record(guard.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CostUSD: math.Inf(1)})
			assertAgreesWithGate(t, tracker)
		})
	}
	both := guard.Budget{MaxInputTokens: -1, MaxOutputTokens: -1}.Validate()
	if both == nil || strings.Count(advice.Text(both), "next:") != 2 {
		t.Errorf("Validate() = %v, want both limits", both)
	}
}

func TestBudget_JSON(t *testing.T) {
	want := guard.Budget{MaxTotalTokens: 50_000, MaxCostUSD: 1.5, Deadline: guard.At(noon)}
	data, err := json.Marshal(want)
	if err != nil || string(data) != `{"maxTotalTokens":50000,"maxCostUsd":1.5,"deadline":"2030-01-02T12:00:00Z"}` {
		t.Fatalf("got %s, %v", data, err)
	}
	var got guard.Budget
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestUsage_CountsCachedTokens(t *testing.T) {
	tokens, err := event.NewTokens(event.CoverageComplete, event.TokenRecord{Tokens: event.TokenCount{
		Input:  event.InputTokens{Total: 100, Uncached: new(int64(10)), CacheRead: new(int64(70)), CacheWrite: new(int64(20))},
		Output: event.OutputTokens{Total: 7},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := guard.UsageOf(event.Usage{Tokens: tokens, Cost: &event.Cost{USD: 0.25}})
	if want := (guard.Usage{InputTokens: 100, OutputTokens: 7, CostUSD: 0.25}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.TotalTokens() != 107 {
		t.Errorf("TotalTokens() = %d, want 107", got.TotalTokens())
	}
	if got := guard.UsageOf(event.Usage{}); got != (guard.Usage{}) {
		t.Errorf("of nothing: %+v", got)
	}
}
