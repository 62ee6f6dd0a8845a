// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/drover-agents/drover/internal/visible"
)

// doctorIndent is where details begin, and narrowestDetail how few characters of them make a line.
const (
	doctorIndent    = 21
	narrowestDetail = 30
)

// writeText writes a line for each check, what mends it below, and the summary. Lines are folded at
// width; zero, as in a pipe, means that each stays one line.
func (r doctorReport) writeText(out io.Writer, width int) error {
	var b strings.Builder
	for _, c := range r.Checks {
		doctorLine(&b, width, c.Name, string(c.State), c.Detail)
		label := "fix"
		for _, fix := range c.Fix {
			doctorLine(&b, width, "", label, fix)
			label = "or"
		}
		for _, a := range c.Attempts {
			doctorLine(&b, width, "", attemptWord(a.Held), joinWords(a.Name, a.Detail))
		}
	}
	fmt.Fprintf(&b, "exit %d: %s\n", r.Exit, r.Summary)
	_, err := io.WriteString(out, b.String())
	return err
}

// attemptWord says what became of an attempt to get through a wall.
func attemptWord(held bool) string {
	if held {
		return "held"
	}
	return "OPEN"
}

// foldingWidth is that of the terminal that out writes to, and zero if it is none.
func foldingWidth(out io.Writer) int {
	screen, ok := terminal(out)
	if !ok {
		return 0
	}
	return terminalWidth(screen)
}

func doctorLine(b *strings.Builder, width int, name, state, detail string) {
	for _, part := range folded(oneLine(detail), width-doctorIndent) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-11s %-8s %s", name, state, part), " ") + "\n")
		name, state = "", ""
	}
}

// folded breaks text between words, so that no part is longer than most where that is possible. Below
// narrowestDetail it leaves that to the terminal.
func folded(text string, most int) []string {
	if most < narrowestDetail {
		return []string{text}
	}
	var parts []string
	for utf8.RuneCountInString(text) > most {
		runes := []rune(text)
		cut := strings.LastIndex(string(runes[:most+1]), " ")
		if cut <= 0 {
			if cut = strings.Index(text, " "); cut < 0 {
				break
			}
		}
		parts = append(parts, strings.TrimRight(text[:cut], " "))
		text = strings.TrimLeft(text[cut:], " ")
	}
	return append(parts, text)
}

// oneLine makes text of several lines one, and harmless: details may be words of programs and servers.
func oneLine(text string) string {
	return visible.Text(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text))
}
