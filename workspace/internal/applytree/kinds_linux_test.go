// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

func TestApply_SocketThatCannotBeRecreatedIsAConflict(t *testing.T) {
	b := setUp(t, layout{"x": {content: "x"}, "s": {content: "in the way"}}, layout{"x": {content: "y"}})
	grownSocket(t, filepath.Join(b.wanted, "s"))
	b.look(t)
	res, err := b.apply(false)
	if err != nil || len(res.Conflicts) == 0 || res.Conflicts[0].Path != "s" {
		t.Fatalf("got %+v, error %v", res, err)
	}
	if got(b, "s") != "in the way" || got(b, "x") != "y" {
		t.Errorf("got %q and %q", got(b, "s"), got(b, "x"))
	}
}

func TestApply_SetsTheModeOfASocket(t *testing.T) {
	b := setUp(t, layout{}, layout{})
	for dir, perm := range map[string]os.FileMode{b.dir: 0o700, b.wanted: 0o755} {
		grownSocket(t, filepath.Join(dir, "s"))
		if err := os.Chmod(filepath.Join(dir, "s"), perm); err != nil {
			t.Fatal(err)
		}
	}
	b.look(t)
	if res, err := b.apply(true); err != nil || len(res.Conflicts) > 0 {
		t.Fatalf("got %+v, error %v", res, err)
	}
	same(t, b.dir, picture(t, b.wanted))
}

func TestApply_RemovedDeviceIsKeptAside(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes device nodes: run as root")
	}
	b := setUpIn(t, "", layout{}, layout{"x": {}})
	if err := unix.Mknod(filepath.Join(b.dir, "null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		t.Skipf("this system makes no device nodes: %v", err)
	}
	b.look(t)
	res, err := b.apply(false)
	if err != nil || len(res.Conflicts) > 0 {
		t.Fatalf("got %+v, error %v", res, err)
	}
	same(t, b.dir, picture(t, b.wanted))
	if info, err := os.Lstat(filepath.Join(res.Aside, "null")); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("aside has %v, error %v", info, err)
	}
}

func grownSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestApply_MetadataChangeKeepsTheInode(t *testing.T) {
	b := setUp(t, layout{"a": {content: "x", perm: 0o600}, "p": {pipe: true}, "l": {target: "x"}}, layout{"a": {content: "x", perm: 0o640, time: 4}, "p": {pipe: true, perm: 0o600}, "l": {target: "x", time: 7}})
	inodes := inodesOf(t, b)
	if _, err := b.apply(true); err != nil {
		t.Fatal(err)
	}
	same(t, b.dir, b.after)
	if now := inodesOf(t, b); !maps.Equal(now, inodes) {
		t.Errorf("got inodes %v, want %v", now, inodes)
	}
}

func TestApply_MovedFileIsMovedBack(t *testing.T) {
	b := setUp(t, layout{"e/": {}, "e/f/": {}, "e/f/b": {content: "moved"}}, layout{"d/": {}, "d/a": {content: "moved", perm: 0o600, time: 4}})
	inode := inodesOf(t, b)["e/f/b"]
	if _, err := b.apply(true); err != nil {
		t.Fatal(err)
	}
	same(t, b.dir, b.after)
	if now := inodesOf(t, b)["d/a"]; now != inode {
		t.Errorf("got inode %d, want %d", now, inode)
	}
}

func inodesOf(t *testing.T, b *bench) map[string]uint64 {
	inodes := map[string]uint64{}
	for p, e := range sketchOf(t, b.dir).entries {
		inodes[p] = e.Stamp.Ino
	}
	return inodes
}

func TestApply_RestoresAttributesAndOwners(t *testing.T) {
	b := setUpIn(t, "", layout{"a": {content: "new"}, "d/": {}, "m": {}}, layout{"a": {content: "old"}, "d/": {}, "m": {}, "n": {perm: 0o755}})
	for _, name := range []string{"a", "d", "m", "n"} {
		if err := unix.Lsetxattr(filepath.Join(b.wanted, name), "user.color", []byte("red\x00"), 0); err != nil {
			t.Skipf("no attributes here: %v", err)
		}
		if os.Getuid() == 0 {
			if err := os.Lchown(filepath.Join(b.wanted, name), 1234, 4321); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := unix.Lsetxattr(filepath.Join(b.dir, "m"), "user.other", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	b.look(t)
	if res, err := b.apply(false); err != nil || len(res.Conflicts) > 0 {
		t.Fatalf("got %+v, error %v", res, err)
	}
	same(t, b.dir, b.after)
}

// otherDisk moves the work folder to another file system than the tree.
func otherDisk(t tester, b *bench) bool {
	t.Helper()
	work := tempDir(t, os.TempDir())
	var a, c syscall.Stat_t
	if syscall.Stat(work, &a) != nil || syscall.Stat(b.dir, &c) != nil || a.Dev == c.Dev {
		return false
	}
	b.work = filepath.Join(work, "work")
	return true
}

func TestApply_WorkFolderOnAnotherDisk(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		t.Run(name, func(t *testing.T) {
			for _, allOrNothing := range []bool{false, true} {
				b := setUp(t, changes[name].before, changes[name].after)
				if !otherDisk(t, b) {
					t.Skip("this needs /dev/shm, or another second file system, that can be written to: mount a tmpfs there")
				}
				contents := slices.Collect(maps.Values(sketchOf(t, b.dir).content))
				res, err := b.apply(allOrNothing)
				if err != nil || len(res.Conflicts) > 0 {
					t.Fatalf("got %+v, error %v", res, err)
				}
				same(t, b.dir, b.after)
				b.nothingLost(t, contents)
				b.tidy(t)
			}
		})
	}
}

func TestRecover_WorkFolderOnAnotherDisk(t *testing.T) {
	some := changes["a file for a folder"]
	if b := setUp(t, some.before, some.after); !otherDisk(t, b) {
		t.Skip("this needs /dev/shm, or another second file system, that can be written to: mount a tmpfs there")
	}
	for _, allOrNothing := range []bool{false, true} {
		crashEverywhere(t, func() *bench {
			b := setUp(t, some.before, some.after)
			otherDisk(t, b)
			return b
		}, allOrNothing)
	}
}

func TestApply_WorkFolderInTheTreeIsRefused(t *testing.T) {
	b := setUp(t, layout{"x": {}}, layout{})
	b.work = filepath.Join(b.dir, "work")
	if _, err := b.apply(false); err == nil || !strings.Contains(advice.Text(err), "next:") {
		t.Errorf("got error %v", err)
	}
}

func TestRecover_DamagedStagedContentIsLeftOut(t *testing.T) {
	b := setUp(t, layout{"a": {content: "new"}, "b": {content: "1"}}, layout{"a": {content: "old"}, "b": {content: "2"}})
	dieBefore(t, b, "place", "a")
	damage(t, b, "old")
	res, found, err := Recover(b.root, b.work)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if got(b, "a") != "new" || got(b, "b") != "2" {
		t.Errorf("got %q and %q, want new and 2", got(b, "a"), got(b, "b"))
	}
	if len(res.Conflicts) != 1 || res.Conflicts[0].Path != "a" || !slices.Equal(res.Done, []string{"b"}) {
		t.Errorf("got %+v", res)
	}
}

// dieBefore applies the plan until just before that change.
func dieBefore(t *testing.T, b *bench, what, path string) {
	t.Helper()
	testFault = func(w, p string) error {
		if w == what && p == path {
			panic(death{})
		}
		return nil
	}
	defer func() {
		testFault = nil
		if _, ok := recover().(death); !ok {
			t.Fatalf("it did not come to %s %s", what, path)
		}
	}()
	_, _ = b.apply(false)
}

// damage writes over the staged file that has the content.
func damage(t *testing.T, b *bench, content string) {
	t.Helper()
	staged, err := filepath.Glob(filepath.Join(b.work, "stage", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range staged {
		if c, err := os.ReadFile(f); err == nil && string(c) == content {
			put(t, f, strings.Repeat("\x00", len(content)))
			return
		}
	}
	t.Fatalf("nothing staged has the content %q", content)
}

func TestRecover_DamagedJournalIsAnError(t *testing.T) {
	b := setUp(t, layout{"a": {content: "new"}}, layout{"a": {content: "old"}})
	dieBefore(t, b, "place", "a")
	name := filepath.Join(b.work, string(applying))
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-5] ^= 1
	put(t, name, string(text))
	if _, found, err := Recover(b.root, b.work); !found || err == nil || !strings.Contains(advice.Text(err), "next:") {
		t.Errorf("got %v, error %v", found, err)
	}
	if _, err := b.apply(false); !errors.Is(err, ErrUnfinished) {
		t.Errorf("got error %v", err)
	}
	if pathExists(filepath.Join(b.dir, "a")) {
		t.Error("a damaged journal was followed")
	}
}

func TestRecover_JournalOfAnotherTreeIsAnError(t *testing.T) {
	b := setUp(t, layout{"a": {content: "new"}}, layout{"a": {content: "old"}})
	dieBefore(t, b, "place", "a")
	if _, found, err := Recover(open(t, b.wanted), b.work); !found || err == nil {
		t.Errorf("got %v, error %v", found, err)
	}
	same(t, b.wanted, b.after)
}

func TestNotes_KeepEveryByte(t *testing.T) {
	dir := t.TempDir()
	want := []note{
		{Conflict{"\xff\n\" a", "reason with \"quotes\" and\nlines", "/x y"}, true},
		{Conflict{"b", "", ""}, false},
	}
	for _, n := range want {
		if err := addNote(dir, n); err != nil {
			t.Fatal(err)
		}
	}
	f, _ := os.OpenFile(filepath.Join(dir, notesFile), os.O_APPEND|os.O_WRONLY, 0)
	fmt.Fprint(f, `1 "cut sho`)
	f.Close()
	if got := readNotes(dir); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestApply_TouchedFileWithTheRightContentIsNoConflict(t *testing.T) {
	b := setUp(t, layout{"a": {content: "x", time: 3}}, layout{"a": {content: "x", time: 4}})
	put(t, filepath.Join(b.dir, "a"), "x")
	if len(b.steps) != 1 || b.steps[0].Hash != fmt.Sprintf("%x", sha256.Sum256([]byte("x"))) || b.steps[0].Want.Kind != filetree.File {
		t.Fatalf("got steps %+v", b.steps)
	}
	if res, err := b.apply(true); err != nil || len(res.Conflicts) > 0 {
		t.Fatalf("got %+v, error %v", res, err)
	}
	same(t, b.dir, b.after)
}

func TestApply_ExistingHardLinkStays(t *testing.T) {
	b := setUp(t, layout{"a": {content: "x"}, "b": {link: "a"}}, layout{"a": {content: "x"}, "b": {link: "a"}})
	now := sketchOf(t, b.dir)
	b.steps = []Step{{Path: "b", Want: now.entries["b"], Expect: now.entries["b"], Link: "a"}}
	if res, err := b.apply(true); err != nil || len(res.Conflicts) > 0 || res.Aside != "" {
		t.Fatalf("got %+v, error %v", res, err)
	}
	same(t, b.dir, b.before)
}

func TestApply_TouchedMoveSourceIsWrittenInstead(t *testing.T) {
	for _, when := range []string{"stage", "pull"} {
		b := setUp(t, layout{"b": {content: "moved"}, "c": {content: "also"}}, layout{"a": {content: "moved"}, "d": {content: "also"}})
		if b.steps[slices.IndexFunc(b.steps, func(s Step) bool { return s.Path == "d" })].From != "c" {
			t.Fatal("the plan moves nothing")
		}
		undo := meddle(when, func() { put(t, filepath.Join(b.dir, "c"), "surprise") })
		res, err := b.apply(false)
		undo()
		if err != nil {
			t.Fatal(err)
		}
		b.nothingLost(t, []string{"moved", "also", "surprise"})
		if got(b, "d") != "also" || got(b, "a") != "moved" || len(res.Conflicts) == 0 || res.Conflicts[0].Path != "c" {
			t.Errorf("%s: got %q and %+v", when, got(b, "d"), res)
		}
	}
}

func TestRecover_MissingMoveSourceIsAConflict(t *testing.T) {
	b := setUp(t, layout{"b": {content: "moved"}}, layout{"a": {content: "moved"}})
	dieBefore(t, b, "pull", "b")
	if err := os.Remove(filepath.Join(b.dir, "b")); err != nil {
		t.Fatal(err)
	}
	res, _, err := Recover(b.root, b.work)
	if err != nil || len(res.Conflicts) != 1 || res.Conflicts[0].Path != "a" {
		t.Errorf("got %+v, error %v", res, err)
	}
}

func TestRecover_ChangedMoveSourceIsAConflict(t *testing.T) {
	b := setUp(t, layout{"b": {content: "moved"}}, layout{"a": {content: "moved"}})
	dieBefore(t, b, "pull", "b")
	put(t, filepath.Join(b.dir, "b"), "surprise")
	res, _, err := Recover(b.root, b.work)
	if err != nil || len(res.Conflicts) == 0 || res.Conflicts[0].Path != "a" || got(b, "a") != "" {
		t.Errorf("got %q, %+v, error %v", got(b, "a"), res, err)
	}
	b.nothingLost(t, []string{"surprise"})
}

func TestRecover_CrashWhileWritingAMovedFileLeavesNoPartialFile(t *testing.T) {
	b := setUp(t, layout{"a": {content: "old"}, "b": {content: "moved"}}, layout{"a": {content: "moved"}})
	i := slices.IndexFunc(b.steps, func(s Step) bool { return s.Path == "a" })
	if b.steps[i].From != "b" {
		t.Fatal("the plan moves nothing")
	}
	b.steps[i].Write = func(f *os.File) error {
		_, _ = f.WriteString("mov")
		panic(death{})
	}
	undo := meddle("enter", func() { put(t, filepath.Join(b.dir, "b"), "surprise") })
	func() {
		defer func() { _ = recover() }()
		defer undo()
		_, err := b.apply(false)
		t.Errorf("nothing was written: %v", err)
	}()
	res, _, err := Recover(b.root, b.work)
	if err != nil || len(res.Conflicts) == 0 || res.Conflicts[0].Path != "a" || got(b, "a") != "old" {
		t.Errorf("got %q, %+v, error %v", got(b, "a"), res, err)
	}
	b.nothingLost(t, []string{"old", "surprise"})
}

func TestApply_FilesKeptAsideAreCopiedWholeToAnotherDisk(t *testing.T) {
	before := layout{"d/": {perm: 0o500, time: 3}, "d/f": {content: "f", perm: 0o400, time: 4}, "d/l": {target: "\xff"}, "d/p": {pipe: true}, "d/e/": {time: 5}}
	b := setUp(t, before, layout{})
	if !otherDisk(t, b) {
		t.Skip("this needs /dev/shm, or another second file system, that can be written to: mount a tmpfs there")
	}
	res, err := b.apply(false)
	if err != nil {
		t.Fatal(err)
	}
	want, aside := b.before, picture(t, res.Aside)
	want["."] = aside["."]
	same(t, res.Aside, want)
}

// A folder gets its mode after those within it: it may forbid to pass, and a strict root does not help
// itself.
func TestApply_SetsFolderModesInnermostFirst(t *testing.T) {
	if os.Getuid() == 0 {
		testkit.RerunAsUser(t, "/bin/true", "^TestApply_SetsFolderModesInnermostFirst$")
		return
	}
	before := layout{"d/": {}, "d/e/": {}, "d/e/f": {content: "new"}}
	after := layout{"d/": {perm: 0o600}, "d/e/": {perm: 0o500}, "d/e/f": {content: "old"}}
	b := setUp(t, before, after)
	strict, err := filetree.OpenStrict(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	res, err := Apply(t.Context(), strict, b.steps, Options{Work: b.work})
	if err != nil || len(res.Conflicts) > 0 {
		t.Fatalf("got %+v, error %v", res, err)
	}
	same(t, b.dir, b.after)
}
