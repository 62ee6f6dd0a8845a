// SPDX-License-Identifier: Apache-2.0

//go:build unix

package drover_test

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/record"
)

// consumed is the processor time of this process and of its children that have ended.
func consumed(b *testing.B) (all time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all
}

// BenchmarkEvaluateRecordedBesideUnrecorded is the processor time of one prompt, cold, with a recorder and without. Both take turns;
// the figure is the median of the ratios of the pairs.
//
//	go test -run '^$' -bench BenchmarkEvaluateRecorded -benchtime 30x .
func BenchmarkEvaluateRecordedBesideUnrecorded(b *testing.B) {
	tr, p := newTrack(b), reviewPrompt(b)
	store, err := record.Open(filepath.Join(b.TempDir(), "runs"))
	if err != nil {
		b.Fatal(err)
	}
	lap := func(r drover.Recorder) time.Duration {
		before := consumed(b)
		if _, err := drover.Evaluate(b.Context(), claudecode.New(tr.options()), p, &drover.Options{Recorder: r}); err != nil {
			b.Fatal(err)
		}
		return consumed(b) - before
	}
	var plain, recorded []time.Duration
	var ratios []float64
	for i := 0; b.Loop(); i++ {
		var without, with time.Duration
		if i%2 == 0 { // the second of a pair finds warmer caches
			without, with = lap(nil), lap(record.NewRecorder(store, nil))
		} else {
			with, without = lap(record.NewRecorder(store, nil)), lap(nil)
		}
		plain, recorded = append(plain, without), append(recorded, with)
		ratios = append(ratios, float64(with)/float64(without))
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medianOf(plain).Seconds()*1000, "unrecorded-cpu-ms")
	b.ReportMetric(medianOf(recorded).Seconds()*1000, "recorded-cpu-ms")
	b.ReportMetric(ratios[len(ratios)/2], "recorded/unrecorded")
}
