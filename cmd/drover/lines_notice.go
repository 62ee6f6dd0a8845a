// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/cmd/drover/internal/payload"
	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/event"
)

// notice is the row of a kind that only one agent has, if it tells a person something.
func (l *lines) notice(r row, p event.Payload) []row {
	switch p := payload.Typed(p).(type) {
	case claudecode.Task:
		return l.task(r, p)
	case claudecode.Tokens:
		l.usage.Tokens = &event.Tokens{Coverage: event.CoverageComplete}
		l.usage.Tokens.Totals.Input.Total, l.usage.Tokens.Totals.Output.Total = p.Input, p.Output
		return nil
	case claudecode.Compaction:
		r.what, r.subject = "compact", "the conversation was summarised"
		r.figures = wording.Thousands(int64(p.TokensBefore)) + " tok"
		if p.TokensAfter != nil {
			r.figures = wording.Thousands(int64(p.TokensBefore)) + " to " + wording.Thousands(int64(*p.TokensAfter)) + " tok"
		}
	case claudecode.RateLimit:
		r.what, r.subject, r.tone = "limit", joinWords(strings.ReplaceAll(p.Type, "_", " "), strings.ReplaceAll(p.Status, "_", " ")), toneBad
		if p.Utilization != nil {
			r.figures = fmt.Sprintf("%.0f %% used", 100**p.Utilization)
		}
	default:
		return cellRow(r, p)
	}
	return []row{r}
}

// A task is something that the agent runs in the background.
type task struct {
	description string
	told        bool // that it is in the background
}

// task tells of a task that goes on in the background, and of its end. One that a call waits for is
// told with the call.
func (l *lines) task(r row, p claudecode.Task) []row {
	t := l.tasks[p.ID]
	if t == nil {
		t = new(task)
		l.tasks[p.ID] = t
	}
	t.description = cmp.Or(t.description, p.Description)
	r.what, r.subject = "task", cmp.Or(t.description, p.ID)
	begins := p.Background && !t.told
	switch {
	case p.State == claudecode.TaskEnded && (t.told || !slices.ContainsFunc(l.order, func(c *call) bool { return c.id == p.ToolUseID })):
		delete(l.tasks, p.ID)
		r.figures = cmp.Or(p.Status, "over")
		if p.Status != "completed" {
			r.mark, r.tone, r.because, r.figures = cmp.Or(p.Status, "over"), toneBad, cmp.Or(wording.FirstLine(p.Error), wording.FirstLine(p.Summary)), ""
		}
		if p.DurationMS > 0 {
			r.took = span(time.Duration(p.DurationMS) * time.Millisecond)
		}
	case begins:
		t.told = true
		r.figures = "goes on in the background"
	default:
		return nil
	}
	return []row{r}
}
