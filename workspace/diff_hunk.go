// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// A hunk is a part of two texts in which they differ, with lines around it that are the same.
type hunk struct {
	before, after [2]int // from and to, lines counted from 0
	edits         []lcs.Diff
}

type textDiff struct {
	before, after []string // lines with their ends
	edits         []lcs.Diff
}

func diffText(before, after string) textDiff {
	d := textDiff{before: splitLines(before), after: splitLines(after)}
	d.edits = lcs.DiffLines(d.before, d.after)
	return d
}

func splitLines(text string) []string {
	return slices.AppendSeq(make([]string, 0, strings.Count(text, "\n")+1), strings.Lines(text))
}

func (d textDiff) count() (added, removed int) {
	for _, e := range d.edits {
		added += e.ReplEnd - e.ReplStart
		removed += e.End - e.Start
	}
	return added, removed
}

// hunks puts edits together that have not more than twice the context between them.
func (d textDiff) hunks(context int) []hunk {
	var all []hunk
	for i, e := range d.edits {
		if i == 0 || e.Start-d.edits[i-1].End > 2*context {
			lead := min(context, e.Start)
			all = append(all, hunk{before: [2]int{e.Start - lead, 0}, after: [2]int{e.ReplStart - lead, 0}})
		}
		last := &all[len(all)-1]
		last.edits = append(last.edits, e)
		tail := min(context, len(d.before)-e.End)
		last.before[1], last.after[1] = e.End+tail, e.ReplEnd+tail
	}
	return all
}

// write writes the hunks in the unified form. Show is how a line is shown.
func (d textDiff) write(w io.StringWriter, context int, show func(string) string) {
	for _, h := range d.hunks(context) {
		writeAll(w, "@@ -", lineRange(h.before), " +", lineRange(h.after), " @@\n")
		at := h.before[0]
		for _, e := range h.edits {
			writeLines(w, " ", d.before[at:e.Start], show)
			writeLines(w, "-", d.before[e.Start:e.End], show)
			writeLines(w, "+", d.after[e.ReplStart:e.ReplEnd], show)
			at = e.End
		}
		writeLines(w, " ", d.before[at:h.before[1]], show)
	}
}

func lineRange(r [2]int) string {
	switch n := r[1] - r[0]; n {
	case 0:
		return strconv.Itoa(r[0]) + ",0" // after that line
	case 1:
		return strconv.Itoa(r[0] + 1)
	default:
		return strconv.Itoa(r[0]+1) + "," + strconv.Itoa(n)
	}
}

func writeLines(w io.StringWriter, mark string, lines []string, show func(string) string) {
	for _, line := range lines {
		text, whole := strings.CutSuffix(line, "\n")
		writeAll(w, mark, show(text), "\n")
		if !whole {
			writeAll(w, "\\ No newline at end of file\n")
		}
	}
}

// writeAll leaves errors to the Flush of a bufio.Writer.
func writeAll(w io.StringWriter, texts ...string) {
	for _, text := range texts {
		_, _ = w.WriteString(text)
	}
}
