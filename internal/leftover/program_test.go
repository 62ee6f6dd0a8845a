// SPDX-License-Identifier: Apache-2.0

package leftover_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/internal/leftover"
	"github.com/drover-agents/drover/internal/testkit"
)

// kind is what the tests make and sweep.
var kind = leftover.Kind{Prefix: "test-folder-", Former: []string{"old-folder-"}, Text: "The folder of this name without .lock is one of a test.\n", Beside: []string{".store"}}

const (
	// folderVariable makes this test program one that makes a folder in the folder that it names, prints
	// its path, and waits until it is killed or its input ends.
	folderVariable = "LEFTOVER_TEST_FOLDER"
	// busyVariable makes it one that makes and removes folders there until it is killed.
	busyVariable = "LEFTOVER_TEST_BUSY"
	// sweepVariable makes it one that sweeps there and prints what it found.
	sweepVariable = "LEFTOVER_TEST_SWEEP"
)

func TestMain(m *testing.M) {
	if parent := os.Getenv(busyVariable); parent != "" {
		beBusy(parent)
	}
	if parent := os.Getenv(sweepVariable); parent != "" {
		fmt.Println(kind.Sweep(parent))
		os.Exit(0)
	}
	if parent := os.Getenv(folderVariable); parent != "" {
		folder, err := kind.Make(parent)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(folder.Path())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // without removing the folder
	}
	os.Exit(m.Run())
}

func beBusy(parent string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	fmt.Println(parent)
	for {
		folder, err := kind.Make(parent)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = os.WriteFile(filepath.Join(folder.Path(), "file"), []byte("x"), 0o600)
		_ = os.WriteFile(filepath.Join(folder.Beside(".store"), "pack"), []byte("x"), 0o600)
		_ = folder.Remove()
	}
}

// program is another program with a folder.
type program struct {
	folder string
	kill   func()
}

func startProgram(t *testing.T, variable, parent string) *program {
	t.Helper()
	folder, kill := testkit.StartProgram(t, variable+"="+parent)
	if _, err := os.Stat(folder); err != nil {
		t.Fatalf("the other program prints %q: %v", folder, err)
	}
	return &program{folder: folder, kill: kill}
}

// parentFolder is a folder for folders, as they see it.
func parentFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func makeFolder(t *testing.T, parent string) *leftover.Folder {
	t.Helper()
	folder, err := kind.Make(parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Remove() })
	return folder
}

// sweep gives the paths of what is gone.
func sweep(t *testing.T, parent string) (removed []string) {
	t.Helper()
	swept, err := kind.Sweep(parent)
	if err != nil {
		t.Error(err)
	}
	for _, folder := range swept {
		if folder.Err != nil {
			t.Error(folder.Path, folder.Err)
		}
		removed = append(removed, folder.Path)
	}
	return removed
}

func plant(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkEmpty checks that nothing is left in a folder.
func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("in %s there is %v, %v, want nothing", dir, left, err)
	}
}
