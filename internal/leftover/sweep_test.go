// SPDX-License-Identifier: Apache-2.0

package leftover_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
)

func TestSweep_KilledProgram(t *testing.T) {
	parent := parentFolder(t)
	other, mine := startProgram(t, folderVariable, parent), makeFolder(t, parent)
	if removed := sweep(t, parent); len(removed) > 0 {
		t.Fatalf("folders of living programs were removed: %v", removed)
	}
	if err := os.Mkdir(filepath.Join(other.folder, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	plant(t, filepath.Join(other.folder+".store", "pack"), "x")
	other.kill()
	if diff := cmp.Diff([]string{other.folder}, sweep(t, parent)); diff != "" {
		t.Errorf("swept (-want +got):\n%s", diff)
	}
	for _, dir := range []string{mine.Path(), mine.Beside(".store")} {
		if _, err := os.Stat(dir); err != nil {
			t.Error("what is mine was swept:", err)
		}
	}
	if err := mine.Remove(); err != nil {
		t.Error(err)
	}
	checkEmpty(t, parent)
}

// Every state in which a program can be killed, made by hand.
func TestSweep_EveryStateOfAKilledProgram(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string // a name that ends in a slash is a folder
		found bool
	}{
		{"only an empty marker", map[string]string{".lock": ""}, false},
		{"only a part of the marker", map[string]string{".lock": kind.Text[:9]}, false},
		{"only the marker", map[string]string{".lock": kind.Text}, false},
		{"before the store was made", map[string]string{".lock": kind.Text, "/": ""}, true},
		{"all, empty", map[string]string{".lock": kind.Text, "/": "", ".store/": ""}, true},
		{"all, in use", map[string]string{".lock": kind.Text, "/file": "x", ".store/pack": "x"}, true},
		{"when only the store was left", map[string]string{".lock": kind.Text, ".store/pack": "x"}, true},
	} {
		sweeps := func(t *testing.T, prefix string) {
			parent := parentFolder(t)
			folder := filepath.Join(parent, prefix+"NAMEOFAFOLDER234")
			for name, content := range test.files {
				if dir, isDir := strings.CutSuffix(name, "/"); isDir {
					if err := os.Mkdir(folder+dir, 0o700); err != nil {
						t.Fatal(err)
					}
					continue
				}
				plant(t, folder+filepath.FromSlash(name), content)
			}
			var want []string
			if test.found {
				want = []string{folder}
			}
			if diff := cmp.Diff(want, sweep(t, parent)); diff != "" {
				t.Errorf("swept (-want +got):\n%s", diff)
			}
			checkEmpty(t, parent)
		}
		t.Run(test.name, func(t *testing.T) { sweeps(t, kind.Prefix) })
		t.Run(test.name+", former prefix", func(t *testing.T) { sweeps(t, kind.Former[0]) })
	}
}

func TestSweep_ProgramKilledAtRandom(t *testing.T) {
	parent := parentFolder(t)
	for range testkit.Size(15, 300) {
		busy := startProgram(t, busyVariable, parent)
		time.Sleep(rand.N(10 * time.Millisecond)) // a random moment
		busy.kill()
		sweep(t, parent)
		checkEmpty(t, parent)
	}
}

func TestSweep_ForeignFilesStay(t *testing.T) {
	parent, outside := parentFolder(t), t.TempDir()
	ours := startProgram(t, folderVariable, parent)
	ours.kill()
	mark := func(name string) { plant(t, filepath.Join(parent, name), kind.Text) }
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(parent, name)); err != nil {
			t.Fatal(err)
		}
	}

	plant(t, filepath.Join(parent, "test-folder-foreign", "file"), "no marker")
	plant(t, filepath.Join(parent, "test-folder-foreign.store", "file"), "no marker")
	plant(t, filepath.Join(parent, "test-folder-other", "file"), "another program's marker")
	plant(t, filepath.Join(parent, "test-folder-other.lock"), "pid 7")
	plant(t, filepath.Join(parent, "test-folder-longer", "file"), "a marker with more text")
	plant(t, filepath.Join(parent, "test-folder-longer.lock"), kind.Text+"more")
	plant(t, filepath.Join(parent, "test-folder-chosen.lock"), "") // empty, beside a folder that a user named
	plant(t, filepath.Join(parent, "test-folder-chosen", "file"), "mine")
	plant(t, filepath.Join(parent, "unrelated", "file"), "another name")
	mark("unrelated.lock")
	plant(t, filepath.Join(outside, "file"), "behind a link")
	link(outside, "test-folder-link")
	link(outside, "test-folder-link.store")
	mark("test-folder-link.lock")
	plant(t, filepath.Join(outside, "marker"), kind.Text)
	plant(t, filepath.Join(parent, "test-folder-linked", "file"), "the marker is a link")
	link(filepath.Join(outside, "marker"), "test-folder-linked.lock")
	link("test-folder-linked.lock", "test-folder-loop.lock")

	if diff := cmp.Diff([]string{ours.folder}, sweep(t, parent)); diff != "" {
		t.Errorf("swept (-want +got):\n%s", diff)
	}
	want := []string{
		"outside/file", "outside/marker", "test-folder-chosen/file", "test-folder-foreign.store/file", "test-folder-foreign/file",
		"test-folder-link.store/file", "test-folder-link/file", "test-folder-linked/file",
		"test-folder-longer/file", "test-folder-other/file", "unrelated/file",
	}
	if diff := cmp.Diff(want, filesIn(parent, outside)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// filesIn are the files of the folders in parent, and those outside.
func filesIn(parent, outside string) (names []string) {
	inside, _ := filepath.Glob(filepath.Join(parent, "*", "file"))
	for _, path := range inside {
		names = append(names, filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path))
	}
	others, _ := filepath.Glob(filepath.Join(outside, "*"))
	for _, path := range others {
		names = append(names, "outside/"+filepath.Base(path))
	}
	slices.Sort(names)
	return names
}

func TestSweep_FoldersOfOtherUsersStay(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user: run as root")
	}
	for _, suffix := range []string{"", ".store", ".lock"} {
		t.Run("the owner of "+suffix, func(t *testing.T) {
			parent := parentFolder(t)
			other := startProgram(t, folderVariable, parent)
			if err := os.Lchown(other.folder+suffix, 65534, 65534); err != nil {
				t.Fatal(err)
			}
			other.kill()
			sweep(t, parent)
			if _, err := os.Lstat(other.folder + suffix); err != nil {
				t.Errorf("what is another user's was swept: %v", err)
			}
		})
	}
}

func TestSweep_ConcurrentSweepsRemoveOnce(t *testing.T) {
	parent := parentFolder(t)
	for range 3 {
		startProgram(t, folderVariable, parent).kill()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var removed []string
	for range 4 {
		wg.Go(func() {
			found := sweep(t, parent)
			folder, err := kind.Make(parent) // meanwhile others begin
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(folder.Beside(".store")); err != nil {
				t.Error("a new folder was swept:", err)
			}
			_ = folder.Remove()
			mu.Lock()
			defer mu.Unlock()
			removed = append(removed, found...)
		})
	}
	wg.Wait()
	slices.Sort(removed)
	if unique := slices.Compact(slices.Clone(removed)); len(unique) != 3 || len(removed) != 3 {
		t.Errorf("swept %v, want each of three folders once", removed)
	}
	checkEmpty(t, parent)
}

// Many sweep all the time while others make folders: a new marker may be taken for an old one, and
// no program notices.
func TestSweep_NewFoldersSurviveManySweeps(t *testing.T) {
	parent := parentFolder(t)
	stop := make(chan struct{})
	var sweepers, makers sync.WaitGroup
	for range 2 {
		sweepers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					sweep(t, parent)
				}
			}
		})
	}
	for range 2 {
		makers.Go(func() {
			for range testkit.Size(200, 5000) {
				folder, err := kind.Make(parent)
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(folder.Beside(".store"), "pack"), nil, 0o600); err != nil {
					t.Error("a folder of the living was swept:", err)
				}
				if err := folder.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	makers.Wait()
	close(stop)
	sweepers.Wait()
	sweep(t, parent)
	checkEmpty(t, parent)
}

func TestSweep_ErrorNamesTheFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := kind.Sweep(missing); err == nil || !strings.Contains(advice.Text(err), missing) {
		t.Errorf("got %v, want an error with the folder's name", err)
	}
}
