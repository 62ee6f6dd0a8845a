// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/drover-agents/drover/bench/internal/rig"
)

// A target is a figure of Drover's with the bound that it must keep.
type target struct {
	what     string
	scenario rig.Scenario
	who      string
	value    func(*result) float64
	// times, if not zero, makes the bound so many times the figure of the TypeScript SDK in the same
	// run; otherwise the bound is limit.
	times, limit float64
	// most means that the bound is an upper one.
	most bool
	unit string
}

func rate(r *result) float64        { return r.rate }
func mbps(r *result) float64        { return r.mbps }
func perMessage(r *result) float64  { return r.allocs }
func residentMB(r *result) float64  { return r.rssMB }
func worstDeath(r *result) float64  { _, worst, _ := r.deathTimes(); return worst }
func silentDeath(r *result) float64 { _, _, n := r.deathTimes(); return float64(len(r.deaths) - n) }

var targets = []target{
	{what: "text, typed", scenario: rig.Text, who: droverTyped, value: rate, times: 2, unit: "messages/s"},
	{what: "mixed, typed", scenario: rig.Mixed, who: droverTyped, value: rate, times: 2, unit: "messages/s"},
	{what: "text, lazy", scenario: rig.Text, who: droverLazy, value: rate, times: 5, unit: "messages/s"},
	{what: "mixed, lazy", scenario: rig.Mixed, who: droverLazy, value: rate, times: 5, unit: "messages/s"},
	{what: "text, typed", scenario: rig.Text, who: droverTyped, value: perMessage, limit: 8, most: true, unit: "allocations/message"},
	{what: "mixed, typed", scenario: rig.Mixed, who: droverTyped, value: perMessage, limit: 8, most: true, unit: "allocations/message"},
	{what: "text, lazy", scenario: rig.Text, who: droverLazy, value: perMessage, limit: 2, most: true, unit: "allocations/message"},
	{what: "mixed, lazy", scenario: rig.Mixed, who: droverLazy, value: perMessage, limit: 2, most: true, unit: "allocations/message"},
	{what: "text, typed", scenario: rig.Text, who: droverTyped, value: residentMB, limit: 12, most: true, unit: "MB"},
	{what: "mixed, typed", scenario: rig.Mixed, who: droverTyped, value: residentMB, limit: 12, most: true, unit: "MB"},
	{what: "lines of 4 MB", scenario: rig.Big, who: droverTyped, value: mbps, times: 1, unit: "MB/s"},
	{what: "lines of 4 MB", scenario: rig.Big, who: droverTyped, value: residentMB, limit: 40, most: true, unit: "MB"},
	{what: "hooks one at a time", scenario: rig.Hooks, who: droverTyped, value: rate, limit: 20_000, unit: "hooks/s"},
	{what: "hooks 16 at a time", scenario: rig.Hooks16, who: droverTyped, value: rate, limit: 45_000, unit: "hooks/s"},
	{what: "MCP tool calls", scenario: rig.MCP, who: droverTyped, value: rate, limit: 20_000, unit: "calls/s"},
	{what: "worst report of a death", scenario: rig.Death, who: droverTyped, value: worstDeath, limit: 100, most: true, unit: "ms"},
	{what: "deaths without their reason", scenario: rig.Death, who: droverTyped, value: silentDeath, limit: 0, most: true, unit: "reports"},
}

func checks(all []*participant) []string {
	var lines []string
	for _, t := range targets {
		if line := t.check(all); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// check is empty if there is no figure to check.
func (t target) check(all []*participant) string {
	got, ok := t.of(all, t.who)
	if !ok {
		return ""
	}
	peer, known := t.of(all, typeScript)
	bound := t.limit
	if t.times > 0 {
		if !known {
			return ""
		}
		bound = t.times * peer
	}
	verdict := "holds "
	if (t.most && got > bound) || (!t.most && got < bound) {
		verdict = "MISSED"
	}
	relation := "at least"
	if t.most {
		relation = "at most"
	}
	line := fmt.Sprintf("%s  %-28s %11s, %s %s %s", verdict, t.what, number(got), relation, number(bound), t.unit)
	if !t.most && known {
		line += fmt.Sprintf(" (%.2f x TypeScript)", got/peer)
	}
	return line
}

func (t target) of(all []*participant, who string) (float64, bool) {
	for _, p := range all {
		if r := p.results[t.scenario]; p.name == who && r.hasFigures() {
			return t.value(r), true
		}
	}
	return 0, false
}

func number(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
