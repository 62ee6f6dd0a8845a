// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a folder for the time of a test.
func open(t testing.TB, dir string) *filetree.Root {
	t.Helper()
	root, err := filetree.OpenStrict(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes files with their own names as content. A name that ends in a slash is a folder.
func write(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		full := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(full, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		must(t, os.WriteFile(full, []byte(name), 0o644))
	}
}

// copied copies a path of src to "copy" in a new folder, and returns that.
func copied(t testing.TB, src, name string, opts Options) (string, Summary, error) {
	t.Helper()
	dst := t.TempDir()
	sum, err := copyInto(t.Context(), t, Source{open(t, src), name}, dst, opts)
	return filepath.Join(dst, "copy"), sum, err
}

func copyInto(ctx context.Context, t testing.TB, src Source, dst string, opts Options) (Summary, error) {
	t.Helper()
	plan, err := NewPlan(ctx, src, opts)
	if err != nil {
		return Summary{}, err
	}
	return plan.Copy(ctx, open(t, dst), "copy", 20)
}

// paths lists what is below a folder. Folders end in a slash.
func paths(t testing.TB, dir string) []string {
	t.Helper()
	found := []string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			rel += "/"
		}
		found = append(found, filepath.ToSlash(rel))
		return nil
	}))
	slices.Sort(found)
	return found
}

// describe says of everything in a folder what a copy must have: kind, permissions, time, target, content,
// and which names belong to one file.
func describe(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := open(t, dir).Walk(t.Context(), nil)
	must(t, err)
	groups := map[uint64]string{}
	lines := make([]string, 0, len(entries))
	for _, e := range entries {
		line := fmt.Sprintf("%q %s %v %d %d %q", e.Path, e.Kind, e.Perm, e.Size, e.ModTime, e.Target)
		if e.Kind == filetree.File {
			content, err := os.ReadFile(filepath.Join(dir, e.Path))
			must(t, err)
			if groups[e.Stamp.Ino] == "" {
				groups[e.Stamp.Ino] = e.Path
			}
			line += fmt.Sprintf(" %x like %q", sha256.Sum256(content), groups[e.Stamp.Ino])
		}
		lines = append(lines, line)
	}
	return lines
}

func TestCopy_KeepsContentsModesAndLinks(t *testing.T) {
	src := t.TempDir()
	write(t, src, "a.txt", "empty folder/", "deep/er/still/b.txt", "ünïcode", "new\nline", "not utf-8 \xff\xfe", "-rf", "shut/in.txt")
	must(t, os.WriteFile(filepath.Join(src, "binary"), []byte{0, 1, 2, 0xff, 0, '\r', '\n'}, 0o600))
	must(t, os.WriteFile(filepath.Join(src, "program"), []byte("#!/bin/sh\n"), 0o755))
	must(t, os.WriteFile(filepath.Join(src, "read only"), nil, 0o400))
	must(t, os.WriteFile(filepath.Join(src, "large"), bytes.Repeat([]byte("large "), 500_000), 0o664))
	must(t, os.Link(filepath.Join(src, "a.txt"), filepath.Join(src, "deep/second name")))
	must(t, os.Symlink("../a.txt", filepath.Join(src, "deep/link")))
	must(t, os.Symlink("nowhere", filepath.Join(src, "dangling")))
	must(t, os.Symlink("loop", filepath.Join(src, "loop")))
	must(t, os.Chmod(filepath.Join(src, "shut"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(src, "shut"), 0o755) })
	for i, name := range []string{"deep/er/still/b.txt", "deep/er/still", "deep/er", "empty folder", "a.txt"} {
		must(t, os.Chtimes(filepath.Join(src, name), time.Time{}, time.Unix(1_000_000_000+int64(i), 123_456_789)))
	}
	must(t, os.Chmod(src, 0o750))
	must(t, os.Chtimes(src, time.Time{}, time.Unix(5, 7)))
	before := describe(t, src)

	dst, sum, err := copied(t, src, ".", Options{})
	must(t, err)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dst, "shut"), 0o755) })
	if diff := cmp.Diff(before, describe(t, dst)); diff != "" {
		t.Errorf("the copy differs (-source +copy):\n%s", diff)
	}
	if diff := cmp.Diff(before, describe(t, src)); diff != "" {
		t.Errorf("the source has changed:\n%s", diff)
	}
	info, err := os.Stat(dst)
	must(t, err)
	if info.Mode().Perm() != 0o750 || info.ModTime().UnixNano() != 5_000_000_007 {
		t.Errorf("the folder itself has %v and %v", info.Mode(), info.ModTime())
	}
	if sum.Files != 12 || sum.Folders != 5 || sum.Links != 3 {
		t.Errorf("counted %d files, %d folders and %d links, want 12, 5 and 3", sum.Files, sum.Folders, sum.Links)
	}
	if other, err := os.Stat(filepath.Join(src, "a.txt")); err == nil {
		if mine, err := os.Stat(filepath.Join(dst, "a.txt")); err != nil || os.SameFile(other, mine) {
			t.Errorf("a file with several names is the host's own: %v", err)
		}
	}
}

func TestCopy_SingleFile(t *testing.T) {
	src := t.TempDir()
	write(t, src, "folder/a.txt")
	dst, sum, err := copied(t, src, "folder/a.txt", Options{})
	must(t, err)
	if content, _ := os.ReadFile(dst); string(content) != "folder/a.txt" {
		t.Errorf("the copy has %q", content)
	}
	if diff := cmp.Diff(Summary{Files: 1, Bytes: 12, First: []string{"a.txt"}}, sum); diff != "" {
		t.Error(diff)
	}
	if _, sum, err := copied(t, src, "folder/a.txt", Options{Exclude: []string{"*.txt"}}); err != nil || sum.Files != 0 {
		t.Errorf("an excluded file is copied: %+v, %v", sum, err)
	}
}

func TestCopy_Globs(t *testing.T) {
	src := t.TempDir()
	write(t, src, "main.go", "main_test.go", "README.md", "empty/", "src/a.go", "src/a.pb.go", "src/deep/b.go", "src/deep/notes.md",
		"build/out.o", "src/build/out.o", "src/empty/", "build.txt", ".git/config", "\xffname.go")
	all := paths(t, src)
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(p string) bool { return slices.Contains(names, p) })
	}
	for _, c := range []struct {
		name             string
		include, exclude []string
		want             []string
	}{
		{"all", nil, nil, all},
		{"a star stops at a slash", []string{"*.go"}, nil, []string{"main.go", "main_test.go", "\xffname.go"}},
		{"two stars do not", []string{"**/*.md"}, nil, []string{"README.md", "src/", "src/deep/", "src/deep/notes.md"}},
		{"one folder", []string{"src/deep/**"}, nil, []string{"src/", "src/deep/", "src/deep/b.go", "src/deep/notes.md"}},
		{"a folder with a slash", []string{"src/deep/"}, nil, []string{"src/", "src/deep/", "src/deep/b.go", "src/deep/notes.md"}},
		{"exclude wins", []string{"**/*.go"}, []string{"**/*.pb.go", "*_test.go", "src/deep/**", "?name.go"}, []string{"main.go", "src/", "src/a.go"}},
		{"a folder at the top", nil, []string{"build/**"}, without("build/", "build/out.o")},
		{"the same with a slash", nil, []string{"build/"}, without("build/", "build/out.o")},
		{"the same without", nil, []string{"build"}, without("build/", "build/out.o")},
		{"what is in it", nil, []string{"build/*"}, without("build/out.o")},
		{"a folder anywhere", nil, []string{"**/build/"}, without("build/", "build/out.o", "src/build/", "src/build/out.o")},
		{"a folder's glob is not for files", nil, []string{"build.txt/", "*.md/"}, all},
		{"alternatives", []string{"{src/deep,build}/**"}, nil, []string{"build/", "build/out.o", "src/", "src/deep/", "src/deep/b.go", "src/deep/notes.md"}},
		{"from the current folder", []string{"./main.go"}, nil, []string{"main.go"}},
		{"hidden ones too", []string{"**/config"}, nil, []string{".git/", ".git/config"}},
		{"nothing", []string{"nothing"}, nil, []string{}},
		{"everything excluded", nil, []string{"**"}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst, _, err := copied(t, src, ".", Options{Include: c.include, Exclude: c.exclude})
			must(t, err)
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, paths(t, dst)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"", "/", "/src", "..", "../x", "a/../../b", "[", "{a", ".", "a//b", "a/./b", "././a"} {
		if _, _, err := copied(t, src, ".", Options{Exclude: []string{bad}}); err == nil || !strings.Contains(advice.Text(err), "next: ") {
			t.Errorf("the glob %q is taken: %v", bad, err)
		}
	}
}

func TestPlan_BudgetIsCheckedBeforeTheCopy(t *testing.T) {
	src := t.TempDir()
	write(t, src, "12345", "folder/7", "excluded")
	must(t, os.Link(filepath.Join(src, "12345"), filepath.Join(src, "once"))) // counts once
	must(t, os.Symlink("12345", filepath.Join(src, "link")))                  // has no content
	for _, c := range []struct {
		name  string
		path  string
		limit int64
		want  int64
	}{
		{"just enough", ".", 13, 0},
		{"one less", ".", 12, 13},
		{"nothing", ".", 0, 13},
		{"a single file", "12345", 5, 0},
		{"a single file too large", "12345", 4, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := t.TempDir()
			_, err := copyInto(t.Context(), t, Source{open(t, src), c.path}, dst, Options{MaxBytes: &c.limit, Exclude: []string{"excluded"}})
			if c.want == 0 {
				must(t, err)
				return
			}
			tooLarge, ok := errors.AsType[*TooLarge](err)
			if !ok || *tooLarge != (TooLarge{c.want, c.limit}) {
				t.Errorf("got %v, want %d > %d", err, c.want, c.limit)
			}
			if left := paths(t, dst); len(left) > 0 {
				t.Errorf("%q was copied", left)
			}
		})
	}
}

func TestCopy_GrowingFileStaysWithinTheBudget(t *testing.T) {
	src := t.TempDir()
	write(t, src, "12345")
	limit := int64(8)
	plan, err := NewPlan(t.Context(), Source{open(t, src), "."}, Options{MaxBytes: &limit})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(src, "12345"), []byte("12345678"), 0o644))
	dst := t.TempDir()
	_, err = plan.Copy(t.Context(), open(t, dst), "fits", 20)
	must(t, err)
	if content, _ := os.ReadFile(filepath.Join(dst, "fits/12345")); string(content) != "12345678" {
		t.Errorf("it is copied as %q, want what it is now", content)
	}

	plan, err = NewPlan(t.Context(), Source{open(t, src), "."}, Options{MaxBytes: &limit})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(src, "12345"), []byte("123456789"), 0o644))
	_, err = plan.Copy(t.Context(), open(t, dst), "over", 20)
	if tooLarge, ok := errors.AsType[*TooLarge](err); !ok || tooLarge.Bytes != 9 {
		t.Errorf("9 bytes were copied where 8 are allowed: %v", err)
	}
}

func TestCopy_FileThatDisappearsIsLeftOut(t *testing.T) {
	src := t.TempDir()
	write(t, src, "a", "b", "c")
	must(t, os.Link(filepath.Join(src, "a"), filepath.Join(src, "z")))
	plan, err := NewPlan(t.Context(), Source{open(t, src), "."}, Options{})
	must(t, err)
	must(t, os.Remove(filepath.Join(src, "a")))
	must(t, os.Remove(filepath.Join(src, "b")))
	dst := t.TempDir()
	sum, err := plan.Copy(t.Context(), open(t, dst), "copy", 20)
	must(t, err)
	if diff := cmp.Diff([]string{"copy/", "copy/c", "copy/z"}, paths(t, dst)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Summary{Files: 2, Bytes: 2, First: []string{"c", "z"}}, sum); diff != "" {
		t.Error(diff)
	}
}

func TestCopy_EndsWithItsContext(t *testing.T) {
	src := t.TempDir()
	write(t, src, "a")
	ctx, cancel := context.WithCancel(t.Context())
	plan, err := NewPlan(ctx, Source{open(t, src), "."}, Options{})
	must(t, err)
	cancel()
	if _, err := plan.Copy(ctx, open(t, t.TempDir()), "copy", 20); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestCopy_ManyFiles(t *testing.T) {
	src := t.TempDir()
	n := testkit.Size(1_000, 100_000)
	makeMany(t, src, n)
	dst, sum, err := copied(t, src, ".", Options{})
	must(t, err)
	if sum.Files != n || len(sum.First) != 20 {
		t.Errorf("%d files were copied and %d named, want %d and 20", sum.Files, len(sum.First), n)
	}
	if diff := cmp.Diff(describe(t, src), describe(t, dst)); diff != "" {
		t.Errorf("-source +copy:\n%.2000s", diff)
	}
}

// makeMany makes files of mixed small sizes, fifty to a folder.
func makeMany(t testing.TB, dir string, n int) {
	t.Helper()
	content := bytes.Repeat([]byte("0123456789abcdef"), 2_000)
	for i := range n {
		folder := filepath.Join(dir, fmt.Sprintf("d%d/e%d", i/1000, i/50))
		if i%50 == 0 {
			must(t, os.MkdirAll(folder, 0o755))
		}
		size := []int{0, 40, 700, 2_500, 4_096, 9_000, 20_000}[i%7]
		must(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("file%d.txt", i)), content[:size], 0o644))
	}
}
