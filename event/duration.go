// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"math"
	"time"
)

const maxDurationMS = float64(math.MaxInt64 / time.Millisecond)

// toMilliseconds is how durations are written: whole milliseconds.
func toMilliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds())
}

// fromMilliseconds reads them. Others may measure fractions.
func fromMilliseconds(ms float64) (time.Duration, error) {
	if math.Abs(ms) > maxDurationMS {
		return 0, fmt.Errorf("durationMs is %g, more than a time.Duration holds", ms)
	}
	whole, part := math.Modf(ms)
	return time.Duration(whole)*time.Millisecond + time.Duration(part*float64(time.Millisecond)), nil
}
