// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A tester is a test or a check of a property.
type tester interface {
	Helper()
	Cleanup(f func())
	Error(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// A node is one entry of a tree that a test makes. Paths that end in a slash are folders.
type node struct {
	content string
	target  string      // a symbolic link
	link    string      // a hard link to another path
	pipe    bool        // a pipe
	perm    fs.FileMode // zero means 0o644, and 0o755 for folders
	time    int64       // in seconds; zero means 1000
}

// A layout is a tree by its paths.
type layout map[string]node

// grow makes the tree in a folder.
func grow(t tester, dir string, l layout) {
	t.Helper()
	root := open(t, dir)
	paths := slices.Sorted(maps.Keys(l))
	for _, p := range paths {
		if err := growOne(root, p, l[p]); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range paths {
		if n := l[p]; n.link != "" {
			if err := root.Link(n.link, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range slices.Backward(paths) {
		if n := l[p]; n.link == "" {
			setLook(t, root, p, n)
		}
	}
	setLook(t, root, "./", node{time: 500})
}

func growOne(root *filetree.Root, p string, n node) error {
	switch {
	case strings.HasSuffix(p, "/"):
		return root.MkdirAll(strings.TrimSuffix(p, "/"), 0o755)
	case n.link != "":
		return root.MkdirAll(path.Dir(p), 0o755)
	}
	if err := root.MkdirAll(path.Dir(p), 0o755); err != nil {
		return err
	}
	switch {
	case n.target != "":
		return root.Symlink(n.target, p)
	case n.pipe:
		return root.Mkfifo(p, 0o644)
	}
	f, err := root.Create(p)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(n.content)
	return err
}

func setLook(t tester, root *filetree.Root, p string, n node) {
	t.Helper()
	dir := strings.HasSuffix(p, "/")
	e, err := root.Lstat(strings.TrimSuffix(p, "/"))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case e.Kind == filetree.Link:
	case n.perm != 0:
		e.Perm = n.perm & (fs.ModePerm | fs.ModeSetgid | fs.ModeSticky)
	case dir:
		e.Perm = 0o755
	default:
		e.Perm = 0o644
	}
	if n.time == 0 {
		n.time = 1000
	}
	e.ModTime = n.time * int64(time.Second)
	if err := root.SetMeta(e); err != nil {
		t.Fatal(err)
	}
}

func open(t tester, dir string) *filetree.Root {
	t.Helper()
	root, err := filetree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// picture describes everything in a tree that can be put back, one line for each path.
func picture(t tester, dir string) map[string]string {
	t.Helper()
	root, err := filetree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	entries := entriesOf(t, root)
	top, err := root.Lstat(".")
	if err != nil {
		t.Fatal(err)
	}
	first := map[uint64]string{}
	lines := map[string]string{}
	for _, e := range append([]filetree.Entry{top}, entries...) {
		line := fmt.Sprintf("%s %v %d %d %d:%d %q %x", e.Kind, e.Perm, e.Size, e.ModTime, e.UID, e.GID, e.Target, e.Xattrs)
		if e.Kind == filetree.File {
			if first[e.Stamp.Ino] == "" {
				first[e.Stamp.Ino] = e.Path
			}
			line += fmt.Sprintf(" of %q: %s", first[e.Stamp.Ino], contentOf(t, root, e.Path))
		}
		lines[e.Path] = line
	}
	return lines
}

func entriesOf(t tester, root *filetree.Root) []filetree.Entry {
	t.Helper()
	entries, err := root.Walk(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func contentOf(t tester, root *filetree.Root, p string) string {
	t.Helper()
	f, _, err := root.OpenFile(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// same fails the test unless the folder has the picture.
func same(t tester, dir string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, picture(t, dir)); diff != "" {
		t.Fatalf("tree differs (-want +got):\n%s", diff)
	}
}

// A sketch is a tree as a planner knows it: entries, contents, and who is hard-linked with whom.
type sketch struct {
	top     filetree.Entry
	entries map[string]*filetree.Entry
	content map[string]string
	group   map[string][]string
}

func sketchOf(t tester, dir string) sketch {
	t.Helper()
	root, err := filetree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := sketch{entries: map[string]*filetree.Entry{}, content: map[string]string{}, group: map[string][]string{}}
	if s.top, err = root.Lstat("."); err != nil {
		t.Fatal(err)
	}
	byInode := map[uint64][]string{}
	for _, e := range entriesOf(t, root) {
		if e.Kind == filetree.File {
			byInode[e.Stamp.Ino] = append(byInode[e.Stamp.Ino], e.Path)
			s.content[e.Path] = contentOf(t, root, e.Path)
		}
	}
	for _, e := range entriesOf(t, root) { // again, as reading may touch unreadable files
		s.entries[e.Path] = &e
		s.group[e.Path] = byInode[e.Stamp.Ino]
	}
	return s
}

// planFor lists the steps from one tree to the other.
func planFor(now, want sketch) []Step {
	var steps []Step
	paths := maps.Clone(now.entries)
	maps.Copy(paths, want.entries)
	for p := range paths {
		s := Step{Path: p, Want: want.entries[p], Expect: now.entries[p]}
		if isKind(s.Want, filetree.File) {
			planFile(&s, now, want)
		}
		if differs(s) {
			steps = append(steps, s)
		}
	}
	if !now.top.Same(want.top) {
		steps = append(steps, Step{Path: ".", Want: &want.top, Expect: &now.top})
	}
	return steps
}

func differs(s Step) bool {
	return s.Write != nil || s.Link != "" || s.Want == nil || s.Expect == nil || !s.Want.Same(*s.Expect)
}

func planFile(s *Step, now, want sketch) {
	leader := want.group[s.Path][0]
	s.Hash = fmt.Sprintf("%x", sha256.Sum256([]byte(want.content[s.Path])))
	keep := isKind(now.entries[leader], filetree.File) && now.content[leader] == want.content[leader] &&
		!slices.ContainsFunc(now.group[leader], func(p string) bool { return !slices.Contains(want.group[leader], p) })
	switch {
	case s.Path != leader:
		if !keep || !isKind(now.entries[s.Path], filetree.File) || !slices.Contains(now.group[leader], s.Path) {
			s.Link = leader
		}
	case !keep:
		s.Write = writer(want.content[s.Path])
		s.From = source(now, want, s.Path)
	}
}

// source finds a file with that content which is not where it shall be.
func source(now, want sketch, p string) string {
	for _, from := range slices.Sorted(maps.Keys(now.content)) {
		e := want.entries[from]
		if now.content[from] == want.content[p] && e == nil && now.content[from] != "" && firstTaker(want, from, p, now) {
			return from
		}
	}
	return ""
}

// firstTaker lets only one path have a file.
func firstTaker(want sketch, from, p string, now sketch) bool {
	for _, other := range slices.Sorted(maps.Keys(want.content)) {
		if want.content[other] == now.content[from] && now.content[other] != want.content[other] {
			return other == p
		}
	}
	return false
}

func writer(content string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(content)
		return err
	}
}

// A bench is a tree with its plan.
type bench struct {
	dir, work, wanted string
	before, after     map[string]string
	root              *filetree.Root
	steps             []Step
}

// setUp grows two trees, and plans to make the first what the second is.
func setUp(t tester, before, after layout) *bench {
	t.Helper()
	return setUpIn(t, inMemory(), before, after)
}

// inMemory is where tests that make thousands of trees do so, if the system has such a place.
func inMemory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.Mode().Perm() == 0o777 {
		return "/dev/shm"
	}
	return ""
}

func setUpIn(t tester, dir string, before, after layout) *bench {
	t.Helper()
	top := tempDir(t, dir)
	b := &bench{dir: filepath.Join(top, "tree"), work: filepath.Join(top, "work"), wanted: filepath.Join(top, "wanted")}
	for _, dir := range []string{b.dir, b.wanted} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	grow(t, b.dir, before)
	grow(t, b.wanted, after)
	b.look(t)
	return b
}

// look takes the pictures and plans.
func (b *bench) look(t tester) {
	t.Helper()
	b.before, b.after = picture(t, b.dir), picture(t, b.wanted)
	b.steps = planFor(sketchOf(t, b.dir), sketchOf(t, b.wanted))
	b.root = open(t, b.dir)
}

func (b *bench) apply(allOrNothing bool) (Result, error) {
	return Apply(context.Background(), b.root, b.steps, Options{AllOrNothing: allOrNothing, Work: b.work})
}

// tempDir is removed even if it has folders that allow nothing.
func tempDir(t tester, in string) string {
	t.Helper()
	dir, err := os.MkdirTemp(in, "applytree-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { discard(t, dir) })
	return dir
}

func discard(t tester, dir string) {
	root, err := filetree.Open(filepath.Dir(dir))
	if err == nil {
		defer root.Close()
		err = root.RemoveAll(filepath.Base(dir))
	}
	if err != nil {
		t.Error(err)
	}
}

// tidy fails unless the work folder has nothing but what is kept aside.
func (b *bench) tidy(t tester) {
	t.Helper()
	entries, err := os.ReadDir(b.work)
	if err != nil && len(b.steps) > 0 {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "aside" {
			t.Fatalf("left in the work folder: %s", e.Name())
		}
	}
}

// nothingLost fails unless every content of the tree before is in it or aside.
func (b *bench) nothingLost(t tester, contents []string) {
	t.Helper()
	have := map[string]bool{}
	for _, dir := range []string{b.dir, filepath.Join(b.work, "aside")} {
		if _, err := os.Lstat(dir); err != nil {
			continue
		}
		for _, c := range sketchOf(t, dir).content {
			have[c] = true
		}
	}
	for _, c := range contents {
		if !have[c] {
			t.Fatalf("content %q is lost", c)
		}
	}
}
