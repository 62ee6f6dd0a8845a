// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

// watchTree watches a folder and every folder below it, as a caller does who walks it.
func watchTree(t testing.TB, dir string, opts *Options) *Watcher {
	t.Helper()
	w, err := New(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	addAll(t, w, dir, ".")
	if _, err := w.Take(); err != nil {
		t.Fatal(err)
	}
	return w
}

// addAll adds a folder before it reads it, and then those in it.
func addAll(t testing.TB, w *Watcher, dir, path string) {
	t.Helper()
	if err := w.Add(path); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			addAll(t, w, dir, filepath.Join(path, e.Name()))
		}
	}
}

func take(t testing.TB, w *Watcher) Hints {
	t.Helper()
	hints, err := w.Take()
	if err != nil {
		t.Fatal(err)
	}
	return hints
}

// reported is the content of hints, as text that is easy to compare.
func reported(h Hints) []string {
	var out []string
	if h.Overflow {
		out = append(out, "overflow")
	}
	for path, hint := range h.Files {
		out = append(out, path+" "+hint.String())
	}
	for path := range h.Dirs {
		out = append(out, path+" scan")
	}
	slices.Sort(out)
	return out
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatcher_UnchangedTreeHasNoHints(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a/b/c", "c")
	w := watchTree(t, dir, nil)
	if got := reported(take(t, w)); len(got) > 0 {
		t.Errorf("hints of a quiet tree: %q", got)
	}
}

func TestWatcher_MovedFoldersAreScannedAtTheirNewPath(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(dir string) error
		want []string
	}{
		{
			"made", func(dir string) error { return os.MkdirAll(dir+"/x/y", 0o755) },
			[]string{". touched", "x scan", "x touched"},
		},
		{
			"moved", func(dir string) error { return os.Rename(dir+"/a/b", dir+"/z") },
			[]string{". touched", "a touched", "a/b gone", "z scan", "z touched"},
		},
		{
			"moved out", func(dir string) error { return os.Rename(dir+"/a/b", dir+"-out") },
			[]string{"a touched", "a/b gone"},
		},
		{
			"removed", func(dir string) error { return os.RemoveAll(dir + "/a/b") },
			[]string{"a touched", "a/b touched+gone", "a/b/c gone"},
		},
		{"exchanged", func(dir string) error {
			return unix.Renameat2(unix.AT_FDCWD, dir+"/a", unix.AT_FDCWD, dir+"/d", unix.RENAME_EXCHANGE)
		}, []string{". touched", "a scan", "a touched+gone", "d scan", "d touched+gone"}},
		{
			"over an empty one", func(dir string) error { return unix.Rename(dir+"/a", dir+"/e") },
			[]string{". touched", "a gone", "e scan", "e touched"},
		},
		{"a file in its place", func(dir string) error {
			return errors.Join(os.Rename(dir+"/a/b", dir+"-out"), os.Symlink("nowhere", dir+"/a/b"))
		}, []string{"a touched", "a/b touched+gone"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir() + "/tree"
			write(t, dir+"/a/b/c", "c")
			write(t, dir+"/d/f", "f")
			must(t, os.Mkdir(dir+"/e", 0o755))
			w := watchTree(t, dir, nil)
			must(t, tt.do(dir))
			if diff := cmp.Diff(tt.want, reported(take(t, w))); diff != "" {
				t.Errorf("hints (-want +got):\n%s", diff)
			}
		})
	}
}

// Reports from before the move are of no use after it; later changes must be reported by new names.
func TestWatcher_MovedFolderIsReportedByItsNewPath(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a/b/c/file", "1")
	w := watchTree(t, dir, nil)
	must(t, os.Rename(dir+"/a", dir+"/new"))
	hints := take(t, w)
	for path := range hints.Dirs {
		addAll(t, w, dir, path)
	}
	take(t, w)
	write(t, dir+"/new/b/c/file", "2")
	want := []string{"new/b/c/file written+opened"}
	if diff := cmp.Diff(want, reported(take(t, w))); diff != "" {
		t.Errorf("hints after the move (-want +got):\n%s", diff)
	}
}

func TestWatcher_FolderMovedOutIsNotReported(t *testing.T) {
	dir := t.TempDir() + "/tree"
	write(t, dir+"/a/b/c", "c")
	w := watchTree(t, dir, nil)
	must(t, os.Rename(dir+"/a", dir+"-out"))
	take(t, w)
	write(t, dir+"-out/b/c", "d")
	if got := reported(take(t, w)); len(got) > 0 {
		t.Errorf("hints of a folder that is not in the tree: %q", got)
	}
	if got := len(w.byNumber); got != 1 {
		t.Errorf("watches = %d, want that of the root alone", got)
	}
}

func TestWatcher_FolderAddedUnderTwoPathsIsAnOverflow(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a/b/c", "c")
	w := watchTree(t, dir, nil)
	must(t, os.Rename(dir+"/a", dir+"/z"))
	must(t, w.Add("z")) // its move was not reported yet
	if !take(t, w).Overflow {
		t.Error("no overflow")
	}
	// From here on everything is as with a new watcher.
	addAll(t, w, dir, ".")
	take(t, w)
	write(t, dir+"/z/b/c", "d")
	if diff := cmp.Diff([]string{"z/b/c written+opened"}, reported(take(t, w))); diff != "" {
		t.Errorf("hints after the overflow (-want +got):\n%s", diff)
	}
}

func TestWatcher_FullQueueIsAnOverflow(t *testing.T) {
	dir := t.TempDir()
	names := make([]string, 200)
	for i := range names {
		names[i] = filepath.Join(dir, strings.Repeat("x", i+1))
		write(t, names[i], "")
	}
	w := watchTree(t, dir, nil)
	for range 100 { // 20,000 openings, none like the one before it
		for _, name := range names {
			fd, err := unix.Open(name, unix.O_RDONLY, 0)
			must(t, err)
			must(t, unix.Close(fd))
		}
	}
	if !take(t, w).Overflow {
		t.Error("no overflow")
	}
	if got := reported(take(t, w)); len(got) > 0 {
		t.Errorf("hints after the overflow: %q", got)
	}
}

// Each removed watch is reported, so many must not fill the queue.
func TestWatcher_LargeFolderCanMove(t *testing.T) {
	dir := t.TempDir() + "/tree"
	must(t, os.Mkdir(dir, 0o755))
	w := watchTree(t, dir, nil)
	w.mu.Lock()
	for i := range 3 * removeAtOnce {
		w.dropped = append(w.dropped, int32(1000+i))
	}
	must(t, w.drain())
	if len(w.dropped) > 0 || w.hints.Overflow {
		t.Errorf("%d watches left, overflow %v", len(w.dropped), w.hints.Overflow)
	}
	w.mu.Unlock()
}

func TestWatcher_FullTableIsALimitError(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a/b/c", "c")
	w, err := New(dir, &Options{MaxWatches: 2})
	must(t, err)
	defer w.Close()
	must(t, w.Add("a"))
	must(t, w.Add("a"))
	var limit *LimitError
	if err := w.Add("a/b"); !errors.As(err, &limit) || limit.Watches != 2 {
		t.Errorf("got %v, want a LimitError", err)
	}
	err = &LimitError{Setting: "fs.inotify.max_user_watches", Watches: 7, Err: unix.ENOSPC}
	for _, want := range []string{"after 7", "sysctl -w fs.inotify.max_user_watches=", "next:"} {
		if !strings.Contains(advice.Text(err), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestWatcher_ClosedReturnsAnError(t *testing.T) {
	w := watchTree(t, t.TempDir(), nil)
	must(t, w.Close())
	must(t, w.Close())
	_, takeErr := w.Take()
	_, settleErr := w.Settle(nil)
	for name, err := range map[string]error{"Add": w.Add("."), "Take": takeErr, "Settle": settleErr} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
}

func TestNew_RefusesUnsupportedFolders(t *testing.T) {
	if _, err := New("/proc/self", nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("proc: got %v, want ErrUnsupported", err)
	}
	if _, err := New(t.TempDir()+"/none", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: got %v, want ErrNotExist", err)
	}
	if _, err := New("/", nil); !errors.Is(err, ErrMounted) && !errors.Is(err, ErrUnsupported) {
		t.Errorf("folder with mounts: got %v, want ErrMounted", err)
	}
}
