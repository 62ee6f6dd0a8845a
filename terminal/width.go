// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/drover-agents/drover/internal/safetext"
)

// emojiStyle asks for the coloured form of a character. It has no ink of its own, and terminals disagree on its width.
const emojiStyle = "\ufe0f"

// safe is the text of a model or a tool as one line that cannot act on the terminal.
func safe(s string) string {
	return safetext.Line(strings.ReplaceAll(strings.TrimSpace(s), emojiStyle, ""))
}

// columns is how many columns of a terminal a text takes that is safe already.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// runeColumns counts rather too many than too few where terminals disagree.
func runeColumns(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// maxRunes limits the characters of a text, since marks that take no column could go on for ever.
func maxRunes(most int) int { return 4 * most }

// Clip makes a text safe and cuts it to a number of columns.
func Clip(s string, most int) string {
	if most <= 0 {
		return ""
	}
	if enough := utf8.UTFMax * (maxRunes(most) + 1); len(s) > enough {
		s = strings.TrimLeft(s, " \t\r\n")
		s = s[:min(len(s), enough)]
	}
	return cut(safe(s), most)
}

// cut cuts a safe text. One that is cut ends with an ellipsis.
func cut(s string, most int) string {
	if fits(s, most) {
		return s
	}
	if most <= 0 {
		return ""
	}
	return s[:prefix(s, most-1)] + "…"
}

func fits(s string, most int) bool { return prefix(s, most) == len(s) }

// prefix is how many bytes at the start of a safe text fit.
func prefix(s string, most int) int {
	taken, runes := 0, 0
	for i, r := range s {
		taken += runeColumns(r)
		runes++
		if taken > most || runes > maxRunes(most) {
			return i
		}
	}
	return len(s)
}

// clipStart is clip for a text whose end matters.
func clipStart(s string, most int) string {
	if enough := utf8.UTFMax * (maxRunes(most) + 1); most > 0 && len(s) > enough {
		s = s[len(s)-enough:]
		for len(s) > 0 && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	s = safe(s)
	if fits(s, most) {
		return s
	}
	if most <= 0 {
		return ""
	}
	runes := []rune(s)
	at, taken := len(runes), 0
	for at > 0 && taken+runeColumns(runes[at-1]) <= most-1 && len(runes)-at < maxRunes(most) {
		at--
		taken += runeColumns(runes[at])
	}
	for at < len(runes) && runeColumns(runes[at]) == 0 {
		at++ // a mark without its letter
	}
	return "…" + string(runes[at:])
}

// pad fills a safe text up with blanks.
func pad(s string, to int) string {
	return s + strings.Repeat(" ", max(0, to-columns(s)))
}

// wrap breaks a text into safe rows at line ends and between words; a word that is longer than a row is broken too. Blank
// lines are left out. It returns at most so many rows, and how many lines of the text are not among them even in part.
func wrap(s string, most, rows int) (out []string, left int) {
	most = max(most, 2)
	for line := range strings.Lines(strings.TrimRight(s, " \t\r\n")) {
		switch {
		case strings.TrimSpace(line) == "":
			continue
		case len(out) >= rows:
			left++
			continue
		}
		line = safe(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "))
		for line != "" && len(out) < rows {
			var row string
			row, line = breakRow(line, most)
			if line != "" && len(out) == rows-1 {
				row = cut(row+" "+line, most)
			}
			out = append(out, row)
		}
	}
	return out, left
}

// breakRow takes the first row off a safe line.
func breakRow(line string, most int) (row, rest string) {
	n := prefix(line, most)
	if n == len(line) {
		return line, ""
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(line) // wider than the row: cannot be with two columns
	}
	if at := strings.LastIndexByte(line[:n+1], ' '); at > 0 && line[n] < utf8.RuneSelf || at > n/2 {
		return strings.TrimRight(line[:at], " "), strings.TrimLeft(line[at:], " ")
	}
	return line[:n], line[n:]
}
