// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A segment is a piece of a text: literal text, or a placeholder.
type segment struct {
	source string // as it is written in the text
	text   string // the literal text
	name   string // of the placeholder; empty for literal text
	offset int    // in the text
	// owner is the declared struct that fills the placeholder. It is nil where none is declared.
	owner reflect.Type
}

// A flaw is a placeholder that cannot be read.
type flaw struct {
	offset int
	reason string
}

// scan cuts a text into segments. Their sources joined are the text again, flaws or not: a
// placeholder that cannot be read is taken as literal text.
func scan(text string) (segments []segment, flaws []flaw) {
	literal := 0 // where the literal text that was not cut off yet begins
	for at := 0; at < len(text); {
		next := strings.IndexByte(text[at:], '$')
		if next < 0 {
			break
		}
		at += next
		s, reason := dollar(text, at)
		switch {
		case reason != "":
			flaws = append(flaws, flaw{at, reason})
			at += len("${")
		case s.source == "$":
			at++
		default:
			segments = appendLiteral(segments, text, literal, at)
			segments = append(segments, s)
			at += len(s.source)
			literal = at
		}
	}
	return appendLiteral(segments, text, literal, len(text)), flaws
}

func appendLiteral(segments []segment, text string, from, to int) []segment {
	if from == to {
		return segments
	}
	return append(segments, segment{source: text[from:to], text: text[from:to], offset: from})
}

// dollar reads what the dollar sign at an offset begins. The source is "$" alone where it is plain text.
func dollar(text string, at int) (s segment, reason string) {
	rest := text[at+1:]
	switch {
	case strings.HasPrefix(rest, "$"):
		return segment{source: "$$", text: "$", offset: at}, ""
	case strings.HasPrefix(rest, "{"):
		return braced(text, at)
	}
	name := rest[:identifier(rest)]
	return segment{source: text[at : at+1+len(name)], name: name, offset: at}, ""
}

// maxLookahead bounds the search for the end of a placeholder without a name, so that the time is not quadratic.
const maxLookahead = 200

func braced(text string, at int) (s segment, reason string) {
	rest := text[at+2:]
	if n := identifier(rest); n > 0 && strings.HasPrefix(rest[n:], "}") {
		return segment{source: text[at : at+n+len("${}")], name: rest[:n], offset: at}, ""
	}
	line, _, _ := strings.Cut(rest[:min(len(rest), maxLookahead)], "\n")
	inside, _, closed := strings.Cut(line, "}")
	if !closed {
		return s, "${ is not closed in its line: " + quoteStart(strings.ToValidUTF8(line, ""))
	}
	return s, "${" + inside + "} is not a name: letters, digits and _, not a digit first"
}

func quoteStart(line string) string {
	const most = 40
	if utf8.RuneCountInString(line) > most {
		line = string([]rune(line)[:most]) + "..."
	}
	return "${" + line
}

// identifier returns the length of the name that a text begins with. Names are ASCII: a language
// that is written without spaces can go on right behind one.
func identifier(text string) int {
	for i := range len(text) {
		c := text[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}

// position gives the line and the column of an offset, from 1, the column in characters.
func position(text string, offset int) (line, column int) {
	before := text[:offset]
	line = 1 + strings.Count(before, "\n")
	return line, 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// dedent takes off the indentation that all lines share and the blank lines around a text. Lines
// end with a plain newline and have no white space before it where they are blank.
func dedent(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	shared, found := "", false
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			lines[i] = ""
			continue
		}
		indentation := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if !found {
			shared, found = indentation, true
		}
		shared = commonPrefix(shared, indentation)
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, shared)
	}
	return strings.TrimRightFunc(strings.TrimLeft(strings.Join(lines, "\n"), "\n"), unicode.IsSpace)
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
