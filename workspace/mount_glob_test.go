// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
)

func TestMount_GlobWithoutSlashMatchesAtAnyDepth(t *testing.T) {
	dir := host(t, "a.py", "a.txt", "src/b.py", "src/deep/c.py", "src/deep/c.pyc", "build/x.py", "src/build/y.py")
	for name, x := range map[string]struct {
		include, exclude []string
		want             []string
	}{
		"files":                   {[]string{"*.py"}, []string{"build/"}, []string{"a.py", "src/", "src/b.py", "src/deep/", "src/deep/c.py"}},
		"a folder, left out":      {nil, []string{"build", "*.pyc", "deep"}, []string{"a.py", "a.txt", "src/", "src/b.py"}},
		"with a slash, at a path": {[]string{"src/*.py"}, nil, []string{"src/", "src/b.py"}},
		"with ./, at the top":     {[]string{"./*.py"}, nil, []string{"a.py"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := opened(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir, MountPath: "m", Include: x.include, Exclude: x.exclude}}})
			if diff := cmp.Diff(x.want, tree(t, w.Root()+"/m")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMount_WithoutHostPathIsRefused(t *testing.T) {
	w, err := Open(t.Context(), &Options{AllowAnyRoot: true, TempDir: t.TempDir(), Mounts: []HostMount{{MountPath: "m"}}})
	if w != nil || err == nil || !strings.Contains(advice.Text(err), "a mount has no HostPath\n  next: ") {
		t.Errorf("the workspace is %v, and the error %v", w, err)
	}
}

// The advice is about the glob, and nothing else.
func TestMount_WrongGlobHasOneAdvice(t *testing.T) {
	dir := t.TempDir()
	for _, glob := range []string{"/secrets", "../x", "[a"} {
		_, err := Open(t.Context(), &Options{AllowAnyRoot: true, Mounts: []HostMount{{HostPath: dir, Exclude: []string{glob}}}})
		if err == nil || strings.Count(advice.Text(err), "\n  next: ") != 1 {
			t.Errorf("%s: the error is %v", glob, err)
		}
	}
}
