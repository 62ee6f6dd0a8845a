// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// Go code begins lines with tabs. The scanner of the library loses a character for each tab in a double-quoted text.
func TestParseYAML_TabsInQuotedTexts(t *testing.T) {
	for _, quoted := range []string{
		`"` + "\t" + `return 1"`, `"` + "\t\t" + `x"`, `"x` + "\t" + `y"`, `"x` + "\t" + `"`, `"` + "\t" + `"`, `"a \"` + "\t" + `b\" é ` + "\t" + `c"`,
		`"` + "\t" + `{[,]}: #"`, `"\t` + "\t" + `x"`, `"` + "\t" + "é\tü" + `"`,
	} {
		var want string
		if err := json.Unmarshal([]byte(strings.ReplaceAll(quoted, "\t", `\t`)), &want); err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{
			"a: %s\nb: c\n", "a: %s\n\nb: %[1]s\n", "{a: %s, b: c}\n", "{\"a\": %s,\"b\": \"c\"}", "{\n\t\"a\": %s,\n\t\"b\":\t\"c\"\n}\n", "a:\t%s\t# \"\t\nb: 'it\t\"s'\n",
			"x:\n- a: %s\n  b: [%[1]s, %[1]s]\n", "c: |\n  \"\tx\n  y\t\"\na: %s\nb: c\n", "é: \"ü\"\na: %s\nb: c\n",
		} {
			text := fmt.Sprintf(form, quoted)
			text, _, _ = strings.Cut(text, "%!(EXTRA")
			want := strings.ReplaceAll(strings.ReplaceAll(text, quoted, plainQuoted(want)), "\t", " ")
			if got, spaces := decoded(t, text), decoded(t, want); !reflect.DeepEqual(untabbed(got), untabbed(spaces)) || !strings.Contains(fmt.Sprintf("%q", got), fmt.Sprintf("%q", mustText(t, quoted))) {
				t.Errorf("%q is read as\n%q, want\n%q", text, got, spaces)
			}
		}
	}
	for text, want := range map[string]any{
		"a: \"x\n  \ty\n\n  \tz \t\n  w\"\nb: c\n": map[string]any{"a": "x y\nz w", "b": "c"},
		"a: \"x\\\n  \ty\"\nb: c\n":                map[string]any{"a": "xy", "b": "c"},
		"a: |\n  x\n  \ty \"\tz\"\nb: c\n":         map[string]any{"a": "x\n\ty \"\tz\"\n", "b": "c"},
	} {
		if got := decoded(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}

func plainQuoted(text string) string {
	raw, _ := json.Marshal(text) // a string
	return string(raw)
}

func mustText(t *testing.T, quoted string) (text string) {
	t.Helper()
	if err := json.Unmarshal([]byte(strings.ReplaceAll(quoted, "\t", `\t`)), &text); err != nil {
		t.Fatal(err)
	}
	return text
}

// untabbed is a value whose texts have spaces for tabs.
func untabbed(value any) string { return strings.ReplaceAll(fmt.Sprintf("%q", value), `\t`, " ") }

func decoded(t *testing.T, text string) any {
	t.Helper()
	file, err := ParseYAML(text)
	if err != nil {
		t.Errorf("%q: %v", text, err)
		return nil
	}
	var value any
	if err := yaml.NodeToValue(file.Docs[0].Body, &value); err != nil {
		t.Errorf("%q: %v", text, err)
	}
	return value
}
