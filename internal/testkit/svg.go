// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Coloured returns all text of the pane with its escape codes of colours, also what has left the screen.
func (p *Pane) Coloured() string { return p.Tmux("capture-pane", "-e", "-p", "-J", "-S", "-") }

// The measures of a character in a picture, in pixels.
const (
	charWidth  = 7.83
	lineHeight = 18
	margin     = 16
)

var (
	colourCode = regexp.MustCompile(`\x1b\[([\d;]*)m`)
	colours    = map[string]string{"2": "q", "31": "b", "32": "g"} // quiet, bad, good
)

// SVG draws lines of a terminal, which may have colours, as a picture.
func SVG(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var body strings.Builder
	widest := 0
	class := ""
	for i, line := range lines {
		column := 0
		write := func(part string) {
			if strings.TrimSpace(part) != "" {
				lead := len(part) - len(strings.TrimLeft(part, " "))
				attribute := ""
				if class != "" {
					attribute = fmt.Sprintf(" class=%q", class)
				}
				fmt.Fprintf(&body, "<text x=\"%.1f\" y=\"%d\"%s>%s</text>\n", margin+float64(column+lead)*charWidth, margin+lineHeight*(i+1)-5, attribute, html.EscapeString(strings.TrimSpace(part)))
			}
			column += utf8.RuneCountInString(part)
		}
		last := 0
		for _, at := range colourCode.FindAllStringSubmatchIndex(line, -1) {
			write(line[last:at[0]])
			class, last = colours[line[at[2]:at[3]]], at[1]
		}
		write(line[last:])
		widest = max(widest, column)
	}
	width, height := 2*margin+float64(widest)*charWidth, 2*margin+lineHeight*len(lines)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img">
<style>
text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d8dee9; white-space: pre; }
.q { fill: #7b8794; } .g { fill: #8fc98a; } .b { fill: #e5786d; }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#15191f"/>
%s</svg>
`, width, height, width, height, body.String())
}
