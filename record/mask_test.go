// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-agents/drover/internal/plainjson"
)

func TestMasker_NameBesideItsText(t *testing.T) {
	m := newMasker(nil)
	long := strings.Repeat("x y", 5000)
	for _, c := range []struct{ what, name, text, want string }{
		{"a secret by its name", "password", long, m.known.Mark()},
		{"a text", "note", long, long},
		{"a text with a word of a form", "note", long + " token", long + " token"},
		{"a short one", "clientSecret", "correct horse", m.known.Mark()},
	} {
		raw := `{"a":"\n","` + c.name + `":"` + c.text + `"}`
		if got, want := string(m.json([]byte(raw))), `{"a":"\n","`+c.name+`":"`+c.want+`"}`; got != want {
			t.Errorf("%s: got %d bytes, want %d", c.what, len(got), len(want))
		}
	}
}

// A value is found in JSON that has other escapes than ours.
func TestMasker_SpellingsOfAValue(t *testing.T) {
	for _, value := range []string{"plain value", "a\"quoted\" one", "two\nlines", "back\\slash", "<html> & more", "tab\t\b\f\x01", "line\u2028and \"quote\"", "é\"ü\"", "a/slash\"es"} {
		m := newMasker([]string{value})
		quoted, err := json.Marshal(map[string]string{"text": "It is\n\"" + value + "\"."})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := plainjson.Marshal(map[string]string{"text": "It is\n\"" + value + "\"."})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []string{
			string(quoted), string(plain), strings.ReplaceAll(string(plain), "/", `\/`), strings.ReplaceAll(string(plain), "a", `\u0061`), strings.ReplaceAll(string(quoted), `\u2028`, "\u2028"),
		} {
			var got map[string]string
			if err := json.Unmarshal(m.json([]byte(raw)), &got); err != nil || got["text"] != "It is\n\"[redacted]\"." {
				t.Errorf("%s becomes %q, %v", raw, got, err)
			}
		}
		nested := value // as JSON in JSON in JSON, which a tool returns that has read a log
		for range 3 {
			text, err := plainjson.Marshal(map[string]string{"text": nested})
			if err != nil {
				t.Fatal(err)
			}
			nested = string(text)
		}
		if got := string(m.json([]byte(nested))); !strings.Contains(got, "[redacted]") {
			t.Errorf("%s stays as it is", got)
		}
	}
}
