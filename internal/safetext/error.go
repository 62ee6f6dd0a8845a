// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"regexp"
	"strings"
)

// packageNames are what errors of our packages begin with. They help programmers, not people.
var packageNames = regexp.MustCompile(`(?m)(^|: )(?:drover|claude|claudecode|agent|agentfile|prompt|gate|gateway|guard|isolation|transcript|tool|event|schema|script|terminal|workspace): `)

// insideTheCell is advice of the CLI about an address that exists inside the cell only.
var insideTheCell = regexp.MustCompile(` This is a server-side issue, [^\n]*check your inference gateway \([^)\n]*\)\.`)

// Text is the text of an error without the names of packages.
func Text(text string) string {
	text = insideTheCell.ReplaceAllString(text, "")
	for { // matches do not overlap, but names may follow each other
		shorter := packageNames.ReplaceAllString(text, "$1")
		if shorter == text {
			return strings.TrimSpace(text)
		}
		text = shorter
	}
}

// FirstLine returns the first line of a text, without the tags that the CLI puts around errors.
func FirstLine(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "<tool_use_error>"), "</tool_use_error>")
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(first)
}
