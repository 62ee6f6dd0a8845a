// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTime_OutOfRangeIsClamped(t *testing.T) {
	for name, c := range map[string]struct {
		at   unix.StatxTimestamp
		want int64
	}{
		"before 1970":      {unix.StatxTimestamp{Sec: -2, Nsec: 5e8}, -15e8},
		"2261":             {unix.StatxTimestamp{Sec: 9_200_000_000, Nsec: 7}, 9_200_000_000_000_000_007},
		"2300":             {unix.StatxTimestamp{Sec: 10_413_792_000}, math.MaxInt64},
		"the end of ext4":  {unix.StatxTimestamp{Sec: 15_032_385_535}, math.MaxInt64},
		"the dark ages":    {unix.StatxTimestamp{Sec: -40_000_000_000}, math.MinInt64},
		"almost too early": {unix.StatxTimestamp{Sec: -9_200_000_000}, -9_200_000_000_000_000_000},
	} {
		if got := nanos(c.at); got != c.want {
			t.Errorf("%s is %d, want %d", name, got, c.want)
		}
	}
}
