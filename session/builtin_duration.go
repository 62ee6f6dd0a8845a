// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"math"
	"time"
)

// toMilliseconds is how durations are written. The part of a millisecond is written too, because a
// session that is opened again has the state that it was closed with.
func toMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// fromMilliseconds reads them, to the nanosecond for durations below 52 days.
func fromMilliseconds(ms float64) (time.Duration, error) {
	const longest = float64(math.MaxInt64 / time.Millisecond)
	if math.Abs(ms) > longest {
		return 0, fmt.Errorf("a duration is %g ms, more than a time.Duration holds", ms)
	}
	return time.Duration(math.Round(ms * float64(time.Millisecond))), nil
}
