// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
)

// WritePatch writes changes as a patch for git apply, and for git apply -R: run in the folder that was
// changed, or at the root of a repository that has the same files. It holds contents of every kind, files
// that are made and deleted, links, and whether a file can be run. Renamed files are deleted and made.
//
// A patch has no folders without files, no times, owners and other permissions, and no pipes; and git refuses to touch the
// .git folder of a repository, so what is below one is left out. [Summarize] names all that. Git cannot put a folder where
// a link was that leads to itself. It takes patches up to 1 GiB, and binary files only in repositories with SHA-1 names.
//
// One file at a time is in memory, and that only if it is text of at most 16 MiB and 2^20 lines on both sides: about 64 MiB
// in all. All else is written as binary contents, which are never in memory as a whole. Of opts only Context counts.
func WritePatch(w io.Writer, changes []Change, opts *DiffOptions) error {
	out := bufio.NewWriterSize(w, 64<<10)
	p := patchWriter{out, opts.withDefaults().Context}
	for _, change := range changes {
		for _, part := range parts(change) {
			if gitRefuses(change.Path, part.isLink()) {
				continue
			}
			if err := p.write(change.Path, part); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

func (p part) isLink() bool { return isLink(cmp.Or(p.after, p.before)) }

func gitMode(f *File) string {
	switch {
	case isLink(f):
		return "120000"
	case f.Mode.Perm()&0o100 != 0:
		return "100755"
	}
	return "100644"
}

type patchWriter struct {
	*bufio.Writer
	context int
}

func (p patchWriter) write(name string, part part) error {
	writeAll(p, "diff --git ", quoteName("a/"+name), " ", quoteName("b/"+name), "\n")
	p.modes(part)
	if equalContent(part.before, part.after) {
		return nil
	}
	if err := p.index(part); err != nil {
		return err
	}
	before, after, text, err := readTexts(part.before, part.after, math.MaxInt64)
	switch {
	case err != nil:
		return err
	case !text:
		writeAll(p, "GIT binary patch\n")
		if err := writeLiteral(p, part.after); err != nil {
			return err
		}
		return writeLiteral(p, part.before)
	case before != after: // not for an empty file that is made or deleted
		writeAll(p, "--- ", label(quoteName("a/"+name), part.before), "\n+++ ", label(quoteName("b/"+name), part.after), "\n")
		diffText(before, after).write(p, p.context, func(line string) string { return line })
	}
	return nil
}

func (p patchWriter) modes(part part) {
	switch {
	case part.before == nil:
		writeAll(p, "new file mode ", gitMode(part.after), "\n")
	case part.after == nil:
		writeAll(p, "deleted file mode ", gitMode(part.before), "\n")
	case gitMode(part.before) != gitMode(part.after):
		writeAll(p, "old mode ", gitMode(part.before), "\nnew mode ", gitMode(part.after), "\n")
	}
}

// index writes the names of both contents, which git wants for binary ones, and with which it can merge others.
func (p patchWriter) index(part part) error {
	before, err := blobID(part.before)
	if err != nil {
		return err
	}
	after, err := blobID(part.after)
	if err != nil {
		return err
	}
	fmt.Fprintf(p, "index %s..%s", before, after)
	if part.before != nil && part.after != nil && gitMode(part.before) == gitMode(part.after) {
		writeAll(p, " ", gitMode(part.after))
	}
	writeAll(p, "\n")
	return nil
}
