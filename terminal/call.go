// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/tool"
)

// notYet marks an answer that was sent back.
const notYet = "not yet"

type call struct {
	id            event.CallID
	what, subject string
	ours          bool
	answer        bool // it hands over the structured answer
	deep          int
	begun         time.Duration
	announced     bool   // a row has shown that it began
	progress      string // as the call reports it
	denied        *event.Decision
	change        []string      // the lines of a diff, until its result comes
	asked         time.Duration // when a question about it began
	waited        time.Duration // how long it has waited for answers
}

func (c *call) mark() string {
	if c.ours {
		return "ours"
	}
	return ""
}

func (l *lines) begin(e event.Event, p event.ToolCall) []row {
	l.writing = ""
	const most = 4096 // bytes; no terminal is as wide, and calls are kept
	c := &call{id: p.ID, subject: l.opts.Catalogue.Subject(p.Name, p.Input, l.opts.Dir), deep: l.depth(e), begun: l.since(e), change: l.opts.changeOf(p, false)}
	if asked, ok := l.calls.Get(p.ID); ok && asked.what == "" {
		c.change = asked.change
	}
	c.subject = strings.Clone(c.subject[:min(len(c.subject), most)])
	c.what, c.ours = tool.ShortName(p.Name)
	if t := l.opts.Catalogue; t != nil && p.Name == t.AnswerTool {
		c.what, c.subject, c.answer = "answer", "in the form that was asked for", true
	}
	l.calls.Put(p.ID, c)
	l.order = append(l.order, c)
	return l.parentRows(e)
}

// showed keeps the change that was shown with a question. The question may come before its call.
func (l *lines) showed(id event.CallID, change []string) {
	c := l.call(id)
	if c == nil {
		c = &call{id: id}
		l.calls.Put(id, c)
	}
	c.change = change
}

// questioned notes that a call waits for an answer.
func (l *lines) questioned(e event.Event, p event.PermissionRequest) {
	if c := l.call(p.ID); c != nil {
		c.asked = l.since(e)
	}
}

// decided keeps why a call was denied until its result comes, and how long the answer took.
func (l *lines) decided(e event.Event, d event.Decision) {
	c := l.call(d.CallID)
	if c == nil {
		return
	}
	if d.Asked && c.asked > 0 {
		c.waited, c.asked = c.waited+l.since(e)-c.asked, 0
	}
	if d.Verdict == event.Deny {
		c.denied = &d
	}
}

func (l *lines) progressed(p event.ToolProgress) {
	c := l.call(p.ID)
	if c == nil {
		return
	}
	c.progress = fmt.Sprintf("(%g", p.Progress)
	if p.Total > 0 {
		c.progress += fmt.Sprintf(" of %g", p.Total)
	}
	c.progress = strings.TrimSpace(c.progress+" "+p.Message) + ")"
}

func (l *lines) end(e event.Event, p event.ToolResult) []row {
	c := l.call(p.ID)
	if c == nil { // a result without a call is shown too
		c = &call{deep: l.depth(e), begun: l.since(e)}
		c.what, c.ours = tool.ShortName(p.Name)
	}
	l.forget(p.ID)
	took, elapsed := p.Duration, l.since(e)-c.begun-c.waited
	if took == 0 || c.waited > 0 { // an agent may count the wait
		took = min(cmp.Or(took, elapsed), elapsed)
	}
	r := c.row(p, outputText(p.Output))
	r.at = l.since(e)
	if p.Status == event.ToolSuccess {
		r.change = c.change
	}
	c.change = nil
	if c.answer && guard.Incomplete(r.because).Missing() == l.unfinished {
		r.because = "" // the check has a row
	}
	if took > 0 && r.mark != "denied" && r.mark != notYet {
		r.took = safetext.Span(took)
	}
	return append(l.parentRows(e), r)
}

// forget takes a call off those that are under way. It is still known to what happens inside it.
func (l *lines) forget(id event.CallID) {
	l.order = slices.DeleteFunc(l.order, func(c *call) bool { return c.id == id })
}

func (c *call) row(p event.ToolResult, output string) row {
	r := row{deep: c.deep, what: c.what, subject: c.subject, mark: c.mark()}
	failure := output
	if p.Failure != nil && p.Failure.Message != "" {
		failure = p.Failure.Message
	}
	switch {
	case p.Status == event.ToolDenied || c.denied != nil:
		r.mark, r.tone, r.because = "denied", toneBad, failure
		if c.denied != nil {
			r.because = cmp.Or(withoutInstruction(c.denied.Reason), failure)
		}
		if c.answer { // the check has rejected it, and the agent continues
			r.mark = notYet
		}
	case p.Status == event.ToolCancelled:
		r.mark, r.tone = "stopped", toneBad
	case p.Status != event.ToolSuccess:
		r.mark, r.tone, r.because = "failed", toneBad, cmp.Or(failureLine(failure), "no reason given")
	case c.answer:
		r.figures = "accepted"
	default:
		r.figures = extent(output)
	}
	return r
}

// outputText is what the caller got, as text: a JSON string itself, the texts of content blocks, else the JSON.
func outputText(output json.RawMessage) string {
	var text string
	if json.Unmarshal(output, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(output, &blocks) == nil {
		var texts []string
		for _, b := range blocks {
			texts = append(texts, b.Text)
		}
		return strings.Join(texts, "\n")
	}
	return plainjson.OneLine(output)
}

// extent is a short result itself, or else how much it is.
func extent(result string) string {
	const short = 9
	result = strings.TrimSpace(result)
	n := strings.Count(result, "\n") + 1
	switch {
	case n == 1 && columns(safe(result)) <= short:
		return result
	case n == 1:
		return size(len(result))
	}
	return safetext.Plural(n, "line")
}

// failureLine is why a call has failed. The line after the exit code of a command has more details.
func failureLine(text string) string {
	first := safetext.FirstLine(text)
	_, rest, _ := strings.Cut(text, first)
	if strings.HasPrefix(first, "Exit code ") {
		return joinWords(first, safetext.FirstLine(rest))
	}
	return first
}
