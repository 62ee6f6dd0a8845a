// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/event"
)

// A client that repeats forbidden attempts does not fill the disk that stores the events. The proxy reports
// how many events it left out, and emits every attempt that it let through.
func TestProxy_FloodOfRefusalsIsSummarized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused, allowed, missed int
		reporter := newReporter(func(p event.Payload) {
			c := p.(Connection)
			missed += c.Missed
			switch {
			case c.Verdict == Allowed:
				allowed++
			case c.Host != "":
				refused++
			}
		})
		const seconds, rate = 10, 1000
		for range seconds {
			for range rate {
				reporter.report(Connection{Verdict: Denied, Host: "h"})
				synctest.Wait()
			}
			reporter.report(Connection{Verdict: Allowed, Host: "h"})
			time.Sleep(time.Second)
		}
		reporter.report(Connection{Verdict: Denied, Host: "h"})
		reporter.report(Connection{Verdict: Failed, Host: "h"})
		reporter.close()
		if most := maxFruitless + seconds*fruitlessRate; refused > most || refused < maxFruitless {
			t.Errorf("%d refusals were reported, want %d to %d", refused, maxFruitless, most)
		}
		if allowed != seconds {
			t.Errorf("%d allowed attempts were reported, want %d", allowed, seconds)
		}
		if want := seconds*rate + 2; refused+missed != want {
			t.Errorf("%d reported and %d missed, want %d together", refused, missed, want)
		}
	})
}
