// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown writes segments so that a test can name them: literal text in quotes, placeholders as <x>.
func shown(segments []segment) string {
	var parts []string
	for _, s := range segments {
		if s.name != "" {
			parts = append(parts, "<"+s.name+">")
		} else {
			parts = append(parts, fmt.Sprintf("%q", s.text))
		}
	}
	return strings.Join(parts, " ")
}

func TestPlaceholder_DollarSignsFollowOneRule(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no placeholder", "plain", `"plain"`},
		{"nothing", "", ""},
		{"a name", "see $path.", `"see " <path> "."`},
		{"a name in braces", "${path}s", `<path> "s"`},
		{"underscores and digits", "$_a1 $a_2", `<_a1> " " <a_2>`},
		{"an escaped dollar", "$$x", `"$" "x"`},
		{"three dollars", "$$$x", `"$" <x>`},
		{"money", "it costs $5", `"it costs $5"`},
		{"a dollar before a space", "a $ b", `"a $ b"`},
		{"a dollar at the end", "end$", `"end$"`},
		{"a dollar before an accent", "$é", `"$é"`},
		{"a name ends at the first letter that is not ASCII", "$pathé", `<path> "é"`},
		{"two names in a row", "$a$b", `<a> <b>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, flaws := scan(c.text)
			if shown(got) != c.want || flaws != nil {
				t.Errorf("scan(%q) = %s with flaws %v, want %s", c.text, shown(got), flaws, c.want)
			}
		})
	}
}

func TestPlaceholder_InvalidBracesAreReportedWithTheirPosition(t *testing.T) {
	for _, c := range []struct {
		name, text, reason string
		line, column       int
	}{
		{"not closed", "a ${path", "${ is not closed in its line: ${path", 1, 3},
		{"closed in another line", "a\n é ${path\n}", "${ is not closed in its line: ${path", 2, 4},
		{"a space", "${not valid}", "${not valid} is not a name: letters, digits and _, not a digit first", 1, 1},
		{"empty", "${}", "${} is not a name: letters, digits and _, not a digit first", 1, 1},
		{"a digit first", "${1a}", "${1a} is not a name: letters, digits and _, not a digit first", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, flaws := scan(c.text)
			if len(flaws) != 1 {
				t.Fatalf("scan(%q) has flaws %v, want one", c.text, flaws)
			}
			line, column := position(c.text, flaws[0].offset)
			if flaws[0].reason != c.reason || line != c.line || column != c.column {
				t.Errorf("got %d:%d %s, want %d:%d %s", line, column, flaws[0].reason, c.line, c.column, c.reason)
			}
		})
	}
}

// A search for the end of each would take many times as long.
func TestPlaceholder_ManyOpenBracesTakeLinearTime(t *testing.T) {
	const braces = 1 << 17
	if _, flaws := scan(strings.Repeat("${", braces)); len(flaws) != braces {
		t.Errorf("%d flaws, want %d", len(flaws), braces)
	}
}

func TestDedent_RemovesTheCommonIndent(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"one line", "  a  ", "a"},
		{"a raw literal", "\n\t\tFirst\n\n\t\t\tindented\n\t\tlast\n\t", "First\n\n\tindented\nlast"},
		{"tabs and spaces are not the same", "\ta\n    b", "\ta\n    b"},
		{"a first line that is indented further", "\n    code\n\n  text\n", "  code\n\ntext"},
		{"blank lines do not count", "  a\n\n \n  b", "a\n\n\nb"},
		{"lines of Windows", "  a\r\n  b\r\n", "a\nb"},
		{"blank", " \n\t\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, dedent(c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzScan(f *testing.F) {
	for _, seed := range []string{"", "$", "$$", "$$$", "a $x ${y} $$ $5 ${", "${}", "${a b}", "$é", "${x\n}", "\xff${\xff}", "  $a\n  ${b}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		segments, flaws := scan(text)
		var again strings.Builder
		placeholders := 0
		for _, s := range segments {
			if s.offset != again.Len() {
				t.Fatalf("segment %q has offset %d, is at %d", s.source, s.offset, again.Len())
			}
			again.WriteString(s.source)
			if s.name != "" {
				placeholders++
			}
		}
		if again.String() != text {
			t.Fatalf("the segments of %q give %q", text, again.String())
		}
		for _, fl := range flaws {
			if line, column := position(text, fl.offset); line < 1 || column < 1 || !strings.HasPrefix(text[fl.offset:], "${") {
				t.Fatalf("flaw %+v of %q is at no place", fl, text)
			}
		}
		// Taking off indentation neither makes nor loses placeholders.
		dedented, _ := scan(dedent(text))
		for _, s := range dedented {
			if s.name != "" {
				placeholders--
			}
		}
		if placeholders != 0 {
			t.Fatalf("dedent changes the placeholders of %q", text)
		}
	})
}
