// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/recent"
)

// lines makes rows of events, each when what it tells is finished, and knows what is going on in
// between. It is used by one goroutine at a time.
type lines struct {
	opts  displayOptions
	calls recent.Map[event.CallID, *call]
	tasks map[string]*task
	order []*call // those that are under way, in the order in which they began
	// writing is the text that the model is writing, or its end.
	writing string
	usage   event.Usage
	failure string // the last error that was shown
	latest  time.Duration
}

// shownCalls is how many calls the view remembers.
const shownCalls = 4096

func newLines(opts displayOptions) *lines {
	return &lines{opts: opts, calls: recent.Map[event.CallID, *call]{Size: shownCalls}, tasks: map[string]*task{}}
}

// since is the time of an event, from the start. One that is told late, as that of the walls is, is not
// before what was told already.
func (l *lines) since(e event.Event) time.Duration {
	at := e.Time.Sub(l.opts.Started)
	if e.Time.IsZero() {
		at = time.Since(l.opts.Started)
	}
	l.latest = max(l.latest, at)
	return l.latest
}

// How many lines of a text are shown. The answer is shown in full in the end.
const (
	textRows     = 4
	thinkingRows = 2
	errorRows    = 6
)

// rows are the finished rows that an event makes. Kinds that are not known make none.
func (l *lines) rows(e event.Event) []row {
	r := row{at: l.since(e), deep: l.depth(e)}
	switch p := e.Payload.(type) {
	case event.Init:
		r.what, r.subject, r.figures = "agent", joinWords(e.Agent, p.Model), wording.Plural(len(p.Tools), "tool")
	case event.Text:
		l.writing = ""
		r.what, r.subject, r.rows = "model", p.Content, textRows
	case event.TextDelta:
		l.wrote(p.Delta)
		return nil
	case event.Thinking:
		r.what, r.subject, r.rows, r.tone = "thinking", p.Summary, thinkingRows, toneQuiet
	case event.ToolCall:
		return l.begin(e, p)
	case event.Decision:
		l.decided(p)
		return nil
	case event.ToolResult:
		return l.end(e, p)
	case event.ToolProgress:
		l.progressed(p)
		return nil
	case event.ToolLog:
		r.what, r.subject, r.figures, r.deep = "log", p.Message, p.Level, l.deepOf(p.ID)
	case event.Error:
		l.failure = wording.Text(p.Message)
		r.what, r.subject, r.rows, r.tone = "error", joinWords(p.Code, l.failure), errorRows, toneBad
		if p.Recoverable {
			r.what, r.subject, r.tone = "trouble", l.failure, toneNone
		}
	case event.Done:
		return l.done(e, p)
	default:
		return l.notice(r, e.Payload)
	}
	if strings.TrimSpace(r.subject) == "" {
		return nil
	}
	return append(l.parentRows(e), r)
}

// wrote takes a part of the text that is being written. Only its end can be shown.
func (l *lines) wrote(delta string) {
	const most = 4096
	l.writing += delta
	if len(l.writing) > 2*most {
		l.writing = l.writing[len(l.writing)-most:]
	}
}

// depth is how many subagents an event is inside of.
func (l *lines) depth(e event.Event) int {
	if e.ParentToolUseID == "" {
		return 0
	}
	return l.deepOf(e.ParentToolUseID) + 1
}

// call is a call that is under way, or one of the last that have ended, or nil.
func (l *lines) call(id event.CallID) *call {
	for _, c := range slices.Backward(l.order) {
		if c.id == id {
			return c
		}
	}
	c, _ := l.calls.Get(id)
	return c
}

func (l *lines) deepOf(id event.CallID) int {
	if c := l.call(id); c != nil {
		return c.deep
	}
	return 0
}

// parentRows shows that a call has begun before something that happens inside it.
func (l *lines) parentRows(e event.Event) []row {
	c := l.call(e.ParentToolUseID)
	if c == nil || c.announced {
		return nil
	}
	c.announced = true
	return []row{{at: c.begun, deep: c.deep, what: c.what, subject: c.subject, mark: c.mark(), figures: "begins"}}
}

// doing says what goes on: a tool with its subject, or the model with what it writes.
func (l *lines) doing() (what, subject string) {
	if len(l.order) > 0 {
		c := l.order[len(l.order)-1]
		return c.what, strings.TrimSpace(c.subject + " " + c.progress)
	}
	return "model", ""
}

// interrupted says in a line what is being stopped.
func (l *lines) interrupted() string {
	names := make([]string, 0, len(l.order))
	for _, c := range l.order {
		names = append(names, strings.TrimSuffix(c.what+": "+c.subject, ": "))
	}
	if len(names) == 0 {
		names = []string{"the model"}
	}
	return "stopping " + strings.Join(names, ", ") + " ..."
}

// spent are the figures of a usage; what nobody reported is not shown.
func (l *lines) spent(u event.Usage) []string {
	var out []string
	if t := u.Tokens; t != nil {
		text := wording.Thousands(u.InputTokens()+u.OutputTokens()) + " tok"
		if t.Coverage == event.CoveragePartial {
			text = "over " + text
		}
		out = append(out, text)
	}
	if c := u.Cost; c != nil {
		text := wording.Dollars(c.USD)
		if l.opts.MaxUSD > 0 {
			text += " of " + wording.Dollars(l.opts.MaxUSD)
		}
		out = append(out, text)
	}
	return out
}

func joinWords(words ...string) string {
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return strings.Join(words, ": ")
}

// span writes a duration with the figures that matter.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond && d%time.Millisecond != 0:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return clock(d)
}

// clock writes whole seconds: "7 s", "3:05", "1:03:05".
func clock(d time.Duration) string {
	s := int(max(0, d).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// size writes a number of bytes.
func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000/1000)
}
