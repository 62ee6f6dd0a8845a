// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"math/rand/v2"
	"strings"
)

// words make text with the mixture of an agent's output: prose, code, quotes, line ends, and a few letters outside ASCII.
var words = []string{
	"the", "file", "reads", "a", "config", "and", "returns", "an", "error", "when", "it", "is", "missing",
	"func", "main()", "{", "}", "if", "err", "!=", "nil", "return", "`go test`", "\"quoted\"", "C:\\path",
	"naïve", "→", "café", "internal/server/handler.go:42", "\n", "\n\n\t", "//", "0x1f", "TODO-list", "<div>", "&&",
}

func prose(r *rand.Rand, size int) string {
	var b strings.Builder
	b.Grow(size + 32)
	for b.Len() < size {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
}
