// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/internal/testkit"
)

func rep(unit string, n int) string { return strings.Repeat(unit, max(1, n/len(unit))) }

func each(n int, f func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(f(i))
	}
	return b.String()
}

// shapes are scripts that took more than their share of time or memory once, or could.
var shapes = testkit.Shapes{
	"turns":    func(n int) string { return "version: 1\nturns:\n" + rep("  - text: x\n", n) },
	"badturns": func(n int) string { return "version: 1\nturns:\n" + rep("  - chunk: -1\n", n) },
	"unknown": func(n int) string {
		return "version: 1\n" + each(n, func(i int) string { return fmt.Sprintf("z%d: 1\n", i) }) + "turns: []\n"
	},
	"content": func(n int) string { return "version: 1\nturns:\n  - content:\n" + rep("      - text: x\n", n) },
	"input": func(n int) string {
		return "version: 1\nturns:\n  - content:\n      - tool: T\n        input: [" + rep("1,", n) + "1]\n"
	},
	"inputmap": func(n int) string {
		return "version: 1\nturns:\n  - content:\n      - tool: T\n        input: {" + each(n, func(i int) string { return fmt.Sprintf("z%d: 1, ", i) }) + "}\n"
	},
	"when": func(n int) string {
		return "version: 1\nturns:\n  - text: x\n    when:\n      all: [" + rep("{text: a},", n) + "{text: b}]\n"
	},
	"headers": func(n int) string {
		return "version: 1\nturns:\n  - text: x\n    headers: {" + each(n, func(i int) string { return fmt.Sprintf("z%d: a, ", i) }) + "}\n"
	},
	"deepnot": func(n int) string {
		var b strings.Builder
		b.WriteString("version: 1\nturns:\n  - text: x\n    when:\n")
		in := "      "
		for b.Len() < n {
			b.WriteString(in + "not:\n")
			in += " "
		}
		b.WriteString(in + "text: a\n")
		return b.String()
	},
	"longtext": func(n int) string { return "version: 1\nturns:\n  - text: \"" + strings.Repeat("x", n) + "\"\n" },
	"aliases":  func(n int) string { return "version: 1\nturns: [" + rep("*a,", n) + "]\n" },
	"numbers":  func(n int) string { return "version: 1\nx: [" + rep("1,", n) + "1]\n" },
	"usage": func(n int) string {
		return "version: 1\nturns:\n" + rep("  - {text: x, usage: {input: 1, output: 1, cache_read: 1, cache_creation: 1}}\n", n)
	},
	"inputmulti": func(n int) string {
		return "version: 1\nturns:\n" + rep("  - {content: [{tool: T, input: {a: 1}}]}\n", n)
	},
}

// A script of any form costs time and memory as its size does, whether it can be used or not.
func TestRead_CostGrowsWithTheScript(t *testing.T) {
	testkit.LinearCost(t, shapes, testkit.Size(400_000, 4_000_000), 256<<20, func(text string) {
		if _, err := script.Read(strings.NewReader(text)); err != nil && len(err.Error()) > 1<<20 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	})
}
