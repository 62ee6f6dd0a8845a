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

// consumed is the processor time of this process, and with it that of its children that have ended.
func consumed(b *testing.B) (own, all time.Duration) {
	b.Helper()
	var times [2]time.Duration
	for i, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		times[i] = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return times[0], times[0] + times[1]
}

// BenchmarkEvaluateRecordedBesideUnrecorded is the processor time of one prompt, cold, with a recorder and without. Both take turns;
// the figure is the median of the ratios of the pairs. Recording is work of this process alone, whose own time differs less from run
// to run than that of the CLI: added-ms is the median of what a pair's recorded run needs more of it.
//
//	go test -run '^$' -bench BenchmarkEvaluateRecorded -benchtime 30x .
func BenchmarkEvaluateRecordedBesideUnrecorded(b *testing.B) {
	tr, p := newTrack(b), reviewPrompt(b)
	store, err := record.Open(filepath.Join(b.TempDir(), "runs"))
	if err != nil {
		b.Fatal(err)
	}
	lap := func(r drover.Recorder) (own, all time.Duration) {
		ownBefore, before := consumed(b)
		if _, err := drover.Evaluate(b.Context(), claudecode.New(tr.options()), p, &drover.Options{Recorder: r}); err != nil {
			b.Fatal(err)
		}
		own, all = consumed(b)
		return own - ownBefore, all - before
	}
	var plain, recorded, added []time.Duration
	var ratios []float64
	for i := 0; b.Loop(); i++ {
		var without, with, ownWithout, ownWith time.Duration
		if i%2 == 0 { // the second of a pair finds warmer caches
			ownWithout, without = lap(nil)
			ownWith, with = lap(record.NewRecorder(store, nil))
		} else {
			ownWith, with = lap(record.NewRecorder(store, nil))
			ownWithout, without = lap(nil)
		}
		added = append(added, ownWith-ownWithout)
		plain, recorded = append(plain, without), append(recorded, with)
		ratios = append(ratios, float64(with)/float64(without))
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medianOf(plain).Seconds()*1000, "unrecorded-cpu-ms")
	b.ReportMetric(medianOf(recorded).Seconds()*1000, "recorded-cpu-ms")
	b.ReportMetric(medianOf(added).Seconds()*1000, "added-ms")
	b.ReportMetric(ratios[len(ratios)/2], "recorded/unrecorded")
}
