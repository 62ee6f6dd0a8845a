// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/drover-agents/drover/bench/internal/corpus"
	"github.com/drover-agents/drover/bench/internal/rig"
)

// A result is the best of some runs of one client in one scenario.
type result struct {
	rate   float64 // messages or round trips per second
	mbps   float64 // megabytes of the stream per second
	allocs float64 // per message; negative if not known
	rssMB  float64 // the largest of all runs
	deaths []rig.DeathSeen
	// note names a difference of the client from the others.
	note string
	// failed of the runs had no figures, the last one because of err.
	runs, failed int
	err          error
}

func (r *result) hasFigures() bool { return r != nil && r.runs > r.failed }

func (r *result) add(p *participant, scenario rig.Scenario, count int, s rig.Sample, report string) error {
	r.rssMB = max(r.rssMB, float64(s.PeakKB)/1024)
	switch scenario {
	case rig.Death:
		r.deaths = s.Deaths
		return nil
	case rig.Text, rig.Mixed, rig.Big:
		return r.addStream(p, scenario, count, s)
	}
	got, err := rig.ReadReport(report)
	if err != nil {
		return fmt.Errorf("the fake CLI did not get its answers: %w", err)
	}
	if got.Wrong > 0 {
		return fmt.Errorf("%d of %d answers were wrong, such as %s", got.Wrong, got.RoundTrips, got.Example)
	}
	r.rate = max(r.rate, float64(got.RoundTrips)/got.Seconds)
	return nil
}

func (r *result) addStream(p *participant, scenario rig.Scenario, count int, s rig.Sample) error {
	if s.Messages != count || s.Seconds == 0 {
		return fmt.Errorf("the consumer saw %d messages of %d", s.Messages, count)
	}
	bytes, text := block(scenario).Volume(count)
	if !p.lazy && s.Text != text.UTF8 && s.Text != text.UTF16 {
		r.note = fmt.Sprintf("the consumer gets %d %% of the text", 100*s.Text/text.UTF8)
	}
	r.allocs = -1
	if s.Mallocs > 0 {
		r.allocs = float64(s.Mallocs) / float64(count)
	}
	r.rate = max(r.rate, float64(count)/s.Seconds)
	r.mbps = max(r.mbps, float64(bytes)/1e6/s.Seconds)
	return nil
}

var blocks = map[rig.Scenario]*corpus.Block{}

func block(scenario rig.Scenario) *corpus.Block {
	if blocks[scenario] == nil {
		blocks[scenario] = map[rig.Scenario]func() *corpus.Block{rig.Text: corpus.Text, rig.Mixed: corpus.Mixed, rig.Big: corpus.Big}[scenario]()
	}
	return blocks[scenario]
}

// deathTimes are the median and the worst time, and how many reports named the exit code.
func (r *result) deathTimes() (median, worst float64, reasons int) {
	var times []float64
	for _, d := range r.deaths {
		times = append(times, d.MS)
		if d.Reason {
			reasons++
		}
	}
	slices.Sort(times)
	if len(times) == 0 {
		return 0, 0, 0
	}
	return times[len(times)/2], times[len(times)-1], reasons
}
