// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

func (w *Wire) isBusy(status int) bool {
	return status == http.StatusTooManyRequests || w.Overloaded != 0 && status == w.Overloaded
}

// tooBusy reports whether an answer means that the same call may succeed later.
func (w *Wire) tooBusy(resp *http.Response) bool {
	return w.isBusy(resp.StatusCode) && (w.RetryHeader == "" || resp.Header.Get(w.RetryHeader) != "false")
}

// The shortest and the longest wait where the upstream states none.
const (
	minBackOff = time.Second
	maxBackOff = 30 * time.Second
)

// backOff is how long to wait after the answer to an attempt, counted from 1. An upstream that asks for
// less than the shortest wait, or for none, is believed once: it would be asked in a loop without end.
func backOff(h http.Header, attempt int) time.Duration {
	if d, ok := retryAfter(h, time.Now()); ok {
		if attempt > 1 {
			d = max(d, minBackOff)
		}
		return d
	}
	most := min(minBackOff<<min(attempt, 10), maxBackOff)
	return max(minBackOff, most/2+rand.N(most/2+1))
}

func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return asDuration(ms, time.Millisecond), true
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 {
		return asDuration(s, time.Second), true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// asDuration keeps a number that is too large for a duration at a year.
func asDuration(n float64, unit time.Duration) time.Duration {
	const year = 365 * 24 * time.Hour
	return time.Duration(min(n*float64(unit), float64(year)))
}
