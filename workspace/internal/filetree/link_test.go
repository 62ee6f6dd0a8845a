// SPDX-License-Identifier: Apache-2.0

package filetree

import "testing"

func TestFollow_Cases(t *testing.T) {
	links := map[string]string{"up": "..", "a/top": "..", "circle": "circle", "out": "../../x", "a/back": "top/b"}
	linkAt := func(rel string) (string, bool) { target, ok := links[rel]; return target, ok }
	for _, c := range []struct {
		goos, dir, target string
		inside            bool
	}{
		{"linux", ".", "b", true},
		{"linux", ".", "./b//c/.", true},
		{"linux", "a", "../b", true},
		{"linux", "a", "..", true},
		{"linux", "a", "../..", false},
		{"linux", ".", "..", false},
		{"linux", ".", "/b", false},
		{"linux", ".", "up/x", false},
		{"linux", ".", "a/top/b", true},
		{"linux", ".", "a/top/..", false},
		{"linux", ".", "a/back", true},
		{"linux", ".", "a/../out", false},
		{"linux", ".", "circle/x", true}, // it leads nowhere
		{"linux", ".", `c:x`, true},
		{"linux", ".", `\x`, true},
		{"windows", ".", `b\c`, true},
		{"windows", ".", `c:x`, false},
		{"windows", ".", `c:\x`, false},
		{"windows", ".", `C:/x`, false},
		{"windows", ".", `\x`, false},
		{"windows", ".", `\\server\share`, false},
		{"windows", "a", `..\..\x`, false},
	} {
		left := maxLinks
		if _, inside := follow(c.goos, c.dir, c.target, linkAt, &left); inside != c.inside {
			t.Errorf("%s: a link in %q to %q leads inside: %t, want %t", c.goos, c.dir, c.target, inside, c.inside)
		}
	}
}
