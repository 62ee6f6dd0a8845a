// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"

	"github.com/drover-agents/drover/internal/testkit"
)

// homeVariable makes this test program one that makes a home in the folder that it names, prints its path,
// and waits until it is killed or its input ends.
const homeVariable = "ISOLATION_TEST_HOME"

func init() {
	parent := os.Getenv(homeVariable)
	if parent == "" {
		return
	}
	home, err := isolation.NewHome(isolation.HomeOptions{TempDir: parent, ConfigDir: ".config"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(home.Path())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1) // without closing the home
}

// program is another program with a home.
type program struct {
	home string
	kill func()
}

func startProgram(t *testing.T, parent string) *program {
	t.Helper()
	home, kill := testkit.StartProgram(t, homeVariable+"="+parent)
	if _, err := os.Stat(home); err != nil {
		t.Fatalf("the other program printed %q: %v", home, err)
	}
	return &program{home: home, kill: kill}
}

func sweep(t *testing.T, parent string) []string {
	t.Helper()
	removed, err := isolation.SweepHomes(parent, "")
	if err != nil {
		t.Error(err)
	}
	return removed
}

// parentFolder is a folder for homes, as they see it.
func parentFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSweepHomes_KilledProgram(t *testing.T) {
	parent := parentFolder(t)
	other := startProgram(t, parent)
	if removed := sweep(t, parent); len(removed) > 0 {
		t.Fatalf("the home of a living program was removed: %v", removed)
	}
	locked := filepath.Join(other.home, "locked")
	if err := os.Mkdir(locked, 0); err != nil {
		t.Fatal(err)
	}
	other.kill()
	if diff := cmp.Diff([]string{other.home}, sweep(t, parent)); diff != "" {
		t.Errorf("swept (-want +got):\n%s", diff)
	}
	checkEmpty(t, parent)
}

func TestSweepHomes_FormerAndOtherPrefixes(t *testing.T) {
	const text = "The folder of this name without .lock is the private home of a run of Drover.\nBoth are removed when the run ends, or by a later run when the program was killed.\n"
	parent := parentFolder(t)
	var want []string
	for _, prefix := range []string{"claude-agent-", "drover-home-", "mine-", "other-"} {
		left := filepath.Join(parent, prefix+"NAMEOFAFOLDER234")
		plant(t, filepath.Join(left, "file"), "x")
		plant(t, left+".lock", text)
		want = append(want, left)
	}
	removed, err := isolation.SweepHomes(parent, "mine-")
	slices.Sort(removed)
	if diff := cmp.Diff(want[:3], removed); diff != "" || err != nil {
		t.Errorf("swept (-want +got):\n%s%v", diff, err)
	}
}

func TestSweepHomes_HomesInUseStay(t *testing.T) {
	parent := parentFolder(t)
	mine, other := newHome(t, parent), startProgram(t, parent)
	if removed := sweep(t, parent); len(removed) > 0 {
		t.Errorf("swept %v", removed)
	}
	for _, home := range []string{mine.Path(), other.home} {
		if _, err := os.Stat(filepath.Join(home, ".config")); err != nil {
			t.Error(err)
		}
	}
}

func TestSweepHomes_ForeignFilesStay(t *testing.T) {
	parent, outside := parentFolder(t), t.TempDir()
	ours := startProgram(t, parent)
	ours.kill()
	marker, err := os.ReadFile(ours.home + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	mark := func(name string) { plant(t, filepath.Join(parent, name), string(marker)) }
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(parent, name)); err != nil {
			t.Fatal(err)
		}
	}

	plant(t, filepath.Join(parent, "drover-home-foreign", "file"), "no marker")
	plant(t, filepath.Join(parent, "drover-home-other", "file"), "another program's marker")
	plant(t, filepath.Join(parent, "drover-home-other.lock"), "pid 7")
	plant(t, filepath.Join(parent, "unrelated", "file"), "another name")
	mark("unrelated.lock")
	plant(t, filepath.Join(outside, "file"), "behind a link")
	link(outside, "drover-home-link")
	mark("drover-home-link.lock")
	plant(t, filepath.Join(outside, "marker"), string(marker))
	plant(t, filepath.Join(parent, "drover-home-linked", "file"), "the marker is a link")
	link(filepath.Join(outside, "marker"), "drover-home-linked.lock")
	link("drover-home-linked.lock", "drover-home-loop.lock")

	if diff := cmp.Diff([]string{ours.home}, sweep(t, parent)); diff != "" {
		t.Errorf("swept (-want +got):\n%s", diff)
	}
	var left []string
	for _, pattern := range []string{filepath.Join(parent, "*", "file"), filepath.Join(outside, "*")} {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			left = append(left, filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path))
		}
	}
	slices.Sort(left)
	behind := filepath.Base(outside)
	want := []string{behind + "/file", behind + "/marker", "drover-home-foreign/file", "drover-home-link/file", "drover-home-linked/file", "drover-home-other/file", "unrelated/file"}
	slices.Sort(want)
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestSweepHomes_HomesOfOtherUsersStay(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user: run as root")
	}
	parent := parentFolder(t)
	folder, mark := startProgram(t, parent), startProgram(t, parent)
	for _, path := range []string{folder.home, mark.home + ".lock"} {
		if err := os.Lchown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	folder.kill()
	mark.kill()
	if removed := sweep(t, parent); len(removed) > 0 {
		t.Errorf("swept %v, want what is another user's to stay", removed)
	}
}

func TestSweepHomes_ErrorNamesTheFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := isolation.SweepHomes(missing, ""); err == nil || !strings.Contains(advice.Text(err), missing) {
		t.Errorf("got %v, want an error with the folder's name", err)
	}
}
