// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A followed link to a folder is a folder, for the globs too.
func TestMount_GlobsMatchTheTargetOfAFollowedLink(t *testing.T) {
	dir := host(t, "m/main.go", "shared/lib.go", "shared/notes.md", "shared/deep/more.go")
	must(t, os.Symlink("../shared", filepath.Join(dir, "m/src")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "m/broken")))
	for _, c := range []struct {
		name             string
		include, exclude []string
		want             []string
	}{
		{"files in it", []string{"src/*.go"}, nil, []string{"m/", "m/src/", "m/src/lib.go"}},
		{"files anywhere", []string{"**/*.go"}, nil, []string{"m/", "m/main.go", "m/src/", "m/src/deep/", "m/src/deep/more.go", "m/src/lib.go"}},
		{"all of it", []string{"src/"}, nil, []string{"m/", "m/src/", "m/src/deep/", "m/src/deep/more.go", "m/src/lib.go", "m/src/notes.md"}},
		{"nothing of it", nil, []string{"src/", "broken"}, []string{"m/", "m/main.go"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := HostMount{HostPath: filepath.Join(dir, "m"), FollowSymlinks: true, Include: c.include, Exclude: c.exclude}
			w := opened(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{m}})
			if diff := cmp.Diff(c.want, tree(t, w.Root())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
