// SPDX-License-Identifier: Apache-2.0

// Package runs shows kept runs to people.
package runs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/terminal"
	"github.com/drover-agents/drover/tool"
)

// A page is written line by line. The first error of the writer ends it.
type page struct {
	w     io.Writer
	width int // of a line; 0 means no limit
	err   error
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// Visible returns a writer onto w that escapes control characters. Each write must have whole characters.
func Visible(w io.Writer) io.Writer { return visible{w} }

type visible struct{ w io.Writer }

func (v visible) Write(p []byte) (int, error) {
	_, err := io.WriteString(v.w, safetext.Lines(string(p)))
	return len(p), err
}

// labelWidth is the width of the labels at the left, with the space behind them.
const labelWidth = 11

// maxWords is how many characters of a prompt are shown.
const maxWords = 400

// field writes a label and a text of one line. An empty text writes nothing.
func (p *page) field(label, text string) {
	if text != "" {
		p.printf("%-*s%s\n", labelWidth, label, p.cut(text, labelWidth))
	}
}

// text writes a label and a text of several lines.
func (p *page) text(label, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		p.printf("%-*s%s\n", labelWidth, label, safetext.Line(strings.TrimRight(line, "\n")))
		label = ""
	}
}

func (p *page) cut(text string, taken int) string {
	if p.width > taken {
		return terminal.Clip(text, p.width-taken)
	}
	return safetext.Line(text)
}

// ShortID is the beginning of the id of a run, which is enough to find it.
func ShortID(id string) string { return id[:min(8, len(id))] }

// State is how a run ended, in a word.
func State(r *record.Run) string {
	if r.End != nil {
		return string(r.End.Status)
	}
	return string(r.State)
}

// Ago is how long something is over.
func Ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return safetext.Plural(int(d.Minutes()), "minute") + " ago"
	case d < 48*time.Hour:
		return safetext.Plural(int(d.Hours()), "hour") + " ago"
	}
	return safetext.Plural(int(d.Hours()/24), "day") + " ago"
}

// Show writes what people want to know of a run.
func Show(w io.Writer, r *record.Run, d *record.Details, now time.Time, width int) error {
	p := &page{w: w, width: width}
	p.field("run", r.ID)
	p.field("status", status(r, d, now))
	p.field("agent", strings.Join(strings.Fields(strings.Join([]string{agentName(r), d.AgentVersion, d.Model}, " ")), " "))
	p.field("folder", r.Folder)
	p.field("prompt", d.Name+": "+safetext.FirstWords(d.Prompt, maxWords))
	p.field("isolation", isolation(d))
	p.field("cost", cost(d))
	p.calls(r, d)
	p.field("files", strings.Join(d.Files, ", "))
	for _, e := range d.Errors {
		p.text("error", strings.TrimPrefix(e.Code+": ", ": ")+e.Message)
	}
	if r.End != nil && r.End.Error != "" && !slices.ContainsFunc(d.Errors, func(e event.Error) bool { return e.Message == r.End.Error }) {
		p.text("error", r.End.Error)
	}
	if r.End != nil {
		p.text("answer", answer(r.End))
		p.text("problem", r.End.Problem)
	}
	p.field("continue", next(r))
	return p.err
}

func agentName(r *record.Run) string {
	if r.Name != "" {
		return r.Name + " (" + r.Agent + ")"
	}
	return r.Agent
}

func status(r *record.Run, d *record.Details, now time.Time) string {
	parts := []string{State(r)}
	switch {
	case r.End != nil:
		parts = append(parts, safetext.Span(r.End.Duration))
	case r.State == record.Lost:
		parts = append(parts, "its program ended without the end of the run")
	}
	return strings.Join(append(parts, "began "+Ago(now.Sub(r.Began))), ", ") + " (" + r.Began.Local().Format("2006-01-02 15:04:05") + ")"
}

func isolation(d *record.Details) string {
	if len(d.Missing) > 0 {
		return d.Isolation + "; missing: " + strings.Join(d.Missing, ", ")
	}
	return d.Isolation
}

func cost(d *record.Details) string {
	var sum record.ModelUse
	for _, m := range d.Models {
		sum.Calls += m.Calls
		sum.Input += m.Input
		sum.Output += m.Output
		sum.CacheRead += m.CacheRead
		sum.CostUSD += m.CostUSD
		sum.Unpriced = sum.Unpriced || m.Unpriced
	}
	if len(d.Models) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s for %s tokens in %s", safetext.Dollars(sum.CostUSD), safetext.Thousands(sum.Input+sum.Output), safetext.Plural(sum.Calls, "model call"))
	if sum.CacheRead > 0 {
		text += ", " + safetext.Thousands(sum.CacheRead) + " of them from a cache"
	}
	if sum.Unpriced {
		text += "; a part has no known price"
	}
	return text
}

// calls lists the calls, each with why it was denied.
func (p *page) calls(r *record.Run, d *record.Details) {
	if len(d.Calls) == 0 {
		return
	}
	times := map[string]int{}
	for _, c := range d.Calls {
		name, _ := tool.ShortName(c.Name)
		times[name]++
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(times)) {
		names = append(names, fmt.Sprintf("%s %d", name, times[name]))
	}
	p.field("calls", safetext.Plural(len(d.Calls), "call")+": "+strings.Join(names, ", "))
	for _, c := range d.Calls {
		p.call(r, c)
	}
}

func (p *page) call(r *record.Run, c record.Call) {
	name, _ := tool.ShortName(c.Name)
	p.printf("%s\n", p.cut(fmt.Sprintf("%*.1f  %-10s %s  %s", labelWidth-2, c.Began.Sub(r.Began).Seconds(), outcome(c), name, Subject(r, c)), 0))
	if denied := c.Denied(); denied != nil {
		p.printf("%*s%s\n", labelWidth+12, "", p.cut(by(*denied), labelWidth+12))
	} else if c.Result != nil && c.Result.Failure != nil {
		p.printf("%*s%s\n", labelWidth+12, "", p.cut(c.Result.Failure.Message, labelWidth+12))
	}
}

// Subject is what a call is about.
func Subject(r *record.Run, c record.Call) string {
	return catalogue.Tools().Subject(c.Name, c.Input, r.Folder)
}

func outcome(c record.Call) string {
	switch {
	case c.Denied() != nil:
		return "denied"
	case c.Result == nil:
		return "no result"
	}
	return string(c.Result.Status)
}

// by is why a call was denied, and by which policy.
func by(d event.Decision) string {
	return cmp.Or(d.Policy, "no policy") + ": " + cmp.Or(d.Reason, "no reason is given")
}

func answer(end *record.End) string {
	if len(end.Output) == 0 {
		return end.Text
	}
	var b bytes.Buffer
	if json.Indent(&b, end.Output, "", "  ") != nil {
		return string(end.Output)
	}
	return b.String()
}

// next is the command that goes on with a run, empty for one that drover run has not started here.
func next(r *record.Run) string {
	if r.State == record.Running || r.Imported != "" || len(r.Command) < 2 || r.Command[1] != "run" {
		return ""
	}
	return "drover runs resume " + ShortID(r.ID)
}
