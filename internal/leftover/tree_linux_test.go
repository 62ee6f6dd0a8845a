// SPDX-License-Identifier: Apache-2.0

package leftover_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
)

func TestFolder_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^Test(Folder_(Locked|FailedRemoval|IsPrivate|DeepTree)|Sweep_(Concurrent|KilledProgram|ProgramKilled|EveryState|Folders|Foreign))")
}

// An ordinary user has a folder with something of root in it.
func TestFolder_MarkerStaysAsLongAsTheFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user: run as root")
	}
	parent := testkit.SharedFolder(t)
	folder := filepath.Join(parent, kind.Prefix+"NAME")
	plant(t, filepath.Join(folder, "of root", "file"), "x")
	plant(t, folder+".lock", kind.Text)
	for _, path := range []string{folder, folder + ".lock"} {
		if err := os.Lchown(path, testkit.Nobody, testkit.Nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(testkit.PutProgram(t, os.Args[0], testkit.SharedFolder(t)))
	cmd.Env = []string{sweepVariable + "=" + parent}
	cmd.Dir = parent
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testkit.Nobody, Gid: testkit.Nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), folder) || !strings.Contains(string(out), "permission denied") {
		t.Errorf("the sweep prints %q, %v, want the folder and why it is still there", out, err)
	}
	for _, path := range []string{filepath.Join(folder, "of root", "file"), folder + ".lock"} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestFolder_DeepTreeIsRemoved(t *testing.T) {
	parent := parentFolder(t)
	folder := makeFolder(t, parent)
	makeDeep(t, folder.Path(), 400)
	lowerOpenFiles(t, 128)
	if err := folder.Remove(); err != nil {
		t.Error(err)
	}
	checkEmpty(t, parent)
}

// makeDeep makes a chain of folders with more levels than a process may have files.
func makeDeep(t *testing.T, dir string, depth int) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	for n := 0; n < depth && err == nil; n++ {
		var next *os.Root
		if err = root.Mkdir("d", 0o700); err == nil {
			next, err = root.OpenRoot("d")
		}
		root.Close()
		root = next
	}
	if err != nil {
		t.Fatal(err)
	}
	root.Close()
}

// lowerOpenFiles bounds how many files this process may have open, until the test is over.
func lowerOpenFiles(t *testing.T, limit uint64) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	lower := before
	lower.Cur = min(lower.Cur, limit)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lower); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
}

// Those who work in a folder can make folders in folders without end. Their removal leaves open files to
// the rest of the program.
func TestRemoveTree_DeepTreeNeedsFewOpenFiles(t *testing.T) {
	folder := makeFolder(t, parentFolder(t))
	makeDeep(t, folder.Path(), 1000)
	before, most := openFiles(t), 0
	done := make(chan error)
	go func() { done <- folder.Remove() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			if most > before+200 {
				t.Errorf("%d files were open during the removal, and %d before", most, before)
			}
			return
		default:
			most = max(most, openFiles(t))
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
