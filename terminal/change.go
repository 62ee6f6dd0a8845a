// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// How many lines of a change are shown: above a question, and below a call that has made it.
const (
	askedRows = 16
	madeRows  = 8
)

// maxChange bounds the input of a call, and the file that it changes, whose lines are compared.
const maxChange = 256 << 10

// changeOf are the lines of a diff of what a call of an editing tool changes, or nothing. A call that is about to be made
// is compared with the file below Dir. Where that cannot be read, and for a call that may be over, the diff has only the texts of the call.
func (o *Options) changeOf(c event.ToolCall, ahead bool) []string {
	fields := o.Catalogue.Fields(c.Name)
	edits := fields.EditsIn(c.Input)
	if len(edits) == 0 || len(c.Input) > maxChange {
		return nil
	}
	if paths, _ := fields.PathsIn(c.Input); ahead && len(paths) > 0 {
		if before, ok := textBelow(o.Dir, paths[0]); ok {
			if after, ok := edited(before, edits); ok {
				return diffLines(workspace.TextDiff(before, after, nil))
			}
		}
	}
	var all []string
	for i, e := range edits {
		if i > 0 {
			all = append(all, "…")
		}
		diff := workspace.TextDiff(wholeLines(e.Old), wholeLines(e.New), &workspace.DiffOptions{Context: maxChange})
		_, diff, _ = strings.Cut(diff, "\n") // the numbers of lines would be those of the texts
		all = append(all, diffLines(diff)...)
	}
	return all
}

// edited is a text after edits. It reports false where the agent finds another text.
func edited(text string, edits []tool.Edit) (string, bool) {
	for _, e := range edits {
		times := 1
		switch {
		case e.Old == "":
			text = e.New
			continue
		case !strings.Contains(text, e.Old):
			return "", false
		case e.All:
			times = -1
		}
		text = strings.Replace(text, e.Old, e.New, times)
	}
	return text, true
}

// textBelow is the text of a file, which is empty for one that does not exist. A file outside of dir is not read: a link of the agent
// could lead to it.
func textBelow(dir, path string) (string, bool) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	rel, err := filepath.Rel(dir, path)
	if dir == "" || err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false
	}
	defer func() { _ = root.Close() }()
	file, err := plainfile.OpenIn(root, rel)
	if err != nil {
		return "", errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = file.Close() }()
	text, err := plainfile.ReadAll(file, maxChange)
	return string(text), err == nil
}

func wholeLines(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// diffLines makes the lines of a diff safe. Unlike safe it keeps the blanks at their beginnings.
func diffLines(diff string) []string {
	var all []string
	for line := range strings.Lines(diff) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
		all = append(all, safetext.Line(strings.ReplaceAll(line, emojiStyle, "")))
	}
	return all
}

// change lays out at most so many lines of a diff, and a note about the others.
func (l layout) change(diff []string, most int, note string) []string {
	indent := part{strings.Repeat(" ", min(8, l.width/4)), toneNone}
	var out []string
	for _, line := range diff[:min(most, len(diff))] {
		t := toneQuiet
		switch {
		case strings.HasPrefix(line, "+"):
			t = toneGood
		case strings.HasPrefix(line, "-"):
			t = toneBad
		}
		out = append(out, l.line([]part{indent, {line, t}}))
	}
	if left := len(diff) - most; left > 0 {
		out = append(out, l.line([]part{indent, {fmt.Sprintf("… %s%s", safetext.Plural(left, "more line"), note), toneQuiet}}))
	}
	return out
}
