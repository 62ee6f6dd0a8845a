// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/prompt"
)

const costHead = "version: 1\nsections:\n  - key: t\n    title: T\n    text: hi\n"

func rep(unit string, n int) string { return strings.Repeat(unit, max(1, n/len(unit))) }

func each(n int, f func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(f(i))
	}
	return b.String()
}

// shapes are files that took more than their share of time or memory once, or could.
var shapes = testkit.Shapes{
	"render": func(n int) string {
		return "version: 1\nargs:\n  a: {default: \"" + strings.Repeat("x", n/2) + "\"}\nsections:\n  - key: t\n    title: T\n    text: \"" + rep("${a}", n/2) + "\"\n"
	},
	"rendermany": func(n int) string {
		return "version: 1\nargs:\n  a: {default: \"" + strings.Repeat("x", n/2) + "\"}\nsections:\n" + each(n/2, func(i int) string { return fmt.Sprintf("  - {key: k%d, title: T, text: \"${a}\"}\n", i) })
	},
	"args": func(n int) string {
		return costHead + "args:\n" + each(n, func(i int) string { return fmt.Sprintf("  a%d: {default: \"x\"}\n", i) })
	},
	"argsused": func(n int) string {
		return "version: 1\nargs:\n" + each(n/2, func(i int) string { return fmt.Sprintf("  a%d: {default: \"x\"}\n", i) }) + "sections:\n  - key: t\n    title: T\n    text: \"" + each(n/2, func(i int) string { return fmt.Sprintf("${a%d}", i%(n/50)) }) + "\"\n"
	},
	"unknown": func(n int) string {
		return costHead + each(n, func(i int) string { return fmt.Sprintf("z%d: 1\n", i) })
	},
	"unknownflow": func(n int) string {
		return costHead + "limits: {" + each(n, func(i int) string { return fmt.Sprintf("z%d: 1, ", i) }) + "turns: 1}\n"
	},
	"longkey": func(n int) string {
		return costHead + "args:\n  ? " + strings.Repeat("k", n/2) + "\n  : {" + each(n/2, func(i int) string { return fmt.Sprintf("z%d: 1, ", i) }) + "}\n"
	},
	"longplain": func(n int) string {
		return costHead + "args:\n  " + strings.Repeat("k", n/2) + ": {" + each(n/2, func(i int) string { return fmt.Sprintf("z%d: 1, ", i) }) + "}\n"
	},
	"mounts": func(n int) string {
		return costHead + "mounts:\n" + each(n, func(i int) string { return fmt.Sprintf("  - {path: p, as: m%d}\n", i) })
	},
	"mountssame": func(n int) string {
		return costHead + "mounts:\n" + each(n, func(i int) string { return "  - {path: p}\n" })
	},
	"sections": func(n int) string {
		return costHead + each(n, func(i int) string { return fmt.Sprintf("  - {key: s%d, title: T, text: x}\n", i) })
	},
	"sectionsame": func(n int) string {
		return costHead + each(n, func(i int) string { return "  - {key: s, title: T, text: x}\n" })
	},
	"children": func(n int) string {
		var b strings.Builder
		b.WriteString(costHead)
		in := "    "
		for i := 0; b.Len() < n && i < 90; i++ {
			b.WriteString(in + "children:\n" + in + "  - key: k\n" + in + "    title: T\n" + in + "    text: x\n")
			in += "    "
		}
		return b.String()
	},
	"deepindent": func(n int) string {
		var b strings.Builder
		b.WriteString(costHead)
		in := ""
		for b.Len() < n {
			b.WriteString(in + "a:\n")
			in += " "
		}
		return b.String()
	},
	"enumwhen": func(n int) string {
		return "version: 1\nargs:\n  a: {default: \"e1\", enum: [" + each(n/2, func(i int) string { return fmt.Sprintf("e%d,", i) }) + "e]}\nsections:\n  - {key: t, title: T, text: hi}\n" + each(n/2, func(i int) string { return fmt.Sprintf("  - {key: s%d, title: T, text: x, when: {a: nope}}\n", i) })
	},
	"enumbad": func(n int) string {
		return costHead + "args:\n  a: {enum: [" + each(n, func(i int) string { return fmt.Sprintf("%d,", i) }) + "1]}\n"
	},
	"whenunknown": func(n int) string {
		return "version: 1\nargs:\n" + each(n/2, func(i int) string { return fmt.Sprintf("  a%d: {default: \"x\"}\n", i) }) + "sections:\n" + each(n/2, func(i int) string { return fmt.Sprintf("  - {key: s%d, title: T, text: x, when: {b%d: nope}}\n", i, i) })
	},
	"placeholderunknown": func(n int) string {
		return "version: 1\nargs:\n" + each(n/2, func(i int) string { return fmt.Sprintf("  a%d: {default: \"x\"}\n", i) }) + "sections:\n  - {key: t, title: T, text: \"" + each(n/2, func(i int) string { return fmt.Sprintf("${b%d}", i) }) + "\"}\n"
	},
	"servers": func(n int) string {
		return costHead + "tools:\n  allow: [" + each(n/2, func(i int) string { return fmt.Sprintf("T%d,", i) }) + "X]\nservers:\n" + each(n/2, func(i int) string { return fmt.Sprintf("  s%d: {command: [x]}\n", i) })
	},
	"urls": func(n int) string {
		return costHead + "servers:\n" + each(n/2, func(i int) string { return fmt.Sprintf("  s%d: {url: \"http://x/\"}\n", i) }) + "isolation: {network: {domains: [" + each(n/2, func(i int) string { return fmt.Sprintf("d%d.com,", i) }) + "x.com]}}\n"
	},
	"domains": func(n int) string {
		return costHead + "isolation: {network: {domains: [" + each(n, func(i int) string { return fmt.Sprintf("d%d.com,", i) }) + "x.com]}}\n"
	},
	"rules": func(n int) string {
		return costHead + "policy: {allow: [" + each(n, func(i int) string { return fmt.Sprintf("\"Bash(a%d *)\",", i) }) + "Read]}\n"
	},
	"badrules": func(n int) string {
		return costHead + "policy: {allow: [" + each(n, func(i int) string { return "\"Bash(a\"," }) + "Read]}\n"
	},
	"globs": func(n int) string {
		return costHead + "mounts:\n  - {path: p, exclude: [" + each(n, func(i int) string { return "\"**/{a,b}*\"," }) + "x]}\n"
	},
	"braces": func(n int) string {
		return costHead + "mounts:\n  - {path: p, exclude: [\"" + rep("{a,b}", n) + "\"]}\n"
	},
	"feedback":    func(n int) string { return costHead + "feedback:\n" + rep("  - {text: x, everyCalls: 5}\n", n) },
	"feedbackbad": func(n int) string { return costHead + "feedback:\n" + rep("  - {deadline: 5s}\n", n) },
	"numbers":     func(n int) string { return costHead + "tools: [" + rep("1,", n) + "1]\n" },
	"enumlist":    func(n int) string { return costHead + "tools: {allow: [" + rep("A,", n) + "B]}\n" },
	"nulls":       func(n int) string { return costHead + each(n, func(i int) string { return fmt.Sprintf("z%d:\n", i) }) },
	"nullsdeep": func(n int) string {
		return costHead + each(n, func(i int) string { return fmt.Sprintf("z%d:\n a:\n  a:\n   a:\n", i) })
	},
	"listnulls": func(n int) string {
		return costHead + "tools:\n" + each(n, func(i int) string { return "- a:\n  b:\n" })
	},
	"flownulls": func(n int) string {
		return costHead + "tools: {" + each(n, func(i int) string { return fmt.Sprintf("a%d,", i) }) + "b}\n"
	},
	"flownulls2": func(n int) string {
		return costHead + "tools: [" + each(n, func(i int) string { return fmt.Sprintf("a%d: ,", i) }) + "b]\n"
	},
	"deepmany": func(n int) string {
		var b strings.Builder
		b.WriteString(costHead)
		for b.Len() < n {
			in := ""
			for i := 0; i < 100; i++ {
				b.WriteString(in + "a:\n")
				in += " "
			}
		}
		return b.String()
	},
	"flowdeep": func(n int) string {
		return costHead + "tools: [" + rep(strings.Repeat("[", 100)+strings.Repeat("]", 100)+",", n) + "]\n"
	},
	"flowdeepmap": func(n int) string {
		return costHead + "tools: [" + rep(strings.Repeat("{aaaaaaaaaaaaaaaaaaaa: ", 100)+strings.Repeat("}", 100)+",", n) + "]\n"
	},
	"comments": func(n int) string { return costHead + rep("# c\n", n) },
	"newlines": func(n int) string { return costHead + rep("\n", n) },
	"docs":     func(n int) string { return costHead + rep("---\n", n) },
	"tags":     func(n int) string { return costHead + "tools: [" + rep("!a b,", n) + "1]\n" },
	"anchors": func(n int) string {
		return costHead + "tools: [" + each(n, func(i int) string { return fmt.Sprintf("&a%d x,", i) }) + "1]\n"
	},
	"aliases": func(n int) string { return costHead + "x: &a 1\ntools: [" + rep("*a,", n) + "1]\n" },
	"dups":    func(n int) string { return costHead + rep("key: a\n", n) },
	"quoted":  func(n int) string { return costHead + "description: \"" + rep("\\n", n) + "\"\n" },
	"single":  func(n int) string { return costHead + "description: '" + rep("''", n) + "'\n" },
	"literal": func(n int) string { return costHead + "description: |\n" + rep("  x\n", n) },
	"literalwide": func(n int) string {
		return costHead + "description: |\n" + rep("  long line of words and more words and so on, with commas: yes\n", n)
	},
	"folded":      func(n int) string { return costHead + "description: >\n" + rep("  x\n", n) },
	"plainmulti":  func(n int) string { return costHead + "description:\n" + rep("  x\n", n) },
	"plainlong":   func(n int) string { return costHead + "description: " + rep("x ", n) + "\n" },
	"quotedmulti": func(n int) string { return costHead + "description: \"\n" + rep("  x\n", n) + "\"\n" },
	"spaces":      func(n int) string { return costHead + "description: x" + rep(" ", n) + "\n" },
	"colons":      func(n int) string { return costHead + "description: \"" + rep("a: b ", n) + "\"\n" },
	"dashes":      func(n int) string { return costHead + "tools:\n" + rep("-\n", n) },
	"questions":   func(n int) string { return costHead + rep("? a\n", n) },
	"unclosed":    func(n int) string { return costHead + "tools: [" + rep("a, ", n) },
	"badutf":      func(n int) string { return costHead + "description: " + rep("\xff", n) },
	"schemaprops": func(n int) string {
		return costHead + "output:\n  schema:\n    type: object\n    properties: {" + each(n, func(i int) string { return fmt.Sprintf("p%d: {type: string}, ", i) }) + "x: {type: string}}\n"
	},
	"schemapattern": func(n int) string {
		return costHead + "output:\n  schema:\n    type: object\n    properties: {" + each(n, func(i int) string { return fmt.Sprintf("p%d: {type: string, pattern: \"a{1000}\"}, ", i) }) + "x: {type: string}}\n"
	},
	"schemaref": func(n int) string {
		var b strings.Builder
		b.WriteString(costHead + "output:\n  schema:\n    type: object\n    properties: {a: {$ref: '#/$defs/d0'}}\n    $defs:\n")
		i := 0
		for ; b.Len() < n; i++ {
			fmt.Fprintf(&b, "      d%d: {type: object, properties: {a: {$ref: '#/$defs/d%d'}, b: {$ref: '#/$defs/d%d'}}}\n", i, i+1, i+1)
		}
		fmt.Fprintf(&b, "      d%d: {type: string}\n", i)
		return b.String()
	},
	"schemaenum": func(n int) string {
		return costHead + "output:\n  schema:\n    type: object\n    properties: {a: {enum: [" + each(n, func(i int) string { return fmt.Sprintf("e%d,", i) }) + "x]}}\n"
	},
	"schemareq": func(n int) string {
		return costHead + "output:\n  schema:\n    type: object\n    required: [" + each(n, func(i int) string { return fmt.Sprintf("e%d,", i) }) + "x]\n"
	},
	"schemaanyof": func(n int) string {
		return costHead + "output:\n  schema:\n    type: object\n    properties: {a: {anyOf: [" + each(n, func(i int) string { return "{type: string}," }) + "{type: integer}]}}\n"
	},
	"schemabadkw": func(n int) string {
		return costHead + "output:\n  schema:\n    type: object\n    properties: {" + each(n, func(i int) string { return fmt.Sprintf("p%d: {type: 5}, ", i) }) + "x: {type: string}}\n"
	},
	"requirebefore": func(n int) string {
		return costHead + "policy:\n  requireBefore:\n" + each(n, func(i int) string { return fmt.Sprintf("    t%d: [Read]\n", i) })
	},
	"skillsmissing": func(n int) string {
		return costHead + "skills: [" + each(n, func(i int) string { return "s," }) + "x]\n"
	},
}

// A file of any form costs time and memory as its size does, whether it is an agent or not.
func TestParse_CostGrowsWithTheFile(t *testing.T) {
	testkit.LinearCost(t, shapes, testkit.Size(300_000, 900_000), 160<<20, func(text string) {
		f, err := Parse([]byte(text), "a.yaml")
		if err == nil {
			var p *prompt.Prompt[prompt.JSON]
			if p, err = f.Prompt(nil); err == nil {
				_, err = p.Render(nil)
			}
		}
		if err != nil && len(err.Error()) > 1<<20 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	})
}
