// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
)

// naive counts in the simplest way that is right for a tree that does not change.
func naive(t testing.TB, root string) (bytes, apparent, files int64) {
	t.Helper()
	seen := map[uint64]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s := info.Sys().(*syscall.Stat_t)
		if seen[s.Ino] {
			return nil
		}
		seen[s.Ino] = true
		files++
		bytes += s.Blocks * 512
		if !d.IsDir() {
			apparent += s.Size
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes, apparent, files
}

// count counts without other file systems.
func count(t testing.TB, paths ...string) Measure {
	t.Helper()
	m, err := Count(context.Background(), false, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCount_AgreesWithANaiveWalk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		grow(rt, root)
		bytes, apparent, files := naive(t, root)
		w := newWalk(false, []string{root})
		pauses := 0
		for !w.advance(func() bool { return rapid.IntRange(0, 2).Draw(rt, "pause") > 0 }) {
			if pauses++; pauses > 1000 {
				rt.Fatal("no end after 1000 pauses")
			}
		}
		portable := newWalk(false, nil)
		portable.tree = openPathTree(portable, root)
		portable.advance(func() bool { return true })
		for name, got := range map[string]Measure{"Linux": w.found, "elsewhere": portable.found} {
			if got.Bytes != bytes || got.Apparent != apparent || got.Files != files || got.Unreadable != 0 {
				rt.Errorf("%s: got %+v, want bytes %d, apparent %d, files %d", name, got, bytes, apparent, files)
			}
		}
	})
}

// grow fills a folder with things of all kinds.
func grow(rt *rapid.T, root string) {
	folders, files := []string{root}, []string{}
	for i := range rapid.IntRange(0, testkit.Size(60, 400)).Draw(rt, "things") {
		path := filepath.Join(rapid.SampledFrom(folders).Draw(rt, "in"), fmt.Sprint(i))
		var err error
		switch kind := rapid.IntRange(0, 6).Draw(rt, "kind"); {
		case kind <= 1:
			err = os.Mkdir(path, 0o755)
			folders = append(folders, path)
		case kind == 2 && len(files) > 0:
			err = os.Link(rapid.SampledFrom(files).Draw(rt, "link"), path)
		case kind == 3:
			err = os.Symlink(rapid.SampledFrom(folders).Draw(rt, "to"), path)
		case kind == 4:
			err = sparse(path, rapid.Int64Range(0, 1<<30).Draw(rt, "sparse"))
			files = append(files, path)
		case kind == 5:
			err = unix.Mkfifo(path, 0o600)
		default:
			err = os.WriteFile(path, make([]byte, rapid.IntRange(0, 20000).Draw(rt, "size")), 0o600)
			files = append(files, path)
		}
		if err != nil {
			rt.Fatal(err)
		}
	}
}

// sparse makes a file of a size without writing anything.
func sparse(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

func write(t testing.TB, path string, bytes int) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, make([]byte, bytes), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCount_Sizes(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "large"), 1<<20)
	cases := []struct {
		name                   string
		arrange                func(root string) error
		files, apparent, least int64 // least bytes; the most are 64 KiB more
	}{
		{"nothing", func(string) error { return nil }, 0, 0, 0},
		{"a file", func(root string) error { return os.WriteFile(root+"/a", make([]byte, 1<<20), 0o600) }, 1, 1 << 20, 1 << 20},
		{"a sparse file with what was written", func(root string) error { return sparse(root+"/a", 1<<40) }, 1, 1 << 40, 0},
		{"a file with two names once", func(root string) error {
			return errors.Join(os.WriteFile(root+"/a", make([]byte, 1<<20), 0o600), os.Link(root+"/a", root+"/b"))
		}, 1, 1 << 20, 1 << 20},
		{"a link to a folder as itself", func(root string) error { return os.Symlink("/", root+"/a") }, 1, 1, 0},
		{"a link to a large file as itself", func(root string) error { return os.Symlink(outside+"/large", root+"/a") }, 1, int64(len(outside)) + 6, 0},
		{"folders", func(root string) error { return os.MkdirAll(root+"/a/b/c", 0o700) }, 3, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			if err := c.arrange(root); err != nil {
				t.Fatal(err)
			}
			got := count(t, root)
			if got.Files != c.files || got.Apparent != c.apparent || got.Bytes < c.least || got.Bytes > c.least+64<<10 {
				t.Errorf("got %+v, want files %d, apparent %d, bytes %d or a bit more", got, c.files, c.apparent, c.least)
			}
		})
	}
}

func TestCount_DeepTreeIsCountedWhole(t *testing.T) {
	root, depth := t.TempDir(), 600
	name := strings.Repeat("deep", 10)
	fd, err := unix.Open(root, unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth { // 24,000 bytes of path, six times what the system accepts
		if err := unix.Mkdirat(fd, name, 0o700); err != nil {
			t.Fatal(err)
		}
		sub, err := unix.Openat(fd, name, unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		fd = sub
		// A second folder at each level is what is left to do on the way back.
		if err := unix.Mkdirat(fd, "side", 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file, err := unix.Openat(fd, "hidden", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(file, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(file)
	_ = unix.Close(fd)
	got := count(t, root)
	if want := int64(2*depth + 1); got.Files != want || got.Bytes < 1<<20 || got.Unreadable != 0 {
		t.Errorf("got %d files, %d bytes, %d unreadable, want %d files and a MiB", got.Files, got.Bytes, got.Unreadable, want)
	}
	if !strings.HasSuffix(got.Largest, name+"/hidden") || len(got.Largest) < depth*len(name) {
		t.Errorf("largest file: got %d characters that end in %q, want the deep one", len(got.Largest), got.Largest[len(got.Largest)-60:])
	}
	if open := descriptors(t); open > 40 {
		t.Errorf("open descriptors after a deep tree: got %d, want few", open)
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestCount_MovedFolderIsNotFollowed(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	deep := root
	for range keepOpen + 20 {
		deep = filepath.Join(deep, "d")
	}
	write(t, filepath.Join(deep, "file"), 1)
	write(t, filepath.Join(root, "d", "d", "side", "file"), 1)
	w := newWalk(false, []string{root})
	defer w.close()
	tree := newOpenedTree(w, root)
	w.tree, w.roots = tree, nil
	for len(tree.branch) < keepOpen+15 {
		tree.step(1)
	}
	// A walk that goes up from the moved folder would arrive in the other one.
	at := filepath.Join(root, "d", "d", "d", "d", "d")
	if err := os.Rename(at, filepath.Join(other, "moved")); err != nil {
		t.Fatal(err)
	}
	if !w.advance(func() bool { return true }) || w.found.Unreadable == 0 {
		t.Errorf("got %+v, want an end and a word of what was not read", w.found)
	}
}

func TestCount_LinkInPlaceOfAFolderIsNotFollowed(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "file"), 1<<20)
	folder := filepath.Join(root, "folder")
	write(t, filepath.Join(folder, "file"), 1)
	w := newWalk(false, []string{root})
	defer w.close()
	tree := newOpenedTree(w, root)
	w.tree, w.roots = tree, nil
	for len(tree.branch[0].below) == 0 { // until the folder was seen
		tree.step(1)
	}
	if err := errors.Join(os.RemoveAll(folder), os.Symlink(outside, folder)); err != nil {
		t.Fatal(err)
	}
	if !w.advance(func() bool { return true }) || w.found.Files != 1 || w.found.Unreadable != 0 {
		t.Errorf("got %+v, want the folder that was seen and nothing else", w.found)
	}
}

func TestCount_FilesMayComeAndGo(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "stays", "large"), 1<<20)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for worker := range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				dir := filepath.Join(root, fmt.Sprint(worker, "-", i%7))
				_ = os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700)
				_ = os.WriteFile(filepath.Join(dir, "a", "f"), nil, 0o600)
				_ = os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c"))
				_ = os.RemoveAll(dir)
				_ = os.Symlink("/", dir) // a link where a folder was
				_ = os.Remove(dir)
			}
		})
	}
	for range testkit.Size(200, 5000) {
		got := count(t, root)
		if got.Bytes < 1<<20 || got.Bytes > 2<<20 || got.Files > 100 || got.Largest != filepath.Join(root, "stays", "large") {
			t.Errorf("got %+v, want a MiB, few files and no way out through a link", got)
			break
		}
	}
	close(stop)
	wg.Wait()
}

func TestCount_UnreadableFolderIsReported(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can read every folder; TestWatchdog_AsOrdinaryUser runs this")
	}
	root := t.TempDir()
	write(t, filepath.Join(root, "closed", "file"), 1<<20)
	if err := os.Chmod(filepath.Join(root, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "closed"), 0o700) })
	if got := count(t, root); got.Unreadable != 1 || got.Files != 1 {
		t.Errorf("got %+v, want one folder that is unreadable", got)
	}
	if _, err := Count(t.Context(), false, filepath.Join(root, "closed")); err == nil || !strings.Contains(advice.Text(err), "next:") {
		t.Errorf("counting the closed folder itself: got %v, want an error that says what to do", err)
	}
}

func TestWatchdog_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^Test(Count_(Unreadable|Sizes)|Watch_(Growth|SingleSighting|Unnamed)|UsageOf_)")
}

func TestCount_MissingFolderIsAnError(t *testing.T) {
	_, err := Count(t.Context(), false, filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
}

func TestCount_OtherFileSystemsOnlyIfSet(t *testing.T) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("no bubblewrap to mount something with")
	}
	root := t.TempDir()
	write(t, filepath.Join(root, "file"), 1)
	if err := os.Mkdir(filepath.Join(root, "mounted"), 0o755); err != nil {
		t.Fatal(err)
	}
	for across, want := range map[string]string{"false": "2", "true": "3"} {
		cmd := exec.Command(bwrap, "--dev-bind", "/", "/", "--tmpfs", filepath.Join(root, "mounted"), "--file", "0", filepath.Join(root, "mounted", "inside"),
			"--setenv", helperVar, "count", "--", os.Args[0], root, across)
		cmd.Stdin = strings.NewReader("content")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Skipf("nothing can be mounted here: %v\n%s", err, out)
		}
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("files, other file systems %s: got %s, want %s", across, got, want)
		}
	}
}

func BenchmarkScanOf10000Files(b *testing.B) {
	root := b.TempDir()
	for i := range 10000 {
		write(b, filepath.Join(root, fmt.Sprint(i/100), fmt.Sprint(i)), 1)
	}
	for b.Loop() {
		if m := count(b, root); m.Files != 10100 {
			b.Fatal(m)
		}
	}
}

// Programs that run with the rights of their owner or group are found where the cell may write them.
func TestCount_FindsSetIDPrograms(t *testing.T) {
	for mode, want := range map[os.FileMode]bool{
		0o755 | os.ModeSetuid: true, 0o711 | os.ModeSetgid: true, 0o4: false, 0o755: false,
		0o644 | os.ModeSetuid: false, 0o705 | os.ModeSetgid: false, // which no user runs, and a mark for locks
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "folder", "program")
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o700), os.Chmod(path, mode), os.Chmod(filepath.Dir(path), 0o700|os.ModeSetgid)); err != nil {
			t.Fatal(err)
		}
		m, err := Count(t.Context(), false, dir)
		if got := m.SetID == path; err != nil || got != want || m.SetID != "" && !got {
			t.Errorf("%v: found %q, %v, want found: %v", mode, m.SetID, err, want)
		}
		if m, err := Count(t.Context(), false, path); err != nil || (m.SetID == path) != want || m.Files != 1 {
			t.Errorf("%v: the file itself is %+v, %v, want found: %v", mode, m, err, want)
		}
		ended := make(chan Breach, 1)
		w, err := Start(t.Context(), Options{Paths: []string{dir}, NoSetID: true, Exceeded: func(b Breach) { ended <- b }})
		if b, _ := errors.AsType[Breach](err); (b.What == SetID && b.Path == path) != want {
			t.Errorf("%v: started with %v", mode, err)
		}
		if err == nil {
			w.Close()
		}
	}
}

// File capabilities are like set-id bits: a write through a mapping leaves them.
func TestCount_FindsProgramsWithCapabilities(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can set file capabilities: run this test as root")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "program")
	// VFS_CAP_REVISION_2 with CAP_NET_RAW, permitted and effective.
	capabilities := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := errors.Join(os.WriteFile(path, nil, 0o700), unix.Setxattr(path, "security.capability", capabilities, 0)); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{dir, path} {
		if m, err := Count(t.Context(), false, in); err != nil || m.SetID != path {
			t.Errorf("%s: found %q, %v, want %q", in, m.SetID, err, path)
		}
	}
}
