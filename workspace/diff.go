// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// DiffOptions configures how changes are shown. Nil and the zero value are ready to use.
type DiffOptions struct {
	// Context is how many lines are shown around those that differ. Zero means 3.
	Context int
	// MaxBytes is the largest file whose lines are shown. A larger one is only named as different. Zero means 1 MiB.
	MaxBytes int64
}

func (o *DiffOptions) withDefaults() DiffOptions {
	var full DiffOptions
	if o != nil {
		full = *o
	}
	full.Context = max(1, cmp.Or(full.Context, 3))
	full.MaxBytes = cmp.Or(full.MaxBytes, 1<<20)
	return full
}

// WriteDiff writes changes for people: the lines that differ, and a line for each thing that has none. It
// has no colours, and control characters in names and contents are made visible, so that a file cannot
// play tricks on a terminal. For programs there is [WritePatch].
func WriteDiff(w io.Writer, changes []Change, opts *DiffOptions) error {
	out := bufio.NewWriter(w)
	full := opts.withDefaults()
	for _, change := range changes {
		if err := writeChange(out, change, full); err != nil {
			return err
		}
	}
	return out.Flush()
}

func writeChange(w *bufio.Writer, c Change, opts DiffOptions) error {
	title := changeTitle(c)
	if title == "" {
		return nil
	}
	writeAll(w, title, "\n")
	for _, part := range parts(c) {
		if err := writePart(w, c.Path, part, opts); err != nil {
			return err
		}
	}
	return nil
}

func writePart(w *bufio.Writer, name string, part part, opts DiffOptions) error {
	if equalContent(part.before, part.after) {
		return nil
	}
	if gitRefuses(name, part.isLink()) {
		writeAll(w, "  differs; it belongs to git\n")
		return nil
	}
	before, after, text, err := readTexts(part.before, part.after, opts.MaxBytes)
	switch {
	case err != nil:
		return err
	case !text:
		writeAll(w, "  differs: ", sizes(part.before, part.after), "\n")
	case before != after:
		writeAll(w, "--- ", label(safetext.Line("a/"+name), part.before), "\n+++ ", label(safetext.Line("b/"+name), part.after), "\n")
		diffText(before, after).write(w, opts.Context, safetext.Lines)
	}
	return nil
}

// TextDiff returns the lines in which two texts differ, with the lines around them, as [WriteDiff] shows those of a
// file. It is empty for texts that are the same. Of opts only Context counts.
func TextDiff(before, after string, opts *DiffOptions) string {
	var out strings.Builder
	diffText(before, after).write(&out, opts.withDefaults().Context, safetext.Lines)
	return out.String()
}

// label is the name of a side of a change, as patches have it.
func label(name string, f *File) string {
	if f == nil {
		return "/dev/null"
	}
	return name
}

func sizes(before, after *File) string {
	switch {
	case before == nil:
		return fmt.Sprintf("%d bytes", contentSize(after))
	case after == nil:
		return fmt.Sprintf("%d bytes were there", contentSize(before))
	}
	return fmt.Sprintf("%d -> %d bytes", contentSize(before), contentSize(after))
}

// changeTitle describes a change in one line. It is empty for the time of a folder, which every change in it changes.
func changeTitle(c Change) string {
	name := safetext.Line(c.Path)
	b, a := c.Before, c.After
	switch {
	case b == nil && a == nil:
		return ""
	case b == nil:
		return "created " + filetree.KindOf(a.Mode).String() + ": " + name
	case a == nil:
		return "deleted " + filetree.KindOf(b.Mode).String() + ": " + name
	case b.Mode.Type() != a.Mode.Type():
		return "replaced " + filetree.KindOf(b.Mode).String() + " by " + filetree.KindOf(a.Mode).String() + ": " + name
	case b.Mode != a.Mode:
		return fmt.Sprintf("changed %s: %s (%v -> %v)", filetree.KindOf(a.Mode), name, b.Mode, a.Mode)
	case equalContent(b, a):
		return "touched " + filetree.KindOf(a.Mode).String() + ": " + name
	case !hasContent(a):
		return ""
	}
	return "changed " + filetree.KindOf(a.Mode).String() + ": " + name
}
