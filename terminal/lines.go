// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/recent"
	"github.com/drover-agents/drover/internal/safetext"
)

// lines makes rows of events when their subject is finished, and keeps the status. It is for one goroutine at a time.
type lines struct {
	opts  Options
	calls recent.Map[event.CallID, *call]
	tasks map[string]*task
	order []*call // those that are under way, in the order in which they began
	// writing is the text that the model is writing, or its end.
	writing string
	usage   event.Usage
	failure string // the last error that was shown
	// unfinished is what the last completion check found missing.
	unfinished string
	latest     time.Duration
	// held is the last text of the main agent. It is shown when something follows: the last one is the answer, which the
	// view prints in full.
	held *row
}

const shownCalls = 4096

func newLines(opts Options) *lines {
	return &lines{opts: opts, calls: recent.Map[event.CallID, *call]{Size: shownCalls}, tasks: map[string]*task{}}
}

// since is the time of an event, from the start. A late event, as of the isolation, is not before one already shown.
func (l *lines) since(e event.Event) time.Duration {
	at := e.Time.Sub(l.opts.started)
	if e.Time.IsZero() {
		at = time.Since(l.opts.started)
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

// rows are the finished rows that an event makes, and the text that has waited for it.
func (l *lines) rows(e event.Event) []row {
	if done, ok := e.Payload.(event.Done); ok && l.held != nil && l.isAnswer(l.held.subject, done) {
		l.held = nil
	}
	made := l.made(e)
	switch e.Payload.(type) {
	case event.ToolCall, event.TextDelta: // the agent continues
	default:
		if len(made) == 0 {
			return nil
		}
	}
	out := append(l.flush(), made...)
	if _, isText := e.Payload.(event.Text); isText && l.depth(e) == 0 {
		last := len(out) - 1
		l.held = new(out[last])
		out = out[:last]
	}
	return out
}

// isAnswer reports whether a text is the answer that the view prints.
func (l *lines) isAnswer(text string, done event.Done) bool {
	return done.Status == event.DoneSuccess && l.opts.Answer == nil && strings.TrimSpace(text) == strings.TrimSpace(answerText(done))
}

// flush is the row of the text that waits.
func (l *lines) flush() []row {
	if l.held == nil {
		return nil
	}
	r := *l.held
	l.held = nil
	return []row{r}
}

// made are the rows of an event. Kinds that are not known make none.
func (l *lines) made(e event.Event) []row {
	r := row{at: l.since(e), deep: l.depth(e)}
	switch p := e.Payload.(type) {
	case event.Init:
		r.what, r.subject, r.figures = "agent", joinWords(e.Agent, p.Model), safetext.Plural(len(p.Tools), "tool")
	case event.Text:
		l.writing = ""
		r.what, r.subject, r.rows = "model", p.Content, textRows
		if r.deep == 0 {
			l.wrote(p.Content)
		}
	case event.TextDelta:
		if l.held != nil {
			l.writing = ""
		}
		l.wrote(p.Delta)
		return nil
	case event.Thinking:
		r.what, r.subject, r.rows, r.tone = "thinking", p.Summary, thinkingRows, toneQuiet
	case event.ToolCall:
		return l.begin(e, p)
	case event.PermissionRequest:
		l.questioned(e, p)
		return nil
	case event.Decision:
		l.decided(e, p)
		return nil
	case event.ToolResult:
		return l.end(e, p)
	case event.ToolProgress:
		l.progressed(p)
		return nil
	case event.ToolLog:
		r.what, r.subject, r.figures, r.deep = "log", p.Message, p.Level, l.deepOf(p.ID)
	case event.Error:
		l.failure = advice.Render(l.opts.text(p.Message), l.opts.reworded(p.Next))
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

// doing is the current activity: a tool with its subject, or the model with its text.
func (l *lines) doing() (what, subject string) {
	if len(l.order) > 0 {
		c := l.order[len(l.order)-1]
		return c.what, strings.TrimSpace(c.subject + " " + c.progress)
	}
	return "model", ""
}

// interrupted names in a line the calls that are being stopped.
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

// spent are the figures of a usage; figures that were not reported are not shown.
func (l *lines) spent(u event.Usage) []string {
	var out []string
	if t := u.Tokens; t != nil {
		text := safetext.Thousands(u.InputTokens()+u.OutputTokens()) + " tok"
		if t.Coverage == event.CoveragePartial {
			text = "over " + text
		}
		if read := t.Totals.Input.CacheRead; read != nil && *read > 0 {
			text += " (" + safetext.Thousands(*read) + " cached)"
		}
		out = append(out, text)
	}
	if c := u.Cost; c != nil {
		text := safetext.Dollars(c.USD)
		if l.opts.MaxUSD > 0 {
			text += " of " + safetext.Dollars(l.opts.MaxUSD)
		}
		out = append(out, text)
	}
	return out
}

func joinWords(words ...string) string {
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return strings.Join(words, ": ")
}

// status is the current activity in one line: the tool or the model, the time, and the cost.
func (l *lines) status(room int, halting bool, elapsed time.Duration) string {
	what, subject := l.doing()
	if halting {
		what = "stopping " + what
	}
	figures := strings.Join(append([]string{safetext.Clock(elapsed)}, l.spent(l.usage)...), "  ")
	head := "  " + pad(Clip(what, whatMost), whatColumns) + "  "
	left := room - columns(head) - 2 - columns(figures)
	if left < leastSubject {
		return cut(strings.TrimRight(head, " ")+"  "+figures, room)
	}
	if subject == "" && l.writing != "" {
		subject = clipStart(strings.Join(strings.Fields(l.writing), " "), left)
	}
	return head + pad(Clip(subject, left), left) + "  " + figures
}

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
	figures := append([]string{safetext.Plural(p.Usage.ToolUses, "call")}, l.spent(p.Usage)...)
	figures = append(figures, safetext.Span(l.since(e))) // of the whole run; an agent counts only what it calls work
	r := row{at: l.since(e), what: "done", subject: string(p.Status), because: l.why(p), figures: strings.Join(figures, "  "), tone: toneBad}
	if p.Status == event.DoneSuccess {
		r.tone = toneGood
	}
	return append(append(out, r), resumeRow(r, p)...)
}

// resumeRow names the token with which the conversation goes on.
func resumeRow(r row, p event.Done) []row {
	if p.ResumeToken == "" {
		return nil
	}
	return []row{{at: r.at, what: "continue", subject: "--resume " + p.ResumeToken, rows: 2}}
}

// why is the reason why a run did not succeed, unless a row has shown it.
func (l *lines) why(p event.Done) string {
	switch p.Status {
	case event.DoneError:
		if why := safetext.FirstLine(l.opts.text(p.Result)); why != safetext.FirstLine(l.failure) {
			return why
		}
	case event.DoneInterrupted:
		if p.Reason != context.Canceled.Error() { // which has no more details
			return l.opts.text(p.Reason)
		}
	case event.DoneMaxTurns:
		return "the limit of turns is reached"
	case event.DoneMaxBudget:
		return "the budget is spent"
	}
	return ""
}

func (l *lines) writeAnswer(w io.Writer, done event.Done) {
	if done.Status != event.DoneSuccess {
		return
	}
	var b bytes.Buffer
	if l.opts.Answer == nil || l.opts.Answer(&b, done) != nil {
		b.Reset()
		b.WriteString(answerText(done))
	}
	text := strings.TrimRight(safetext.Lines(strings.ReplaceAll(b.String(), "\r\n", "\n")), "\n")
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
		return strings.ReplaceAll(b.String(), "\x7f", `\u007f`) // the escape of JSON, not the one of safetext
	}
	return cmp.Or(string(done.Output), done.Result)
}

func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000/1000)
}
