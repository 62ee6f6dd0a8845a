// SPDX-License-Identifier: Apache-2.0

// Package pathglob chooses paths by globs, with ** for any number of folders. Paths and globs are relative, with slashes.
package pathglob

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/drover-agents/drover/advice"
)

// A Matcher leaves out excluded paths and, if there are globs to include, paths that match none. Nil leaves out none.
type Matcher struct{ include, exclude []pattern }

// A pattern that was written with a slash at its end is for folders, and for all that is in them.
type pattern struct {
	text   string
	folder bool
	parts  []string // of text; nil if it cannot be cut at slashes
}

// New parses globs. A glob with a slash at its end means a folder and all that is in it.
func New(include, exclude []string) (*Matcher, error) {
	in, err := parsePatterns(include)
	if err != nil {
		return nil, err
	}
	out, err := parsePatterns(exclude)
	return &Matcher{in, out}, err
}

func parsePatterns(texts []string) ([]pattern, error) {
	patterns := make([]pattern, 0, len(texts))
	for _, text := range texts {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// parsePattern refuses patterns that can never match: an exclusion of "/secrets" must not leave it in the copy.
func parsePattern(text string) (pattern, error) {
	clean := strings.TrimPrefix(text, "./")
	body := strings.TrimRight(clean, "/")
	switch {
	case slices.ContainsFunc(strings.Split(body, "/"), func(name string) bool { return name == "" || name == "." || name == ".." }):
		return pattern{}, advice.Wrap(fmt.Errorf("the glob %q matches nothing", text),
			"write it relative to the host path, without . and .. and without a slash in front or two in a row")
	case !doublestar.ValidatePattern(body):
		return pattern{}, advice.Wrap(fmt.Errorf("the glob %q cannot be read: %w", text, doublestar.ErrBadPattern),
			"close its brackets and braces, or put a backslash before them")
	}
	p := pattern{text: body, folder: body != clean}
	if !strings.Contains(body, "{") && !strings.Contains(body, "[") {
		p.parts = strings.Split(body, "/")
	}
	return p, nil
}

func (p *pattern) matches(rel string) bool { return doublestar.MatchUnvalidated(p.text, rel) }

// covers reports whether the pattern means this path, or a folder above it that it takes whole.
func (p *pattern) covers(rel string, folder bool) bool {
	if !p.folder {
		return p.matches(rel)
	}
	for ; rel != "."; rel, folder = path.Dir(rel), true {
		if folder && p.matches(rel) {
			return true
		}
	}
	return false
}

// mayReach reports whether the pattern could mean something in the folder.
func (p *pattern) mayReach(folder string) bool {
	if p.parts == nil {
		return true
	}
	for i, name := range strings.Split(folder, "/") {
		switch {
		case i == len(p.parts):
			return p.folder // it takes a folder above as a whole
		case p.parts[i] == "**":
			return true
		case !doublestar.MatchUnvalidated(p.parts[i], name):
			return false
		}
	}
	return true
}

// Skips reports whether a path is left out, by itself or with a folder above it.
func (m *Matcher) Skips(rel string, folder bool) bool {
	if m == nil {
		return false
	}
	for i := range rel {
		if rel[i] == '/' && m.SkipsEntry(rel[:i], true) {
			return true
		}
	}
	return m.SkipsEntry(rel, folder)
}

// SkipsEntry reports whether a path is left out by itself. A folder that is left out need not be looked into, so that
// a walk asks for each path once.
func (m *Matcher) SkipsEntry(rel string, folder bool) bool {
	for i := range m.exclude {
		if m.exclude[i].covers(rel, folder) {
			return true
		}
	}
	if len(m.include) == 0 {
		return false
	}
	return !slices.ContainsFunc(m.include, func(p pattern) bool {
		return p.covers(rel, folder) || folder && p.mayReach(rel)
	})
}

// Within are globs that mean a path and all that is below it, whatever characters it has.
func Within(path string) []string {
	literal := escape.Replace(path)
	return []string{literal, literal + "/**"}
}

var escape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)
