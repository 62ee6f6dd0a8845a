// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/token"

	"github.com/drover-agents/drover/advice"
)

// A syntaxError is one of the parser that cannot bear to be shown with its lines.
type syntaxError struct{ t *testing.T }

func (e syntaxError) Error() string {
	e.t.Error("the lines around the place are shown, however long they are")
	return ""
}

func (e syntaxError) FormatError(bool, bool) string { return e.Error() }
func (syntaxError) GetMessage() string              { return "it is wrong" }

func (syntaxError) GetToken() *token.Token {
	return &token.Token{Position: &token.Position{Line: 3, Column: 7}}
}

func TestPositioned_DoesNotAskForTheLines(t *testing.T) {
	if got := PositionedYAMLError(syntaxError{t: t}); got.Reason != "it is wrong" || got.Line != 3 || got.Column != 7 {
		t.Errorf("got %+v", got)
	}
}

func TestParse_Limits(t *testing.T) {
	longKey := strings.Repeat("k", 100_000)
	deep := func(n int, key string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat(" ", i), key)
		}
		return b.String() + strings.Repeat(" ", n) + "a: b\n"
	}
	for name, c := range map[string]struct{ text, says string }{
		"marks":               {strings.Repeat("a,", maxMarks+1), "more than 100000 brackets"},
		"line ends":           {strings.Repeat("\n", maxMarks+1), "more than 100000 brackets"},
		"tokens":              {"[" + strings.Repeat("a,", maxTokens/2) + "]", "more than 30000 keys"},
		"brackets":            {strings.Repeat("[", maxDepth+1), "more than 200 brackets"},
		"list markers":        {strings.Repeat("- ", maxDepth+1), "more than 200 brackets"},
		"mappings":            {deep(maxDepth+1, "a"), "more than 200 brackets"},
		"keys":                {strings.Repeat("a: b\n", maxKeys+1), "more than 2000 keys"},
		"values of long key":  {longKey + ": [" + strings.Repeat("a,", 100) + "]", "too long, or nested too deep"},
		"nested long keys":    {deep(100, longKey[:100]) + strings.Repeat("# a\n", 1000), "too long, or nested too deep"},
		"long key in mapping": {"a: {" + longKey + ": {" + strings.Repeat("a: b, ", 100) + "}}", "too long, or nested too deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseYAML(c.text)
			e, ok := errors.AsType[*YAMLError](err)
			if !ok || !e.Excess || !strings.Contains(e.Reason, c.says) || e.Line < 1 || e.Column < 1 {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	if _, err := ParseYAML("? a\n: b\n"); err == nil || !strings.Contains(advice.Text(err), "begins with ?") {
		t.Errorf("explicit key: got %v", err)
	}
	for name, text := range map[string]string{
		"prose":    "text: |\n" + strings.Repeat("  A line of a text, with commas: and a [bracket] or two.\n", 2000),
		"long key": longKey + ": 1\n",
		"many":     strings.Repeat("- {key: some-key, title: A title, text: some text}\n", 1500),
		"deep":     deep(maxDepth-2, "a"),
	} {
		if _, err := ParseYAML(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
