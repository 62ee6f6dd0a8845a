// SPDX-License-Identifier: Apache-2.0

package plainjson

import "testing"

func TestMember_FindsAField(t *testing.T) {
	text := `{"a": {"b": [1, {"c": 2}]}, "c": "x", "c": "y"}`
	for _, c := range []struct {
		at         int
		name, want string
	}{
		{0, "a", `{"b": [1, {"c": 2}]}`}, {6, "b", `[1, {"c": 2}]`}, {0, "c", `"x"`}, {0, "b", ""}, {12, "c", ""},
	} {
		from, to, ok := Member([]byte(text), c.at, c.name)
		if got := text[from:to]; ok != (c.want != "") || got != c.want {
			t.Errorf("%q at %d is %q (%v), want %q", c.name, c.at, got, ok, c.want)
		}
	}
}
