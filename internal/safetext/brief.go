// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"fmt"
	"strings"
)

// What an error shows of a text or a list that others wrote.
const (
	mostText = 200
	mostList = 20
)

// Start is the beginning of a long text, for an error that has to name it. It is cut between characters.
func Start(s string) string {
	if len(s) <= mostText {
		return s
	}
	return strings.ToValidUTF8(s[:mostText], "") + "…"
}

// Few lists the first of many names, for an error that has to name them.
func Few(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i == mostList {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Start(name))
	}
	return b.String()
}
