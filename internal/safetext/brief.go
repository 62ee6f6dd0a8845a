// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"fmt"
	"regexp"
	"strings"
)

// What an error shows of a text or a list that others wrote.
const (
	mostText = 200
	mostList = 20
)

// Start is the beginning of a long text, for an error that has to name it. It is cut between characters.
func Start(s string) string {
	if len(s) <= mostText {
		return s
	}
	return strings.ToValidUTF8(s[:mostText], "") + "…"
}

// Few lists the first of many names, for an error that has to name them.
func Few(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i == mostList {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Start(name))
	}
	return b.String()
}

// heading matches a line that Markdown shows as a heading.
var heading = regexp.MustCompile(`^ {0,3}#{1,6}(\s|$)`)

// FirstWords is the beginning of a Markdown text on one line, of at most limit characters, without the headings. Of a text that has
// only headings, it has their words.
func FirstWords(text string, limit int) string {
	var words, titles []string
	for line := range strings.Lines(strings.ToValidUTF8(text[:min(len(text), 64*limit)], "")) {
		if heading.MatchString(line) {
			titles = append(titles, strings.Fields(line)[1:]...)
		} else {
			words = append(words, strings.Fields(line)...)
		}
	}
	if len(words) == 0 {
		words = titles
	}
	first := []rune(strings.Join(words, " "))
	if len(first) > limit {
		return string(first[:limit-1]) + "…"
	}
	return string(first)
}
