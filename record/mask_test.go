// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"
)

func TestMasker_NameBesideALongText(t *testing.T) {
	m := newMasker(nil)
	// Cut where the name is looked at first, the capitals are a key of the form that AWS has; the whole is not.
	longer := strings.Repeat(" ", maxPair-20) + "AKIA" + strings.Repeat("A", 40)
	for _, c := range []struct{ what, name, text, want string }{
		{"a secret by its name", "password", strings.Repeat("x y", maxPair), m.known.Mark()},
		{"a text", "note", strings.Repeat("x y", maxPair), strings.Repeat("x y", maxPair)},
		{"a text that the cut makes a secret", "note", longer, longer},
	} {
		raw := `{"a":"\n","` + c.name + `":"` + c.text + `"}`
		if got, want := string(m.json([]byte(raw))), `{"a":"\n","`+c.name+`":"`+c.want+`"}`; got != want {
			t.Errorf("%s: got %d bytes, want %d", c.what, len(got), len(want))
		}
	}
}
