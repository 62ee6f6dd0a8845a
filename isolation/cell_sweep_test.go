// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSweep_IsNotRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		swept := 0
		sweep := func() { swept++; time.Sleep(10 * time.Millisecond) }
		for _, step := range []struct {
			name string
			wait time.Duration
			want int
		}{
			{"the first", 0, 1},
			{"right after it", 0, 1},
			{"too early", 199 * time.Millisecond, 1},
			{"after twenty times as long as it took", time.Millisecond, 2},
		} {
			time.Sleep(step.wait)
			p.try(sweep)
			if swept != step.want {
				t.Errorf("%s: got %d sweeps, want %d", step.name, swept, step.want)
			}
		}
		time.Sleep(time.Hour)
		go p.try(sweep)
		synctest.Wait()
		p.try(sweep)
		if swept != 3 {
			t.Errorf("while another one sweeps: got %d sweeps, want 3", swept)
		}
		time.Sleep(time.Second) // until the other one has ended
	})
}
