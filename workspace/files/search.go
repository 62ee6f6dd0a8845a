// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/drover-agents/drover/advice"
)

// Glob returns the names that match a pattern, sorted: files, folders and links. In a pattern ** matches any number
// of folders, and {a,b} either one. Links to folders are not entered.
func Glob(fsys fs.FS, pattern string) ([]string, error) {
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	names, err := doublestar.Glob(fsys, pattern, doublestar.WithNoFollow())
	if err != nil {
		return nil, fmt.Errorf("files: glob %q: %w", pattern, err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func checkPattern(pattern string) error {
	if strings.HasPrefix(pattern, "/") || slices.Contains(strings.Split(pattern, "/"), "..") {
		return checkName("glob", pattern)
	}
	if !doublestar.ValidatePattern(pattern) {
		return advice.Wrap(fmt.Errorf("files: glob %q: %w", pattern, path.ErrBadPattern), "use *, **, ?, [a-z] and {a,b}")
	}
	return nil
}

// GrepOptions configures [Grep]. Only Pattern is needed.
type GrepOptions struct {
	// Pattern is a regular expression in Go's syntax, tried on every line.
	Pattern string
	// Files is a glob of the names to search, as for [Glob]. Empty means all.
	Files string
	// Below is the file or folder to search. Empty means the root.
	Below string
	// MaxHits is after how many lines to stop. Zero means 1000.
	MaxHits int
	// MaxFile is how many bytes a file may have that is searched. Zero means 32 MiB, and a negative number no limit.
	MaxFile int64
}

// Found is what [Grep] found.
type Found struct {
	// Hits are sorted by path and line.
	Hits []Hit `json:"hits"`
	// More reports that there are more than MaxHits.
	More bool `json:"more,omitzero"`
	// Skipped are the files and folders that could not be searched: too large, or not readable.
	Skipped []string `json:"skipped,omitempty"`
}

// A Hit is a line that matches.
type Hit struct {
	Path string `json:"path"`
	// Line counts from 1.
	Line int `json:"line"`
	// Text is the line without its end. Of one that is longer than 1 KiB it is the part around the match.
	Text string `json:"text"`
}

// maxHitText bounds Hit.Text, in bytes: one line of a bundled script can be the whole file.
const maxHitText = 1 << 10

var errEnough = errors.New("enough")

// Grep searches files for lines that match. It leaves out files with a zero byte, which are not text, and links,
// whose targets are found at their own path.
func Grep(ctx context.Context, fsys fs.FS, opts GrepOptions) (Found, error) {
	expr, err := regexp.Compile(opts.Pattern)
	if err != nil {
		return Found{}, advice.Wrap(fmt.Errorf("files: grep %q: %w", opts.Pattern, err), "quote what is meant literally, with \\")
	}
	if opts.Files != "" {
		if err := checkPattern(opts.Files); err != nil {
			return Found{}, err
		}
	}
	opts.Below = cmp.Or(opts.Below, ".")
	opts.MaxHits, opts.MaxFile = cmp.Or(opts.MaxHits, 1000), cmp.Or(opts.MaxFile, 32<<20)
	if _, err := fs.Stat(fsys, opts.Below); err != nil {
		return Found{}, err
	}
	s := search{fsys: fsys, expr: expr, opts: opts}
	err = fs.WalkDir(fsys, opts.Below, func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return s.visit(name, entry, err)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return Found{}, err
	}
	slices.SortFunc(s.found.Hits, func(a, b Hit) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return s.found, nil
}

type search struct {
	fsys  fs.FS
	expr  *regexp.Regexp
	opts  GrepOptions
	found Found
}

func (s *search) visit(name string, entry fs.DirEntry, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // removed meanwhile
	case err != nil:
		s.found.Skipped = append(s.found.Skipped, name)
		return nil
	case !entry.Type().IsRegular():
		return nil
	case s.opts.Files != "" && !doublestar.MatchUnvalidated(s.opts.Files, name):
		return nil
	}
	data, err := s.content(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		s.found.Skipped = append(s.found.Skipped, name)
		return nil
	case bytes.IndexByte(data, 0) >= 0:
		return nil
	}
	return s.lines(name, data)
}

func (s *search) content(name string) ([]byte, error) {
	file, err := s.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if s.opts.MaxFile < 0 {
		return io.ReadAll(file)
	}
	return readUpTo(file, name, s.opts.MaxFile)
}

func (s *search) lines(name string, data []byte) error {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		at := s.expr.FindIndex(line)
		if at == nil {
			continue
		}
		if len(s.found.Hits) == s.opts.MaxHits {
			s.found.More = true
			return errEnough
		}
		s.found.Hits = append(s.found.Hits, Hit{Path: name, Line: number, Text: around(line, at[0])})
	}
	return nil
}

func around(line []byte, at int) string {
	if len(line) <= maxHitText {
		return string(line)
	}
	from := max(0, min(at-maxHitText/4, len(line)-maxHitText))
	to := from + maxHitText
	for from < at && !utf8.RuneStart(line[from]) {
		from++
	}
	for to < len(line) && to > from && !utf8.RuneStart(line[to]) {
		to--
	}
	return string(line[from:to])
}
