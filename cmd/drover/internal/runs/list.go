// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/record/index"
	"github.com/drover-agents/drover/terminal"
)

// List writes a line for each run. width is that of the terminal, or 0.
func List(w io.Writer, rows []index.Row, now time.Time, width int) error {
	p := &page{w: w, width: width}
	p.printf("%-8s  %-13s  %-15s  %7s  %8s  %-14s  %s\n", "run", "status", "began", "time", "cost", "agent", "folder and prompt")
	for _, r := range rows {
		took, price := "", ""
		if r.Duration > 0 {
			took = safetext.Span(r.Duration)
		}
		if r.CostUSD != nil {
			price = safetext.Dollars(*r.CostUSD)
		}
		agent := terminal.Clip(cmp.Or(r.Name, r.Agent), 14)
		p.printf("%s\n", strings.TrimRight(p.cut(fmt.Sprintf("%-8s  %-13s  %-15s  %7s  %8s  %-14s  %s  %s", Name(r), stateOf(r), Ago(now.Sub(r.Began)), took, price, agent,
			baseName(r.Folder), r.Words), 0), " "))
	}
	return p.err
}

// Name is what finds a run of a list.
func Name(r index.Row) string {
	if r.Run == "" { // an earlier demo, which is not found by a part of its name
		return r.ID
	}
	return ShortID(r.ID)
}

// maxDescription is how many columns a description has.
const maxDescription = 60

// Describe is a run in a few words, for one who chooses among several.
func Describe(r index.Row, now time.Time) string {
	return terminal.Clip(safetext.Line(fmt.Sprintf("%s, %s, %s: %s", Ago(now.Sub(r.Began)), stateOf(r), cmp.Or(r.Name, r.Agent), r.Words)), maxDescription)
}

func stateOf(r index.Row) string {
	if r.Status != "" {
		return string(r.Status)
	}
	return string(r.State)
}

func baseName(folder string) string {
	return folder[strings.LastIndexAny(folder, `/\`)+1:]
}

// ListJSON writes a line of JSON for each run.
func ListJSON(w io.Writer, rows []index.Row) error {
	for _, r := range rows {
		fields := map[string]any{
			"id": r.ID, "state": r.State, "status": r.Status, "agent": r.Agent, "name": r.Name, "prompt": r.Prompt, "words": r.Words, "folder": r.Folder,
			"model": r.Model, "began": r.Began.UTC().Format(time.RFC3339Nano), "durationMs": r.Duration.Milliseconds(), "turns": r.Turns, "error": r.Error,
			"isolation": r.Isolation, "path": r.Path, "costUsd": r.CostUSD, "inputTokens": r.InputTokens, "outputTokens": r.OutputTokens,
		}
		if !r.Ended.IsZero() {
			fields["ended"] = r.Ended.UTC().Format(time.RFC3339Nano)
		}
		if err := line(w, fields); err != nil {
			return err
		}
	}
	return nil
}

// Costs writes what groups of runs cost.
func Costs(w io.Writer, by string, sums []index.CostRow) error {
	p := &page{w: w}
	p.printf("%10s  %6s  %14s  %12s  %s\n", "cost", "runs", "input", "output", by)
	var all float64
	unknown := 0
	for _, s := range sums {
		p.printf("%10s  %6s  %14s  %12s  %s\n", safetext.Dollars(s.CostUSD), safetext.Thousands(int64(s.Runs)), safetext.Thousands(s.Input), safetext.Thousands(s.Output), safetext.Line(s.Key))
		all += s.CostUSD
		unknown += s.Unknown
	}
	p.printf("%10s  in all\n", safetext.Dollars(all))
	if unknown > 0 {
		p.printf("%s of unknown cost\n", safetext.Plural(unknown, "run"))
	}
	return p.err
}

// CostJSON writes a line of JSON for each group.
func CostJSON(w io.Writer, by string, sums []index.CostRow) error {
	for _, s := range sums {
		err := line(w, map[string]any{by: s.Key, "runs": s.Runs, "unknown": s.Unknown, "costUsd": s.CostUSD, "inputTokens": s.Input, "outputTokens": s.Output})
		if err != nil {
			return err
		}
	}
	return nil
}

// Answer writes the rows of a query in columns.
func Answer(w io.Writer, a index.Answer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	var cells []string
	for _, name := range a.Columns {
		cells = append(cells, safetext.Line(name))
	}
	_, err := fmt.Fprintln(t, strings.Join(cells, "\t"))
	for _, row := range a.Rows {
		cells = cells[:0]
		for _, value := range row {
			switch v := value.(type) {
			case nil:
				cells = append(cells, "-")
			case []byte:
				cells = append(cells, safetext.Line(string(v)))
			default:
				cells = append(cells, safetext.Line(fmt.Sprint(v)))
			}
		}
		if err == nil {
			_, err = fmt.Fprintln(t, strings.Join(cells, "\t"))
		}
	}
	if err != nil {
		return err
	}
	return t.Flush()
}

// Tables writes the tables of the database and their columns.
func Tables(w io.Writer, tables []index.Table) error {
	p := &page{w: w}
	for i, t := range tables {
		if i > 0 {
			p.printf("\n")
		}
		p.printf("%s: %s\n", t.Name, t.About)
		for _, c := range t.Columns {
			p.printf("  %-16s %-8s %s\n", c.Name, c.Type, c.About)
		}
	}
	return p.err
}
