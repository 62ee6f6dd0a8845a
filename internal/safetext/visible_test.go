// SPDX-License-Identifier: Apache-2.0

package safetext_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/drover-agents/drover/internal/safetext"
)

func TestLine_ShowsMisleadingCharacters(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"plain text", `ls -l "a b" C:\tmp`, `ls -l "a b" C:\tmp`},
		{"other scripts", "größe 漢字 🙂", "größe 漢字 🙂"},
		{"clear the screen", "Bash\x1b[2J", `Bash\x1b[2J`},
		{"one-byte control sequence", "ls \u009b31m", `ls \u009b31m`},
		{"title of the window", "\x1b]0;sudo\a", `\x1b]0;sudo\a`},
		{"go back and overwrite", "rm -rf /\rls", `rm -rf /\rls`},
		{"backspaces", "rm\b\bls", `rm\b\bls`},
		{"a second question", "ok\nAllow it? y", `ok\nAllow it? y`},
		{"tab", "a\tb", `a\tb`},
		{"line separators", "a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`},
		{"other direction", "a\u202egnp.exe", `a\u202egnp.exe`},
		{"isolates", "a\u2066b\u2069", `a\u2066b\u2069`},
		{"no width", "a\u200bb\ufeffc\u00add", `a\u200bb\ufeffc\u00add`},
		{"spaces that are not ASCII", "a\u00a0b\u3000c", `a\u00a0b\u3000c`},
		{"letters without ink", "a\u3164b\u115fc\uffa0d\u2800e", `a\u3164b\u115fc\uffa0d\u2800e`},
		{"marks without ink", "a\ufe0fb\u034fc\U000e0100", `a\ufe0fb\u034fc\U000e0100`},
		{"tags", "a\U000e0041b", `a\U000e0041b`},
		{"private use", "a\ue000", `a\ue000`},
		{"NUL and DEL", "\x00\x7f", `\x00\x7f`},
		{"broken UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
		{"the replacement character itself", "a\ufffdb", "a\ufffdb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := safetext.Line(tt.in); got != tt.want {
				t.Errorf("Text(%q) = %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

func TestLines_KeepsTextWithoutControlCharacters(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"several lines", "a\n\tb\n", "a\n\tb\n"},
		{"a family of one emoji", "👩\u200d👩\u200d👧 ❤\ufe0f", "👩\u200d👩\u200d👧 ❤\ufe0f"},
		{"spaces of other scripts", "a\u00a0b\u3000c", "a\u00a0b\u3000c"},
		{"clear the screen", "a\x1b[2Jb", `a\x1b[2Jb`},
		{"one-byte control sequence", "a\u009b31m", `a\u009b31m`},
		{"go back and overwrite", "a\rb\bc", `a\rb\bc`},
		{"other direction", "a\u202eb\u2066c", `a\u202eb\u2066c`},
		{"line separators", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"broken UTF-8", "a\xffb", `a\xffb`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := safetext.Lines(tt.in); got != tt.want {
				t.Errorf("Lines(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestLine_PlainTextIsNotCopied(t *testing.T) {
	in := strings.Repeat("größe ", 100)
	if n := testing.AllocsPerRun(10, func() { _ = safetext.Line(in) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "ls", "\x1b[2J\r\n", "\xff\xc3(", "a\u202eb\u200b", `\x1b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := safetext.Line(s)
		if !utf8.ValidString(got) {
			t.Fatalf("Text(%q) = %q is not UTF-8", s, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("Text(%q) = %q has %U", s, got, r)
			}
		}
		if lines := safetext.Lines(s); !utf8.ValidString(lines) || strings.ContainsAny(lines, "\x1b\r\a\b\u009b") {
			t.Fatalf("Lines(%q) = %q", s, lines)
		}
		if again := safetext.Line(got); again != got {
			t.Fatalf("Text of %q is %q: what may be shown is left alone", got, again)
		}
	})
}

func ExampleLine() {
	fmt.Println(safetext.Line("rm -rf ~\rls -l"))
	// Output: rm -rf ~\rls -l
}
