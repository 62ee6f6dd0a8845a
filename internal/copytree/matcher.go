// SPDX-License-Identifier: Apache-2.0

package copytree

import "strings"

// A Matcher tells which paths a copy leaves out. Nil leaves out none.
type Matcher struct{ globs *globs }

// NewMatcher reads globs as [Options] has them.
func NewMatcher(include, exclude []string) (*Matcher, error) {
	g, err := newGlobs(include, exclude)
	return &Matcher{g}, err
}

// Skips reports whether a path is left out, by itself or with a folder above it.
func (m *Matcher) Skips(rel string, folder bool) bool {
	if m == nil {
		return false
	}
	for i := range rel {
		if rel[i] == '/' && m.globs.skips(rel[:i], true) {
			return true
		}
	}
	return m.globs.skips(rel, folder)
}

// Within are globs that mean a path and all that is below it, whatever characters it has.
func Within(path string) []string {
	literal := escape.Replace(path)
	return []string{literal, literal + "/**"}
}

var escape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)
