// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/internal/safetext"
)

// A row is a finished line: time, activity, subject and result. Its texts may be hostile; the layout makes them safe.
type row struct {
	at   time.Duration // since the start
	deep int           // how many subagents it is inside of
	what string
	// subject is one line, clipped; or with rows set text that is broken into so many.
	subject string
	rows    int
	// mark is one word on the outcome, figures count, and took is a duration. They are at the right.
	mark, figures, took string
	// because is the reason of a denial or failure: at the right if there are no figures and it has room, and else below.
	because string
	tone    tone
	// change are the lines of a diff, which are safe. They are below the row.
	change []string
}

// A tone is the emphasis of a row.
type tone uint8

const (
	toneNone tone = iota
	toneQuiet
	toneGood
	toneBad
)

const (
	whatColumns   = 12
	whatMost      = 28
	markColumns   = 8
	figureColumns = 9
	becauseRows   = 3
	narrowBelow   = 50 // columns; less has no room for figures at the right
	leastSubject  = 10
)

// tailColumns is the room for mark and figures in a line of width columns. A wider terminal gives half
// of its extra columns to the subject and half to reasons.
func tailColumns(width int) int { return 27 + max(0, width-80)/2 }

// A part is a safe piece of a line, in one colour.
type part struct {
	text string
	tone tone
}

type layout struct {
	width  int
	colour bool
}

// lines are the lines of a row, none of them wider than the layout.
func (l layout) lines(r row) []string {
	return append(l.heading(r), l.change(r.change, madeRows, "")...)
}

// heading are the lines of a row without its change.
func (l layout) heading(r row) []string {
	head := l.head(r)
	start := partsWidth(head)
	switch {
	case l.width < narrowBelow:
		return l.narrow(r, head)
	case r.rows > 0:
		return l.text(r, head)
	}
	tail, below := l.tail(r)
	room := l.width - start
	if len(tail) > 0 {
		room = l.tailAt(tail) - 2 - start
	}
	if room < min(leastSubject, columns(Clip(r.subject, leastSubject))) {
		below = append(filled(joined(tail), l.width-start), below...)
		tail, room = nil, l.width-start
	}
	subject := Clip(r.subject, room)
	parts := append(head, part{subject, r.subjectTone()})
	if len(tail) > 0 {
		parts = append(parts, part{strings.Repeat(" ", room+2-columns(subject)), toneNone})
	}
	return append([]string{l.line(append(parts, tail...))}, l.below(below, start)...)
}

func (l layout) head(r row) []part {
	what := strings.Repeat("  ", r.deep) + Clip(r.what, whatMost)
	return []part{
		{fmt.Sprintf("  %04.1f  ", max(0, r.at.Seconds())), toneQuiet},
		{pad(what, whatColumns+2*r.deep) + " ", toneNone},
	}
}

func (l layout) subjectAt(r row) int { return partsWidth(l.head(r)) }

// tail is the text at the right, and the rest that has no room there.
func (l layout) tail(r row) (tail []part, below []string) {
	figures := safe(r.figures)
	if r.took != "" {
		figures = pad(figures, figureColumns) + "  " + r.took
	}
	switch because := safe(r.because); {
	case because == "":
	case r.figures == "" && columns(because) <= tailColumns(l.width)-markColumns:
		figures = because
	default:
		below, _ = wrap(r.because, l.width-l.subjectAt(r), becauseRows)
	}
	mark := safe(r.mark)
	switch {
	case mark == "" && figures == "":
		return nil, below
	case figures != "" && (mark != "" || markColumns+columns(figures) <= tailColumns(l.width)):
		mark = pad(mark, markColumns)
	}
	return []part{{mark, r.tone}, {figures, toneNone}}, below
}

// tailAt is the column where a tail begins: the same for all that have room there, and further to the left for longer ones.
func (l layout) tailAt(tail []part) int {
	return l.width - max(tailColumns(l.width), partsWidth(tail))
}

// text lays out a row whose subject has several lines.
func (l layout) text(r row, head []part) []string {
	start := partsWidth(head)
	rows, left := wrap(r.subject, l.width-start, r.rows)
	if left > 0 {
		note := fmt.Sprintf(" (+%s)", safetext.Plural(left, "line"))
		last := &rows[len(rows)-1]
		*last = cut(*last, l.width-start-columns(note)) + note
	}
	if len(rows) == 0 {
		rows = []string{""}
	}
	out := []string{l.line(append(head, part{rows[0], r.subjectTone()}))}
	for _, text := range rows[1:] {
		out = append(out, l.line([]part{{strings.Repeat(" ", start), toneNone}, {text, r.subjectTone()}}))
	}
	return out
}

// narrow lays out a row for a terminal without room for columns: all in one line, and what came of it below.
func (l layout) narrow(r row, head []part) []string {
	head[1].text = strings.TrimRight(head[1].text, " ") + " "
	subject := r.subject
	if r.rows > 0 {
		subject = strings.Join(strings.Fields(subject), " ")
	}
	out := []string{l.line(append(head, part{Clip(subject, l.width), r.subjectTone()}))}
	var rest []string
	for _, text := range []string{r.mark, r.figures, r.took, r.because} {
		if text != "" {
			rest = append(rest, text)
		}
	}
	indent := min(8, l.width/4)
	below, _ := wrap(strings.Join(rest, "  "), l.width-indent, becauseRows)
	return append(out, l.below(below, indent)...)
}

func (l layout) below(texts []string, start int) []string {
	var out []string
	for _, text := range texts {
		out = append(out, l.line([]part{{strings.Repeat(" ", start), toneNone}, {text, toneNone}}))
	}
	return out
}

func (r row) subjectTone() tone {
	if r.mark != "" || r.tone == toneBad {
		return toneNone
	}
	return r.tone
}

// line joins parts to a line that is cut to the width, with colours where they are wanted.
func (l layout) line(parts []part) string {
	left, last := l.width, 0
	for i := range parts {
		parts[i].text = cut(parts[i].text, left)
		left -= columns(parts[i].text)
		if strings.TrimSpace(parts[i].text) != "" {
			last = i
		}
	}
	parts = parts[:last+1]
	parts[last].text = strings.TrimRight(parts[last].text, " ")
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(l.coloured(p))
	}
	return b.String()
}

func (l layout) coloured(p part) string {
	code := map[tone]string{toneQuiet: "2", toneGood: "32", toneBad: "31"}[p.tone]
	if !l.colour || code == "" || p.text == "" {
		return p.text
	}
	return "\x1b[" + code + "m" + p.text + "\x1b[0m"
}

func partsWidth(parts []part) int {
	n := 0
	for _, p := range parts {
		n += columns(p.text)
	}
	return n
}

// filled breaks figures into lines, between one figure and the next.
func filled(figures string, most int) []string {
	var out []string
	for figure := range strings.SplitSeq(figures, "  ") {
		figure = strings.TrimSpace(figure)
		last := len(out) - 1
		switch {
		case figure == "":
		case last >= 0 && columns(out[last])+2+columns(figure) <= most:
			out[last] += "  " + figure
		default:
			out = append(out, figure)
		}
	}
	return out
}

func joined(parts []part) string {
	var texts []string
	for _, p := range parts {
		if text := strings.TrimSpace(p.text); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "  ")
}
