// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/visible"
)

// done is the summary, after the calls that did not come to an end.
func (l *lines) done(e event.Event, p event.Done) []row {
	var out []row
	for _, c := range l.order {
		r := row{at: l.since(e), deep: c.deep, what: c.what, subject: c.subject, mark: "stopped", tone: toneBad}
		if c.denied != nil {
			r.mark, r.because = "denied", c.denied.Reason
		}
		out = append(out, r)
	}
	l.order, l.writing = nil, ""
	figures := append([]string{wording.Plural(p.Usage.ToolUses, "call")}, l.spent(p.Usage)...)
	figures = append(figures, span(l.since(e))) // of the whole run; an agent counts only what it calls work
	r := row{at: l.since(e), what: "done", subject: string(p.Status), because: l.why(p), figures: strings.Join(figures, "  "), tone: toneBad}
	if p.Status == event.DoneSuccess {
		r.tone = toneGood
	}
	return append(out, r)
}

// why says why a run did not succeed, unless a row has said it.
func (l *lines) why(p event.Done) string {
	switch p.Status {
	case event.DoneError:
		if why := wording.FirstLine(wording.Text(p.Result)); why != wording.FirstLine(l.failure) {
			return why
		}
	case event.DoneInterrupted:
		if p.Reason != context.Canceled.Error() { // which says no more than that
			return wording.Text(p.Reason)
		}
	case event.DoneMaxTurns:
		return "the limit of turns is reached"
	case event.DoneMaxBudget:
		return "the budget is spent"
	}
	return ""
}

// writeAnswer writes the answer of a run that has one.
func (l *lines) writeAnswer(w io.Writer, done event.Done) {
	if done.Status != event.DoneSuccess {
		return
	}
	var b bytes.Buffer
	if l.opts.Answer == nil || l.opts.Answer(&b, done) != nil {
		b.Reset()
		b.WriteString(answerText(done))
	}
	text := strings.TrimRight(visible.Lines(strings.ReplaceAll(b.String(), "\r\n", "\n")), "\n")
	if text == "" {
		return
	}
	if !l.opts.Quiet {
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, text)
}

// answerText is a structured answer as JSON that can be read, or the text.
func answerText(done event.Done) string {
	var b bytes.Buffer
	if len(done.Output) > 0 && json.Indent(&b, done.Output, "", "  ") == nil {
		return b.String()
	}
	return cmp.Or(string(done.Output), done.Result)
}
