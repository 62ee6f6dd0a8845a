// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/drover-agents/drover/bench/internal/rig"
)

// A table has a row for each figure and a column for each client.
type table struct {
	header []string
	rows   [][]string
	notes  []string
	checks []string
}

// A figure is one row: how it is read off a participant.
type figure struct {
	label    string
	scenario rig.Scenario
	cell     func(*result) string
}

var figures = []figure{
	{"text messages/s", rig.Text, func(r *result) string { return count(r.rate) }},
	{"  allocations/message", rig.Text, func(r *result) string { return allocs(r.allocs) }},
	{"  host RSS, MB", rig.Text, func(r *result) string { return fmt.Sprintf("%.1f", r.rssMB) }},
	{"mixed messages/s", rig.Mixed, func(r *result) string { return count(r.rate) }},
	{"  MB/s", rig.Mixed, func(r *result) string { return fmt.Sprintf("%.0f", r.mbps) }},
	{"  allocations/message", rig.Mixed, func(r *result) string { return allocs(r.allocs) }},
	{"  host RSS, MB", rig.Mixed, func(r *result) string { return fmt.Sprintf("%.1f", r.rssMB) }},
	{"lines of 4 MB, MB/s", rig.Big, func(r *result) string { return fmt.Sprintf("%.0f", r.mbps) }},
	{"  host RSS, MB", rig.Big, func(r *result) string { return fmt.Sprintf("%.1f", r.rssMB) }},
	{"hooks/s, one at a time", rig.Hooks, func(r *result) string { return count(r.rate) }},
	{"hooks/s, 16 at a time", rig.Hooks16, func(r *result) string { return count(r.rate) }},
	{"permission answers/s", rig.Permissions, func(r *result) string { return count(r.rate) }},
	{"MCP tool calls/s", rig.MCP, func(r *result) string { return count(r.rate) }},
	{"CLI death known, median ms", rig.Death, func(r *result) string { m, _, _ := r.deathTimes(); return millis(m) }},
	{"  worst ms", rig.Death, func(r *result) string { _, w, _ := r.deathTimes(); return millis(w) }},
	{"  reports with exit code", rig.Death, func(r *result) string {
		_, _, n := r.deathTimes()
		return fmt.Sprintf("%d/%d", n, len(r.deaths))
	}},
}

func count(rate float64) string {
	switch {
	case rate >= 1e6:
		return fmt.Sprintf("%.2fM", rate/1e6)
	case rate >= 1e5:
		return fmt.Sprintf("%.0fk", rate/1e3)
	}
	return fmt.Sprintf("%.1fk", rate/1e3)
}

func allocs(n float64) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", n)
}

func millis(ms float64) string {
	if limit := rig.DeathCap.Seconds() * 1e3; ms >= limit*0.95 {
		return fmt.Sprintf("over %.0f", limit)
	}
	return fmt.Sprintf("%.1f", ms)
}

func newTable(s settings, all []*participant) *table {
	t := &table{header: []string{""}}
	for _, p := range all {
		t.header = append(t.header, p.name)
		if p.absent != nil {
			t.note("%s could not be built: %v", p.name, p.absent)
		}
	}
	for _, f := range figures {
		row := []string{f.label}
		for _, p := range all {
			row = append(row, t.cell(p, f))
		}
		t.rows = append(t.rows, row)
	}
	t.standingNotes(s)
	t.checks = checks(all)
	return t
}

// cell is a figure with the marks of its notes.
func (t *table) cell(p *participant, f figure) string {
	r := p.results[f.scenario]
	switch {
	case r == nil:
		return "-"
	case !r.hasFigures():
		return "failed" + t.note("%s, %s: %v", p.name, f.scenario, r.err)
	case r.failed > 0:
		return f.cell(r) + t.note("%s, %s: %d of %d runs failed: %v", p.name, f.scenario, r.failed, r.runs, r.err)
	case r.note != "":
		return f.cell(r) + t.note("%s, %s: %s", p.name, f.scenario, r.note)
	}
	return f.cell(r)
}

// note adds a note unless it is there already, and returns its mark.
func (t *table) note(format string, args ...any) string {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	for i, n := range t.notes {
		if n == text {
			return fmt.Sprintf(" [%d]", i+1)
		}
	}
	t.notes = append(t.notes, text)
	return fmt.Sprintf(" [%d]", len(t.notes))
}

func (t *table) standingNotes(s settings) {
	t.note("Streams of %d messages, %d lines of 4 MB, %d hooks and permission questions, %d MCP calls, %d deaths. Rates are the best of %d runs, memory the largest. %s on %d cores, %s without cgo, Node %s.",
		s.messages, s.bigLines, s.roundTrips, s.calls, s.deaths, s.repeats, runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU(), runtime.Version(), nodeVersion())
	t.note("Text: assistant messages of 650 bytes. Mixed: partial messages, assistant messages with thinking, text and a file to write, tool results of 18 KB; 1.5 KB on average. Lazy and peek do not look inside.")
	t.note("A death is an exit with code 7 before the handshake is answered, between two lines, inside a line, or while a hook is at work. A client is given %v to know.", rig.DeathCap)
	t.note("Not measured here, because it cannot be installed: the official Python SDK 0.2.143. An earlier measurement on two cores had it at 37k text and 50k mixed messages/s, 36 MB, 7.3k hooks/s (14.8k at 16), beside 127k, 190k, 85-107 MB and 13.4k (37.8k) for the TypeScript SDK 0.3.325.")
}

func nodeVersion() string {
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		return "not installed"
	}
	return strings.TrimSpace(string(out))
}
