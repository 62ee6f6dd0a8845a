// SPDX-License-Identifier: Apache-2.0

package pathglob

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

// Folders that cannot have anything of interest are not entered. That is only for speed: what is chosen must
// be the same as if every folder were entered and every file asked for.
func TestMatcher_SkippedFoldersHaveNoMatches(t *testing.T) {
	files := []string{"a", "b", "ab"}
	for depth, first := 1, 0; depth < 4; depth++ {
		last := len(files)
		for _, dir := range files[first:last] {
			files = append(files, dir+"/a", dir+"/b", dir+"/ab")
		}
		first = last
	}
	parts := rapid.SampledFrom([]string{"a", "b", "ab", "*", "**", "?", "a*", "{a,b}", "[ab]", "{a/b,ab}"})
	globLists := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(parts, 1, 4).Draw(t, "parts"), "/") + rapid.SampledFrom([]string{"", "/"}).Draw(t, "end")
	}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		include, exclude := globLists.Draw(t, "include"), globLists.Draw(t, "exclude")
		g, err := New(include, exclude)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if got, want := reaches(g, file), chosen(include, exclude, file); got != want {
				t.Fatalf("%q is copied: %t, want %t", file, got, want)
			}
		}
	})
}

// reaches walks down to a file as a copy does.
func reaches(m *Matcher, file string) bool {
	for i, c := range file {
		if c == '/' && m.SkipsEntry(file[:i], true) {
			return false
		}
	}
	return !m.SkipsEntry(file, false)
}

// chosen is the meaning of the globs, in the plainest way.
func chosen(include, exclude []string, file string) bool {
	means := func(glob, name string, folder bool) bool {
		body, forFolders := strings.CutSuffix(glob, "/")
		return (folder || !forFolders) && doublestar.MatchUnvalidated(body, name)
	}
	if slices.ContainsFunc(exclude, func(glob string) bool {
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			if means(glob, dir, true) {
				return true
			}
		}
		return means(glob, file, false)
	}) {
		return false
	}
	return len(include) == 0 || slices.ContainsFunc(include, func(glob string) bool {
		for dir := path.Dir(file); dir != "." && strings.HasSuffix(glob, "/"); dir = path.Dir(dir) {
			if means(glob, dir, true) {
				return true
			}
		}
		return means(glob, file, false)
	})
}
