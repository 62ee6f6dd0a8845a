// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

// text is the table for a terminal.
func (t *table) text() string {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			if i == 0 {
				fmt.Fprintf(&b, "%-*s", widths[0], cell)
				continue
			}
			fmt.Fprintf(&b, "  %*s", widths[i], cell)
		}
		b.WriteByte('\n')
	}
	for i, n := range t.notes {
		fmt.Fprintf(&b, "\n[%d] %s", i+1, n)
	}
	b.WriteString("\n\n")
	for _, c := range t.checks {
		fmt.Fprintln(&b, c)
	}
	return b.String()
}

// markdown is the table for a page.
func (t *table) markdown(commit string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured at commit %s.\n\n", commit)
	fmt.Fprintf(&b, "| %s |\n|---|%s\n", strings.Join(t.header, " | "), strings.Repeat("---:|", len(t.header)-1))
	for _, row := range t.rows {
		label := row[0]
		if strings.HasPrefix(label, " ") {
			label = "&nbsp;&nbsp;" + strings.TrimSpace(label)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", label, strings.Join(row[1:], " | "))
	}
	b.WriteByte('\n')
	for i, n := range t.notes {
		fmt.Fprintf(&b, "- [%d] %s\n", i+1, n)
	}
	b.WriteString("\n```\n")
	for _, c := range t.checks {
		fmt.Fprintln(&b, c)
	}
	b.WriteString("```\n")
	return b.String()
}

// Marks between which the page is ours.
const (
	beginMark = "<!-- wirebench: begin -->\n"
	endMark   = "<!-- wirebench: end -->\n"
)

// rewrite puts the table between the marks of the page.
func (t *table) rewrite(path, commit string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begun := bytes.Cut(page, []byte(beginMark))
	_, after, ended := bytes.Cut(rest, []byte(endMark))
	if !begun || !ended {
		return fmt.Errorf("%s has no lines %q and %q to write between", path, strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(beginMark + "\n" + t.markdown(commit) + "\n" + endMark)
	out.Write(after)
	return os.WriteFile(path, out.Bytes(), 0o644)
}
