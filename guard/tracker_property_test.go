// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/guard"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// A report is a call of Record, or of RecordCumulative if it has an id.
type report struct {
	id            string
	input, output int64
	cost          int64 // in billionths of a dollar
}

func drawReport(t *rapid.T) report {
	return report{
		rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "id"),
		rapid.Int64Range(0, 1e6).Draw(t, "input"), rapid.Int64Range(0, 1e6).Draw(t, "output"),
		rapid.Int64Range(0, 100e9).Draw(t, "cost"),
	}
}

func (r report) record(tracker *guard.Tracker) {
	dollars, _ := big.NewRat(r.cost, 1e9).Float64()
	u := guard.Usage{InputTokens: r.input, OutputTokens: r.output, CostUSD: dollars}
	if r.id == "" {
		tracker.Record(u)
		return
	}
	tracker.RecordCumulative(r.id, u)
}

// sumOf is what a list of reports must come to: the sum of the plain ones, and of the largest figures
// of each evaluation.
func sumOf(reports []report) guard.Usage {
	var sum report
	largest := map[string]report{}
	add := func(r report) {
		sum.input, sum.output, sum.cost = sum.input+r.input, sum.output+r.output, sum.cost+r.cost
	}
	for _, r := range reports {
		if r.id == "" {
			add(r)
			continue
		}
		l := largest[r.id]
		largest[r.id] = report{r.id, max(l.input, r.input), max(l.output, r.output), max(l.cost, r.cost)}
	}
	for _, r := range largest {
		add(r)
	}
	dollars, _ := big.NewRat(sum.cost, 1e9).Float64()
	return guard.Usage{InputTokens: sum.input, OutputTokens: sum.output, CostUSD: dollars}
}

// The sum is exact, to the last bit of the dollars, and no order of reports changes it. Whenever a
// limit is reached the gate denies, and it stays reached.
func TestTracker_ReportsSumExactlyInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reports := rapid.SliceOfN(rapid.Custom(drawReport), 0, 30).Draw(t, "reports")
		tracker := guard.NewTracker(guard.Budget{
			MaxTotalTokens:  rapid.Int64Range(0, 1e7).Draw(t, "max total"),
			MaxInputTokens:  rapid.Int64Range(0, 1e7).Draw(t, "max input"),
			MaxOutputTokens: rapid.Int64Range(0, 1e7).Draw(t, "max output"),
			MaxCostUSD:      rapid.Float64Range(0, 1e3).Draw(t, "max cost"),
		})
		want := sumOf(reports)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0)).Shuffle(len(reports), func(i, j int) {
			reports[i], reports[j] = reports[j], reports[i]
		})
		var reached error
		for _, r := range reports {
			r.record(tracker)
			assertAgreesWithGate(t, tracker)
			err := tracker.Check()
			if reached != nil && err == nil {
				t.Fatalf("%v, and then nothing", reached)
			}
			reached = err
		}
		if got := tracker.Consumed(); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}
