// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"fmt"
	"testing"
)

// BenchmarkApply changes the contents of files in a tree of three times as many.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("changed=%d", n), func(b *testing.B) {
			before, after := layout{}, layout{}
			for i := range 3 * n {
				name := fmt.Sprintf("d%d/f%d", i%20, i)
				before[name] = node{content: "content", time: 5}
				after[name] = before[name]
				if i%3 == 0 {
					before[name] = node{content: "changed", time: 6}
				}
			}
			for b.Loop() {
				b.StopTimer()
				tree := setUpIn(b, inMemory(), before, after)
				b.StartTimer()
				if res, err := tree.apply(false); err != nil || len(res.Conflicts) > 0 {
					b.Fatal(res.Conflicts, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/change")
		})
	}
}
