// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"runtime/metrics"
	"testing"
)

// WakeUps is about how often goroutines of this program have begun to run: the runtime counts every eighth time.
func WakeUps(t testing.TB) (n uint64) {
	t.Helper()
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		t.Fatal("the runtime does not count how often goroutines begin to run")
	}
	for _, count := range sample[0].Value.Float64Histogram().Counts {
		n += 8 * count
	}
	return n
}
