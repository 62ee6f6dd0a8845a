// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"
)

// evaluates reports whether a command of the shell itself may run what is in its words: where it takes
// the name of a variable or a number, "a[$(rm x)]" runs rm, in quotes too. A variable may hold that.
func evaluates(words []string) bool {
	name, rest := programName(words[0]), words[1:]
	switch name {
	case "test", "[":
		return slices.ContainsFunc(rest, isSubscript) || testEvaluates(rest)
	case "printf":
		return len(rest) > 0 && (isComputed(rest[0]) && mayBeOption(rest[0]) ||
			strings.HasPrefix(rest[0], "-v") && slices.ContainsFunc(rest[:min(2, len(rest))], mayBeSubscript))
	case "mapfile", "readarray":
		return slices.ContainsFunc(rest, mayBeSubscript) || slices.ContainsFunc(rest, isCallback)
	case "read", "unset", "wait", "getopts":
		return slices.ContainsFunc(rest, mayBeSubscript)
	}
	return false
}

func isSubscript(word string) bool {
	return strings.Contains(word, "[") && strings.ContainsAny(word, "$`")
}

func mayBeSubscript(word string) bool { return isComputed(word) || isSubscript(word) }

// isCallback reports whether an option of mapfile names a command.
func isCallback(word string) bool {
	return strings.HasPrefix(word, "-") && strings.Contains(word, "C")
}

// testEvaluates reports whether a test may take a computed word for the name of a variable or, as zsh does, for a formula.
func testEvaluates(rest []string) bool {
	if !slices.ContainsFunc(rest, isComputed) {
		return false
	}
	for i, w := range rest {
		if slices.Contains(evaluatingTests, w) || strings.IndexByte(w, computed) >= 0 {
			return true
		}
		if isComputed(w) && i+1 < len(rest) && !slices.Contains(afterOperand, rest[i+1]) {
			return true // it may be the operator
		}
	}
	return false
}

var (
	evaluatingTests = []string{"-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
	afterOperand    = []string{"=", "==", "!=", "<", ">", "-nt", "-ot", "-ef", "-a", "-o", "]", ")"}
)
