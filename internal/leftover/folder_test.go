// SPDX-License-Identifier: Apache-2.0

package leftover_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/leftover"
)

func ExampleKind() {
	parent, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(parent)
	kind := leftover.Kind{
		Prefix: "work-",
		Text:   "The folder of this name without .lock is where a program works.\n",
		Beside: []string{".store"},
	}
	if _, err := kind.Sweep(parent); err != nil { // what killed programs have left
		fmt.Println(err)
	}
	folder, err := kind.Make(parent)
	if err != nil {
		fmt.Println(err)
		return
	}
	entries, _ := os.ReadDir(parent)
	fmt.Println(len(entries), "entries: the folder, its store and the marker")
	if err := folder.Remove(); err != nil {
		fmt.Println(err)
	}
	entries, _ = os.ReadDir(parent)
	fmt.Println(len(entries), "left")
	// Output:
	// 3 entries: the folder, its store and the marker
	// 0 left
}

func TestFolder_IsPrivate(t *testing.T) {
	parent := parentFolder(t)
	folder := makeFolder(t, parent)
	if got := filepath.Dir(folder.Path()); got != parent {
		t.Errorf("the folder is in %s, want %s", got, parent)
	}
	if name := filepath.Base(folder.Path()); !strings.HasPrefix(name, kind.Prefix) {
		t.Errorf("the folder is called %s", name)
	}
	for suffix, want := range map[string]fs.FileMode{"": fs.ModeDir | 0o700, ".store": fs.ModeDir | 0o700, ".lock": 0o600} {
		info, err := os.Lstat(folder.Path() + suffix)
		if err != nil {
			t.Error(err)
		} else if runtime.GOOS != "windows" && info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", info.Name(), info.Mode(), want)
		}
	}
	if text, err := os.ReadFile(folder.Path() + ".lock"); err != nil || string(text) != kind.Text {
		t.Errorf("the marker has %q, %v, want %q", text, err, kind.Text)
	}
}

func TestFolder_PathHasNoLinks(t *testing.T) {
	dir := parentFolder(t)
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Skip("links cannot be made here:", err)
	}
	if got := filepath.Dir(makeFolder(t, filepath.Join(dir, "link")).Path()); got != dir {
		t.Errorf("the folder is in %s, want %s", got, dir)
	}
}

func TestFolder_FailedMakeLeavesNothing(t *testing.T) {
	parent := parentFolder(t)
	impossible := kind
	impossible.Beside = []string{".store", "/missing/folder"}
	if _, err := impossible.Make(parent); err == nil {
		t.Error("got no error for a folder that cannot be made")
	}
	checkEmpty(t, parent)
	if _, err := kind.Make(filepath.Join(parent, "missing")); err == nil || !strings.Contains(advice.Text(err), "missing") {
		t.Errorf("got %v, want an error with the folder's name", err)
	}
}

func TestFolder_ConcurrentRemovesWaitForOne(t *testing.T) {
	parent := parentFolder(t)
	folder := makeFolder(t, parent)
	plant(t, filepath.Join(folder.Beside(".store"), "pack"), "x")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := folder.Remove(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(folder.Path()); err == nil {
				t.Error("Remove returned before the folder was gone")
			}
		})
	}
	wg.Wait()
	checkEmpty(t, parent)
}

func TestFolder_KeptIsNotSweptAndCanBeRemoved(t *testing.T) {
	parent := parentFolder(t)
	folder := makeFolder(t, parent)
	plant(t, filepath.Join(folder.Path(), "file"), "x")
	plant(t, filepath.Join(folder.Beside(".store"), "pack"), "x")
	if err := folder.Keep(); err != nil {
		t.Error(err)
	}
	if removed := sweep(t, parent); len(removed) > 0 {
		t.Errorf("swept %v", removed)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v, want the folder and the one beside it, without a marker", left, err)
	}
	if _, err := os.Stat(filepath.Join(folder.Path(), "file")); err != nil {
		t.Error(err)
	}
	if err := folder.Remove(); err != nil {
		t.Error(err)
	}
	checkEmpty(t, parent)
}

// Another program sweeps in the moment between the release of the marker and its removal.
func TestSweep_DisownedMarkerIsIgnored(t *testing.T) {
	parent := parentFolder(t)
	folder := filepath.Join(parent, kind.Prefix+"NAME")
	plant(t, filepath.Join(folder, "file"), "x")
	plant(t, folder+".lock", "kept: "+kind.Text[len("kept: "):])
	if removed := sweep(t, parent); len(removed) > 0 {
		t.Errorf("swept %v", removed)
	}
}

// Runs as an ordinary user too: root can read everything anyway.
func TestFolder_LockedFilesAreRemoved(t *testing.T) {
	parent, outside := parentFolder(t), t.TempDir()
	if err := os.Chmod(outside, 0o500); err != nil {
		t.Fatal(err)
	}
	folder := makeFolder(t, parent)
	var locked []string
	for _, top := range []string{folder.Path(), folder.Beside(".store")} {
		deepest := filepath.Join(top, "a", "b")
		plant(t, filepath.Join(deepest, "file"), "x")
		if err := os.Symlink(outside, filepath.Join(deepest, "link")); err != nil {
			t.Fatal(err)
		}
		locked = append(locked, deepest, filepath.Dir(deepest), top)
	}
	for _, dir := range locked {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Remove(); err != nil {
		t.Error(err)
	}
	checkEmpty(t, parent)
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("a folder outside was changed: %v, %v", info, err)
	}
}

// Runs as an ordinary user only, whose folder another user has made unwritable.
func TestFolder_FailedRemovalIsLeftForALaterSweep(t *testing.T) {
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("nothing is forbidden to this user: run as an ordinary user")
	}
	parent := parentFolder(t)
	folder := makeFolder(t, parent)
	if err := os.Chmod(parent, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(parent, 0o700)
	if err := folder.Remove(); err == nil || !strings.Contains(advice.Text(err), filepath.Base(folder.Path())) {
		t.Errorf("got %v, want an error with the folder's name", err)
	}
	swept, err := kind.Sweep(parent)
	if err != nil || len(swept) != 1 || swept[0].Err == nil || swept[0].Path != folder.Path() {
		t.Errorf("swept %v, %v, want the folder and why it is still there", swept, err)
	}
	if err := os.Chmod(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	if removed := sweep(t, parent); len(removed) != 1 {
		t.Errorf("swept %v, want the folder", removed)
	}
	checkEmpty(t, parent)
}
