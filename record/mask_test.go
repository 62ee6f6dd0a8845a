// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"
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
