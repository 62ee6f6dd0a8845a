// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/drover-agents/drover/internal/safetext"
)

// A FileStat is how much of a file or a link has changed.
type FileStat struct {
	Path string `json:"path"`
	// What is "created", "changed" or "deleted".
	What string `json:"what"`
	// Added and Removed count lines. They are zero if Binary.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// Binary reports a content that is not text, or too large to be compared by lines.
	Binary bool `json:"binary,omitzero"`
	// Before and After are sizes in bytes.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// String is one line: what became of the path, and "+3 -1", or the sizes of a binary file.
func (s FileStat) String() string {
	name := safetext.Line(s.Path)
	if s.Binary {
		return fmt.Sprintf("%s %s, %d -> %d bytes", s.What, name, s.Before, s.After)
	}
	return fmt.Sprintf("%s %s, +%d -%d", s.What, name, s.Added, s.Removed)
}

// DiffStat counts what has changed in each file and link. Files above MaxBytes are not read; their sizes are given.
func DiffStat(changes []Change, opts *DiffOptions) ([]FileStat, error) {
	var stats []FileStat
	full := opts.withDefaults()
	for _, c := range changes {
		if len(parts(c)) == 0 {
			continue
		}
		stat := FileStat{Path: c.Path, What: whatOf(c), Before: contentSize(c.Before), After: contentSize(c.After)}
		if !equalContent(c.Before, c.After) {
			before, after, text, err := readTexts(c.Before, c.After, full.MaxBytes)
			if err != nil {
				return nil, err
			}
			stat.Binary = !text
			stat.Added, stat.Removed = diffText(before, after).count()
		}
		stats = append(stats, stat)
	}
	return stats, nil
}

func whatOf(c Change) string {
	switch {
	case !hasContent(c.Before):
		return "created"
	case !hasContent(c.After):
		return "deleted"
	}
	return "changed"
}

// A Summary is what changes come to, and what of them a patch cannot hold.
type Summary struct {
	// Created, Changed and Deleted count files and links.
	Created int `json:"created"`
	Changed int `json:"changed"`
	Deleted int `json:"deleted"`
	// NotInPatch is what [WritePatch] leaves out.
	NotInPatch []SkippedPath `json:"notInPatch,omitempty"`
}

// String is one line, with further ones for what a patch leaves out.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d created, %d changed, %d deleted\n", s.Created, s.Changed, s.Deleted)
	for _, o := range s.NotInPatch {
		fmt.Fprintf(&b, "  not in a patch: %s: %s\n", safetext.Line(o.Path), o.Reason)
	}
	return b.String()
}

// Summarize counts changes, and names those that [WritePatch] leaves out. It reads no contents.
func Summarize(changes []Change) Summary {
	var s Summary
	implied := impliedFolders(changes)
	for _, c := range changes {
		if len(parts(c)) > 0 {
			switch whatOf(c) {
			case "created":
				s.Created++
			case "deleted":
				s.Deleted++
			default:
				s.Changed++
			}
		}
		if reason := leftOut(c, implied); reason != "" {
			s.NotInPatch = append(s.NotInPatch, SkippedPath{c.Path, reason})
		}
	}
	return s
}

// impliedFolders are those that come and go with the files in them.
func impliedFolders(changes []Change) map[string]bool {
	implied := map[string]bool{}
	for _, c := range changes {
		if hasContent(c.Before) == hasContent(c.After) {
			continue
		}
		for i, r := range c.Path {
			if r == '/' {
				implied[c.Path[:i]] = true
			}
		}
	}
	return implied
}

// leftOut describes the part of a change that a patch does not contain.
func leftOut(c Change, implied map[string]bool) string {
	b, a := c.Before, c.After
	switch {
	case b == nil && a == nil:
		return ""
	case len(parts(c)) > 0 && gitRefuses(c.Path, parts(c)[0].isLink()):
		return "git touches no files of a repository's own folder"
	case isKind(a, fs.ModeDir) && b == nil || isKind(b, fs.ModeDir) && a == nil:
		if implied[c.Path] {
			return ""
		}
		return "a folder without files"
	case isSpecial(a) || isSpecial(b):
		return "a pipe, a socket or a device"
	case b == nil || a == nil || b.Mode.Type() != a.Mode.Type():
		return ""
	case b.Mode != a.Mode && (!hasContent(a) || gitMode(b) == gitMode(a)):
		return fmt.Sprintf("permissions %v -> %v", b.Mode, a.Mode)
	case len(parts(c)) == 0 && !a.Mode.IsDir():
		return "only its time or owner"
	}
	return ""
}

func isKind(f *File, kind fs.FileMode) bool { return f != nil && f.Mode.Type() == kind }

func isSpecial(f *File) bool { return f != nil && !f.Mode.IsDir() && !hasContent(f) }
