// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes text of others safe to show: what a model, a tool or a file wrote, on a terminal where a person decides
// by what they read. It escapes what a terminal, or a reader, could take for something else: control characters,
// line ends, invisible characters, those that turn the direction of text, and broken UTF-8. The
// result is one line of printable characters.
//
// A backslash stays as it is, so that paths and JSON read as they were written: the result is for
// eyes, and cannot be turned back.
func Line(s string) string { return escape(s, hasInk) }

// Lines is a text of several lines that cannot act on a terminal. Unlike [Line] it keeps lines, tabs
// and the characters that other scripts and emoji are joined with: what is shown may be kept in a file.
func Lines(s string) string { return escape(s, isInert) }

// escape writes what may not be shown as Go source would, and so broken UTF-8.
func escape(s string, shown func(rune) bool) string {
	i := plain(s, shown)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for s = s[i:]; len(s) > 0; {
		size, ok := first(s, shown)
		if ok {
			b.WriteString(s[:size])
		} else {
			quoted := strconv.QuoteToASCII(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// plain is how many bytes at the start of s need no escape.
func plain(s string, shown func(rune) bool) int {
	for i := 0; i < len(s); {
		size, ok := first(s[i:], shown)
		if !ok {
			return i
		}
		i += size
	}
	return len(s)
}

// first looks at the first character of s: how long it is, and whether it may be shown.
func first(s string, shown func(rune) bool) (int, bool) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		return size, false
	}
	return size, shown(r)
}

// isInert reports characters that neither move the cursor, nor begin an escape sequence, nor turn the direction.
func isInert(r rune) bool {
	return r == '\n' || r == '\t' || !unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

func hasInk(r rune) bool { return unicode.IsPrint(r) && (r < utf8.RuneSelf || !blank(r)) }

// blank reports letters and marks that take no ink: Unicode counts them as printable.
func blank(r rune) bool {
	const emptyBraille = '\u2800'
	return r == emptyBraille || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
