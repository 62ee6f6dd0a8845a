// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"strings"
)

// Manual is what a model is told of the tool where it is served: the description, why it should not
// be used any more, and the examples.
func (t *Tool) Manual() string {
	var b strings.Builder
	b.WriteString(t.Description)
	if t.Deprecated != "" {
		fmt.Fprintf(&b, "\n\nDeprecated: %s", t.Deprecated)
	}
	for i, e := range t.Examples {
		if i == 0 {
			b.WriteString("\n\nExamples:")
		}
		fmt.Fprintf(&b, "\n%s", e.Input)
		if len(e.Output) > 0 {
			fmt.Fprintf(&b, " gives %s", e.Output)
		}
		if e.Description != "" {
			fmt.Fprintf(&b, " (%s)", e.Description)
		}
	}
	return b.String()
}
