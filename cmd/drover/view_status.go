// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"
)

// statusLocked is the status line. It leaves the last column free, where terminals disagree on what
// the cursor does.
func (v *view) statusLocked() string {
	room := v.layout.width - 1
	switch {
	case v.question != nil:
		return v.question.line(room)
	case v.finished || v.lines.opts.Quiet:
		return ""
	}
	return v.layout.coloured(part{v.lines.status(room, v.halting, time.Since(v.lines.opts.Started)), toneQuiet})
}

// status says what goes on in one line: the tool or the model, for how long, and what was spent.
func (l *lines) status(room int, halting bool, elapsed time.Duration) string {
	what, subject := l.doing()
	if halting {
		what = "stopping " + what
	}
	figures := strings.Join(append([]string{clock(elapsed)}, l.spent(l.usage)...), "  ")
	head := "  " + pad(clip(what, whatMost), whatColumns) + "  "
	left := room - columns(head) - 2 - columns(figures)
	if left < leastSubject {
		return cut(strings.TrimRight(head, " ")+"  "+figures, room)
	}
	if subject == "" && l.writing != "" {
		subject = clipStart(strings.Join(strings.Fields(l.writing), " "), left)
	}
	return head + pad(clip(subject, left), left) + "  " + figures
}
