// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/tool"
)

// Events writes the events of the log as lines of JSON, each with its position.
func Events(w io.Writer, r *record.Run) error {
	for entry, err := range r.Entries() {
		if err != nil {
			return err
		}
		e := entry.Event
		e.Position = event.Position{Entry: entry.Pos}
		if err := line(w, e); err != nil {
			return err
		}
	}
	return nil
}

// Transcript writes what the agent wrote down, as lines of JSON.
func Transcript(w io.Writer, r *record.Run) error {
	for entry, err := range r.Transcript() {
		if err != nil {
			return err
		}
		if err := line(w, entry); err != nil {
			return err
		}
	}
	return nil
}

func line(w io.Writer, v any) error {
	text, err := plainjson.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Prompt writes the text that the agent was given.
func Prompt(w io.Writer, d *record.Details) error {
	_, err := io.WriteString(w, safetext.Lines(strings.TrimRight(d.Prompt, "\n"))+"\n")
	return err
}

// Cost writes the consumption by model.
func Cost(w io.Writer, d *record.Details) error {
	p := &page{w: w}
	p.printf("%-32s %7s %12s %12s %12s %12s %10s\n", "model", "calls", "input", "from cache", "to cache", "output", "cost")
	var sum float64
	for _, m := range d.Models {
		price := safetext.Dollars(m.CostUSD)
		if m.Unpriced {
			price = "unknown"
		}
		p.printf("%-32s %7d %12s %12s %12s %12s %10s\n", safetext.Line(m.Model), m.Calls, safetext.Thousands(m.Input), safetext.Thousands(m.CacheRead),
			safetext.Thousands(m.CacheWrite), safetext.Thousands(m.Output), price)
		sum += m.CostUSD
	}
	p.printf("%-32s %75s\n", "all", safetext.Dollars(sum))
	return p.err
}

// Decisions writes each decision about a call, with its chain of policies.
func Decisions(w io.Writer, r *record.Run, d *record.Details) error {
	p := &page{w: w}
	for _, c := range d.Calls {
		name, _ := tool.ShortName(c.Name)
		p.printf("%s\n", safetext.Line(fmt.Sprintf("%s  %s", name, Subject(r, c))))
		for _, made := range c.Decisions {
			text := fmt.Sprintf("%s by %s", made.Verdict, made.Policy)
			if made.Remembered {
				text += ", as answered before"
			} else if made.Asked {
				text += ", as answered"
			}
			if made.Reason != "" {
				text += ": " + made.Reason
			}
			p.printf("  %s\n", safetext.Line(text))
			p.chain(made.Chain)
		}
		if len(c.Decisions) == 0 {
			p.printf("  no decision was recorded: nothing judged the call\n")
		}
	}
	return p.err
}

// chain writes the verdict of each policy, in the order in which they were asked.
func (p *page) chain(all []event.PolicyVerdict) {
	for _, v := range all {
		text := v.Policy + " abstained"
		if v.Verdict != nil {
			text = v.Policy + ": " + v.Verdict.String()
		}
		if v.Tool != "" {
			text += ", as " + v.Tool
		}
		if v.Again {
			text += ", of the new input"
		}
		if v.Reason != "" {
			text += " (" + v.Reason + ")"
		}
		p.printf("    %s\n", safetext.Line(text))
	}
}

// Compare writes where two runs part.
func Compare(w io.Writer, a, b *record.Run, c *record.Comparison) error {
	p := &page{w: w}
	p.printf("%-*s%-36s  %s\n", labelWidth, "", "A", "B")
	both := func(label, x, y string) {
		mark := "  "
		if x != y {
			mark = "≠ "
		}
		p.printf("%-*s%s%-36s%s\n", labelWidth, label, "", safetext.Line(x), mark+safetext.Line(y))
	}
	both("run", a.ID, b.ID)
	both("status", State(a), State(b))
	both("agent", agentName(a), agentName(b))
	both("version", c.DetailsA.AgentVersion, c.DetailsB.AgentVersion)
	both("model", c.DetailsA.Model, c.DetailsB.Model)
	both("isolation", isolation(c.DetailsA), isolation(c.DetailsB))
	both("cost", sumOf(c.DetailsA), sumOf(c.DetailsB))
	both("calls", fmt.Sprint(len(c.DetailsA.Calls)), fmt.Sprint(len(c.DetailsB.Calls)))
	p.diff("The prompt", c.Prompt)
	p.diff("The settings", c.Settings)
	p.tools(c)
	p.parting(a, b, c)
	p.diff("The answer", c.Answer)
	p.diff("The changes in the workspace", c.Changes)
	return p.err
}

func sumOf(d *record.Details) string {
	var usd float64
	for _, m := range d.Models {
		usd += m.CostUSD
	}
	return safetext.Dollars(usd)
}

func (p *page) diff(what, text string) {
	if text == "" {
		p.printf("\n%s: the same\n", what)
		return
	}
	p.printf("\n%s: different\n", what)
	for line := range strings.Lines(text) {
		p.printf("  %s\n", safetext.Line(strings.TrimRight(line, "\n")))
	}
}

func (p *page) tools(c *record.Comparison) {
	if len(c.OnlyA)+len(c.OnlyB) == 0 {
		p.printf("\nThe tools: the same\n")
		return
	}
	p.printf("\nThe tools: different\n")
	for _, side := range []struct {
		name  string
		tools []string
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		if len(side.tools) > 0 {
			p.printf("  only %s: %s\n", side.name, safetext.Line(strings.Join(side.tools, ", ")))
		}
	}
}

// parting writes the first call that differs.
func (p *page) parting(a, b *record.Run, c *record.Comparison) {
	if c.A == nil && c.B == nil {
		p.printf("\nThe calls: the same\n")
		return
	}
	p.printf("\nThe calls: different after %s\n", safetext.Plural(c.Same, "call"))
	for _, side := range []struct {
		name string
		run  *record.Run
		call *record.Call
	}{{"A", a, c.A}, {"B", b, c.B}} {
		if side.call == nil {
			p.printf("  %s: no more calls\n", side.name)
			continue
		}
		name, _ := tool.ShortName(side.call.Name)
		p.printf("  %s: %s\n", side.name, safetext.Line(fmt.Sprintf("%s  %s  %s", name, Subject(side.run, *side.call), outcome(*side.call))))
		if denied := side.call.Denied(); denied != nil {
			p.printf("     %s\n", safetext.Line(by(*denied)))
		}
	}
}

// Diff writes the patch of the changes in the workspace.
func Diff(w io.Writer, r *record.Run) error {
	text, err := r.Diff()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Session writes the state that the log makes at its end, as JSON.
func Session(w io.Writer, r *record.Run) error {
	s, _, err := r.SessionAt(0)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // it is in memory
	state := map[string]any{}
	for name, latest := range record.Slices(s) {
		state[name] = latest
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(state)
}
