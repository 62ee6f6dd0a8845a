// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

func TestRewrite_PathsAreMappedIntoTheWorkspace(t *testing.T) {
	for _, x := range []struct{ name, root, dir, path, want string }{
		{"in the workspace", "/w", "/w", "/w/a", "/w/a"},
		{"in a folder of it", "/w", "/w/sub", "/w/sub/a", "/w/sub/a"},
		{"the workspace itself", "/w", "/w", "/w", "/w"},
		{"elsewhere, and the shell is at home", "/w", "/w", "/etc/passwd", "/etc/passwd"},
		{"out of it by dots that the agent has resolved", "/w", "/w", "/x", "/x"},
		{"a neighbour of the same beginning", "/w", "/w", "/ww/a", "/ww/a"},
		{"below the shell, which is elsewhere", "/w", "/tmp", "/tmp/a/b", "/w/a/b"},
		{"below the shell, which is above", "/repo/w", "/repo", "/repo/a", "/repo/w/a"},
		{"in the workspace, and the shell is above", "/repo/w", "/repo", "/repo/w/a", "/repo/w/a"},
		{"not below the shell, which is elsewhere", "/w", "/tmp", "/etc/passwd", "/etc/passwd"},
		{"the shell's directory is unknown", "/w", "", "/tmp/a", "/tmp/a"},
		{"relative", "/w", "/w/sub", "a", "/w/sub/a"},
		{"relative, and the shell is elsewhere", "/w", "/tmp", "a", "/w/a"},
		{"relative, and the shell's directory is unknown", "/w", "", "a/../b", "/w/b"},
	} {
		if got := ledInto(x.root, x.dir, x.path); got != x.want {
			t.Errorf("%s: %s is led to %s, want %s", x.name, x.path, got, x.want)
		}
	}
}

func TestRewrite_MappedPathsStayInTheWorkspace(t *testing.T) {
	path := rapid.StringMatching(`(/(a|b|\.\.)){1,5}`)
	rapid.Check(t, func(t *rapid.T) {
		root, dir, p := filepath.Clean(path.Draw(t, "root")), filepath.Clean(path.Draw(t, "dir")), filepath.Clean(path.Draw(t, "path"))
		led := ledInto(root, dir, p)
		if _, inside := within(root, led); led != p && !inside {
			t.Errorf("%s in %s is led to %s, which is not in %s", p, dir, led, root)
		}
		if again := ledInto(root, dir, led); again != led {
			t.Errorf("%s is led to %s, and that to %s", p, led, again)
		}
	})
}
