// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// meddle runs a function once, before the first change of that kind.
func meddle(what string, do func()) func() {
	done := false
	testFault = func(w, _ string) error {
		if w == what && !done {
			done = true
			do()
		}
		return nil
	}
	return func() { testFault = nil }
}

func put(t tester, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestApply_UnexpectedFileIsKeptAsideAndNamed(t *testing.T) {
	before := layout{"a": {content: "new"}, "d/": {}, "d/x": {content: "x"}, "keep": {content: "k"}}
	after := layout{"a": {content: "old"}, "b": {content: "b"}, "keep": {content: "k", time: 9}}
	cases := map[string]struct {
		when, path, content string
		conflict, reason    string
	}{
		"changed before the plan is looked at": {"", "a", "surprise", "a", "was changed meanwhile"},
		"made before the plan is looked at":    {"", "b", "surprise", "b", "was made meanwhile"},
		"changed while contents are staged":    {"enter", "a", "surprise", "a", "was changed meanwhile"},
		"changed just before it goes":          {"displace", "a", "surprise", "a", "was changed meanwhile"},
		"made in a folder that goes":           {"displace", "d/y", "surprise", "d/y", "was made meanwhile"},
		"changed in a folder that goes":        {"displace", "d/x", "surprise", "d/x", "was changed meanwhile"},
		"made where something is to be placed": {"place", "b", "surprise", "b", "was made meanwhile"},
		"made again where something was":       {"place", "a", "surprise", "a", "was made meanwhile"},
		"changed before its time is set":       {"meta", "keep", "surprise", "keep", "changed meanwhile"},
		"changed, and only its time was to be": {"", "keep", "surprise", "keep", "was changed meanwhile"},
		"changed with no trace but ctimes":     {"displace", "a", "wen", "a", "was changed meanwhile"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := setUp(t, before, after)
			do := func() {
				put(t, filepath.Join(b.dir, c.path), c.content)
				if c.content == "wen" { // the size is right, and so is the time
					setLook(t, b.root, c.path, node{})
				}
			}
			if c.when == "" {
				do()
			} else if c.when != "meta" {
				defer meddle(c.when, do)()
			} else {
				defer meddle("place", do)()
			}
			res, err := b.apply(false)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(res.Conflicts, func(f Conflict) bool { return f.Path == c.conflict })
			if i < 0 || !strings.Contains(res.Conflicts[i].Reason, c.reason) {
				t.Fatalf("got conflicts %+v, want %s: %s", res.Conflicts, c.conflict, c.reason)
			}
			found := res.Conflicts[i].Aside
			if c.path == "keep" { // of which we have no other content
				found = filepath.Join(b.dir, "keep")
			}
			if got, err := os.ReadFile(found); string(got) != c.content {
				t.Errorf("aside has %q (error %v), want the surprise", got, err)
			}
			got := picture(t, b.dir)
			if got["."] = b.after["."]; c.path != "keep" && !cmp.Equal(got, b.after) {
				t.Errorf("tree differs (-want +got):\n%s", cmp.Diff(b.after, got))
			}
			b.tidy(t)
		})
	}
}

// got is the content of a file in the tree.
func got(b *bench, path string) string {
	content, _ := os.ReadFile(filepath.Join(b.dir, path))
	return string(content)
}

func TestApply_UnexpectedFileRefusesAllOrNothing(t *testing.T) {
	before := layout{"a": {content: "new"}, "d/": {}, "d/x": {content: "x"}, "keep": {content: "k"}}
	after := layout{"a": {content: "old"}, "b": {content: "b"}, "keep": {content: "k", time: 9}, "l": {link: "b"}}
	for _, when := range []string{"", "stage", "enter", "displace", "place", "link", "meta"} {
		for _, path := range []string{"a", "b", "d/x", "d/y", "keep"} {
			t.Run(when+" "+path, func(t *testing.T) {
				b := setUp(t, before, after)
				do := func() {
					_ = os.MkdirAll(filepath.Join(b.dir, "d"), 0o755) // it may be gone already
					put(t, filepath.Join(b.dir, path), "surprise")
				}
				if when == "" {
					do()
				} else {
					defer meddle(when, do)()
				}
				res, err := b.apply(true)
				contents := map[string]string{"a": "new", "d/x": "x", "keep": "k"}
				if when == "" || got(b, path) == "surprise" {
					delete(contents, path) // it was written over
				}
				b.nothingLost(t, append(slices.Collect(maps.Values(contents)), "surprise"))
				b.tidy(t)
				if err == nil { // it came after the path was done with
					return
				}
				if !errors.Is(err, ErrSurprise) || !res.Undone {
					t.Fatalf("got %+v, error %v", res, err)
				}
				now := picture(t, b.dir)
				for p, line := range b.before {
					if p != path && p != "." && p != "d" && now[p] != line {
						t.Errorf("%q is not as before: got %s, want %s", p, now[p], line)
					}
				}
				if _, more, err := Recover(b.root, b.work); more || err != nil {
					t.Errorf("something was left to recover: error %v", err)
				}
			})
		}
	}
}

func TestApply_ConcurrentChangesAreNotLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := drawBench(rt)()
		outside := tempDir(rt, inMemory())
		put(rt, filepath.Join(outside, "a"), "outside")
		seen := picture(rt, outside)
		contents := slices.Collect(maps.Values(sketchOf(rt, b.dir).content))
		at, count := rapid.IntRange(1, 15).Draw(rt, "when"), 0
		kind := rapid.SampledFrom([]string{"write", "replace", "folder", "link"}).Draw(rt, "surprise")
		p := rapid.SampledFrom([]string{"a", "b", "a/a", "a/b", "b/a", "a-/a", "\xff/b"}).Draw(rt, "where")
		testFault = func(string, string) error {
			if count++; count == at {
				contents = append(contents, surprise(b, p, kind, outside)...)
			}
			return nil
		}
		defer func() { testFault = nil }()
		_, _ = b.apply(rapid.Bool().Draw(rt, "all or nothing"))
		testFault = nil
		if _, _, err := Recover(b.root, b.work); err != nil {
			rt.Fatalf("recover: %v", err)
		}
		b.nothingLost(rt, contents)
		b.tidy(rt)
		if diff := cmp.Diff(seen, picture(rt, outside)); diff != "" {
			rt.Fatalf("the outside changed:\n%s", diff)
		}
	})
}

// surprise does something to a path as another process would, and returns the contents that there now are
// which must not be lost. Whatever it wrote over is its own affair.
func surprise(b *bench, p, kind, outside string) []string {
	name := filepath.Join(b.dir, p)
	away := filepath.Join(filepath.Dir(b.dir), "away")
	if info, err := os.Lstat(filepath.Dir(name)); err != nil || !info.IsDir() {
		return nil // it would itself be led elsewhere
	}
	switch kind {
	case "replace":
		_ = os.Rename(name, filepath.Join(b.dir, "zz-old"))
		if os.WriteFile(away, []byte("replaced"), 0o644) == nil && os.Rename(away, name) == nil {
			return []string{"replaced"}
		}
	case "folder":
		if os.Mkdir(name, 0o755) == nil && os.WriteFile(name+"/new", []byte("in a folder"), 0o644) == nil {
			return []string{"in a folder"}
		}
	case "link":
		// What was there is beside the tree, and comes back as a link.
		if os.Rename(name, filepath.Join(b.dir, "zz-moved")) == nil {
			_ = os.Symlink(outside, name)
		}
	case "write":
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil
		}
		defer f.Close()
		if _, err := f.WriteString("written"); err == nil {
			return []string{"written"}
		}
	}
	return nil
}

func TestApply_ExchangedFolderDoesNotEscape(t *testing.T) {
	outside := tempDir(t, inMemory())
	grow(t, outside, layout{"a": {content: "outside"}, "b/": {}, "b/c": {content: "outside too"}})
	seen := picture(t, outside)
	for round := range 60 {
		b := setUp(t,
			layout{"d/": {}, "d/a": {content: "new"}, "d/b/": {}, "d/b/c": {content: "new"}, "d/b/x": {content: "x"}},
			layout{"d/": {time: 3}, "d/a": {content: "old", perm: 0o600}, "d/b/": {perm: 0o700}, "d/b/c": {content: "old"}, "d/e": {link: "d/a"}})
		stop, stopped := make(chan struct{}), make(chan struct{})
		go exchange(b.dir, outside, stop, stopped)
		_, err := b.apply(round%2 == 0)
		close(stop)
		<-stopped
		if _, _, again := Recover(b.root, b.work); again != nil {
			t.Fatalf("recover: %v (after %v)", again, err)
		}
		if diff := cmp.Diff(seen, picture(t, outside)); diff != "" {
			t.Fatalf("round %d: the outside changed:\n%s", round, diff)
		}
	}
}

// exchange puts a link to the outside in the place of the folder d, and the folder back, again and again.
func exchange(dir, outside string, stop, stopped chan struct{}) {
	defer close(stopped)
	folder, beside := filepath.Join(dir, "d"), filepath.Join(filepath.Dir(dir), "beside")
	for {
		select {
		case <-stop:
			return
		default:
		}
		if os.Rename(folder, beside) != nil {
			continue
		}
		if os.Symlink(outside, folder) == nil {
			_ = os.Remove(folder)
		}
		_ = os.Rename(beside, folder)
	}
}

func TestApply_FolderThatBecameALinkIsNotEntered(t *testing.T) {
	outside := tempDir(t, inMemory())
	grow(t, outside, layout{"a": {content: "outside"}})
	seen := picture(t, outside)
	b := setUp(t, layout{"d/": {}, "d/a": {content: "new"}}, layout{"d/": {}, "d/a": {content: "old"}})
	if err := errors.Join(os.Rename(filepath.Join(b.dir, "d"), filepath.Join(b.dir, "was-d")), os.Symlink(outside, filepath.Join(b.dir, "d"))); err != nil {
		t.Fatal(err)
	}
	res, err := b.apply(false)
	if err != nil || len(res.Conflicts) != 1 || len(res.Done) != 0 {
		t.Fatalf("got %+v, error %v", res, err)
	}
	if diff := cmp.Diff(seen, picture(t, outside)); diff != "" {
		t.Errorf("the outside changed:\n%s", diff)
	}
}

func TestApply_InvalidPlanIsRefused(t *testing.T) {
	file, dir := &filetree.Entry{}, &filetree.Entry{Kind: filetree.Dir}
	for name, steps := range map[string][]Step{
		"a path that climbs out":         {{Path: "../a", Want: dir}},
		"an absolute path":               {{Path: "/a", Want: dir}},
		"a path twice":                   {{Path: "a", Want: dir}, {Path: "a"}},
		"a root that goes":               {{Path: "."}},
		"a file without content":         {{Path: "a", Want: file}},
		"a file in what is no folder":    {{Path: "a"}, {Path: "a/b", Want: dir}},
		"a hard link to a folder":        {{Path: "a", Want: dir}, {Path: "b", Want: file, Link: "a"}},
		"hard links that lead in circle": {{Path: "a", Want: file, Link: "b"}, {Path: "b", Want: file, Link: "a"}},
		"a folder as a hard link":        {{Path: "a", Want: dir, Link: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setUp(t, layout{"x": {}}, layout{})
			b.steps = steps
			if _, err := b.apply(false); err == nil {
				t.Error("got no error")
			}
			same(t, b.dir, b.before)
		})
	}
}

func TestApply_CancelledContextChangesNothing(t *testing.T) {
	b := setUp(t, layout{"x": {content: "1"}}, layout{"x": {content: "2"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Apply(ctx, b.root, b.steps, Options{Work: b.work}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	same(t, b.dir, b.before)
	b.tidy(t)
}

// A plan that is all or nothing does not even move away for a moment what it did not expect.
func TestApply_AllOrNothingNeverMovesAnUnexpectedFile(t *testing.T) {
	b := setUp(t, layout{"a": {content: "new"}, "b": {content: "b"}}, layout{"a": {content: "old"}, "b": {content: "c"}})
	var written filetree.Entry
	testFault = func(what, path string) error {
		switch {
		case what == "enter" && path == string(applying):
			put(t, filepath.Join(b.dir, "a"), "surprise")
			written, _ = b.root.Lstat("a")
		case what == "displace" && path == "a":
			t.Error("it is moved")
		}
		return nil
	}
	defer func() { testFault = nil }()
	if _, err := b.apply(true); !errors.Is(err, ErrSurprise) {
		t.Errorf("got error %v", err)
	}
	if now, err := b.root.Lstat("a"); err != nil || now != written {
		t.Errorf("got %+v, %v, want %+v", now, err, written)
	}
}

// A disk that is full must not keep half a file that was not asked for.
func TestApply_FailedStagingLeavesNoFile(t *testing.T) {
	for _, allOrNothing := range []bool{true, false} {
		b := setUp(t, layout{"a": {content: "1"}}, layout{"a": {content: "1"}, "b": {content: "22"}})
		for i := range b.steps {
			b.steps[i].Write = func(f *os.File) error {
				_, _ = f.WriteString("2")
				return errors.New("the disk is full")
			}
		}
		if _, err := b.apply(allOrNothing); err == nil {
			t.Error("no error")
		}
		b.tidy(t)
		if left, _ := filepath.Glob(filepath.Join(b.work, "aside", "*")); len(left) > 0 {
			t.Errorf("aside there is %q", left)
		}
	}
}
