// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

// all is everything below a root.
func all(t testing.TB, r *Root) []Entry {
	t.Helper()
	entries, err := r.Walk(context.Background(), nil)
	must(t, err)
	return entries
}

func paths(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Path)
	}
	return out
}

func TestWalk_IsSortedByPath(t *testing.T) {
	r := openTemp(t)
	for _, dir := range []string{"a/x", "a-b/y", "a-b-c", "a.d/z", "a0", "b/a"} {
		must(t, r.MkdirAll(dir, 0o755))
	}
	write(t, r, "a/f", "")
	write(t, r, "a!", "")
	want := []string{"a", "a!", "a-b", "a-b-c", "a-b/y", "a.d", "a.d/z", "a/f", "a/x", "a0", "b", "b/a"}
	if diff := cmp.Diff(want, paths(all(t, r))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Names of few letters around the slash are those that sort unlike their folders.
func TestWalk_FindsRandomNamesInOrder(t *testing.T) {
	name := rapid.StringMatching(`[-./0a\xff]{1,3}`).Filter(func(s string) bool {
		return s != "." && s != ".." && !strings.Contains(s, "/")
	})
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		r, err := Open(dir)
		must(t, err)
		defer r.Close()
		for _, names := range rapid.SliceOfN(rapid.SliceOfN(name, 1, 5), 0, 20).Draw(rt, "paths") {
			_ = r.MkdirAll(strings.Join(names, "/"), 0o755) // which may be there as a file
			_ = os.WriteFile(filepath.Join(dir, filepath.Join(names[1:]...), "f"), nil, 0o600)
		}
		var want []string
		must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if path != dir {
				want = append(want, filepath.ToSlash(path[len(dir)+1:]))
			}
			return err
		}))
		slices.Sort(want)
		if diff := cmp.Diff(want, paths(all(t, r))); diff != "" {
			rt.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestWalk_AgreesWithLstat(t *testing.T) {
	r := openTemp(t)
	must(t, r.MkdirAll("a/b", 0o755), r.Symlink("nowhere", "a/link"))
	write(t, r, "a/file", "content")
	must(t, r.Link("a/file", "a/b/same"))
	for _, e := range all(t, r) {
		if diff := cmp.Diff(lstat(t, r, e.Path), e); diff != "" {
			t.Errorf("%s (-lstat +walk):\n%s", e.Path, diff)
		}
	}
	inA, err := r.ReadDir("a")
	must(t, err)
	if diff := cmp.Diff([]string{"a/b", "a/file", "a/link"}, paths(inA)); diff != "" {
		t.Errorf("ReadDir (-want +got):\n%s", diff)
	}
}

func TestWalk_OmitsSkippedEntries(t *testing.T) {
	r := openTemp(t)
	must(t, r.MkdirAll("keep/deep", 0o755), r.MkdirAll("skip/deep", 0o755))
	write(t, r, "keep/file.tmp", "")
	write(t, r, "keep/file.go", "")
	var mu sync.Mutex
	var asked []string
	got, err := r.Walk(t.Context(), &WalkOptions{Skip: func(e Entry) bool {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, e.Path)
		_, err := r.Lstat(e.Path) // it may use the root
		must(t, err)
		return e.Path == "skip" || strings.HasSuffix(e.Path, ".tmp")
	}})
	must(t, err)
	if diff := cmp.Diff([]string{"keep", "keep/deep", "keep/file.go"}, paths(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if slices.Contains(asked, "skip/deep") {
		t.Error("a skipped folder was opened")
	}
}

func TestWalk_BeginsAtFrom(t *testing.T) {
	r := openTemp(t)
	must(t, r.MkdirAll("a/b/c", 0o755), r.MkdirAll("d", 0o755))
	write(t, r, "a/f", "")
	got, err := r.Walk(t.Context(), &WalkOptions{From: "a/"})
	must(t, err)
	if diff := cmp.Diff([]string{"a/b", "a/b/c", "a/f"}, paths(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, from := range []string{"missing", "a/f"} {
		if _, err := r.Walk(t.Context(), &WalkOptions{From: from}); err == nil {
			t.Errorf("a walk from %s succeeded", from)
		}
	}
}

func TestWalk_EndsWithItsContext(t *testing.T) {
	r := openTemp(t)
	must(t, r.MkdirAll("a/b/c", 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	got, err := r.Walk(ctx, &WalkOptions{Skip: func(Entry) bool { cancel(); return false }})
	if !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("got %d entries and error %v, want none and %v", len(got), err, context.Canceled)
	}
}

func TestWalk_OmitsEntriesThatDisappear(t *testing.T) {
	r := openTemp(t)
	for range 50 {
		must(t, r.MkdirAll("a/b/c", 0o755), r.MkdirAll("d", 0o755))
		_, err := r.Walk(t.Context(), &WalkOptions{Skip: func(e Entry) bool {
			if e.Path == "d" {
				must(t, r.RemoveAll("a"))
			}
			return false
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadDir_ListsAFolderWithManyFiles(t *testing.T) {
	r := openTemp(t)
	var want []string
	for i := range 600 {
		name := strings.Repeat("x", 200) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		want = append(want, name)
		must(t, r.Mkdir(name, 0o755))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, paths(all(t, r))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
