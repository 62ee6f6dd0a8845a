// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/drover-agents/drover/guard"
)

// roomy is a budget with every limit, none of which is reached.
func roomy() guard.Budget {
	return guard.Budget{
		MaxTotalTokens: 1 << 60, MaxInputTokens: 1 << 60, MaxOutputTokens: 1 << 60, MaxCostUSD: 1e9,
		Deadline: guard.FromNow(time.Hour),
	}
}

func BenchmarkRecordAndCheck(b *testing.B) {
	tracker := guard.NewTracker(roomy())
	u := guard.Usage{InputTokens: 100, OutputTokens: 10, CostUSD: 0.000001}
	b.ReportAllocs()
	for b.Loop() {
		tracker.Record(u)
		if err := tracker.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecordCumulativeAndCheck(b *testing.B) {
	tracker := guard.NewTracker(roomy())
	u := guard.Usage{OutputTokens: 10, CostUSD: 0.000001}
	b.ReportAllocs()
	for b.Loop() {
		u.InputTokens++
		tracker.RecordCumulative("one", u)
		if err := tracker.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecordAndCheckParallel(b *testing.B) {
	tracker := guard.NewTracker(roomy())
	u := guard.Usage{InputTokens: 100, OutputTokens: 10, CostUSD: 0.000001}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			tracker.Record(u)
			_ = tracker.Check()
		}
	})
}

func BenchmarkBeat(b *testing.B) {
	h := guard.NewHeartbeat(nil)
	h.OnBeat(func() {})
	b.ReportAllocs()
	for b.Loop() {
		h.Beat()
	}
}

func BenchmarkLogHandler(b *testing.B) {
	log := slog.New(guard.LogHandler(slog.NewJSONHandler(io.Discard, nil)))
	ctx := guard.WithRunContext(b.Context(), guard.NewRunContext(nil))
	b.ReportAllocs()
	for b.Loop() {
		log.InfoContext(ctx, "hello", "n", 1)
	}
}
