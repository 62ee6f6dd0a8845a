// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"regexp"
	"strings"
)

// packageNames are what errors of our packages begin with. They help programmers, not people. Behind a position in a file, :3:5,
// is a key of the file, which may be the name of a package too.
var packageNames = regexp.MustCompile(`(?m)(:\d+:\d+)?(^|: )(?:drover|claude|claudecode|agent|agentfile|prompt|gate|gateway|guard|isolation|transcript|tool|event|schema|script|terminal|workspace|fleet): `)

// insideTheCell is advice of the CLI about an address that exists inside the cell only.
var insideTheCell = regexp.MustCompile(` This is a server-side issue, [^\n]*check your inference gateway \([^)\n]*\)\.`)

// Text is the text of an error without the names of packages.
func Text(text string) string {
	text = insideTheCell.ReplaceAllString(text, "")
	for { // matches do not overlap, but names may follow each other
		shorter := packageNames.ReplaceAllStringFunc(text, func(found string) string {
			switch {
			case strings.Count(found, ":") > 2:
				return found
			case strings.HasPrefix(found, ": "):
				return ": "
			}
			return ""
		})
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
