// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/workspace"
)

// A folder that is made while all of them are added must not be missed, or nothing in it would be reported.
func TestCheckpoint_WatchesFoldersMadeDuringAFullCheck(t *testing.T) {
	for range 15 {
		dir := t.TempDir()
		for i := range 50 {
			if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint(i)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		tree, err := workspace.OpenTree(dir, &workspace.TreeOptions{TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		if !tree.Usage().Watching && tree.Usage().WatchProblem != "" {
			t.Skip(tree.Usage().WatchProblem)
		}
		stop, made := make(chan struct{}), make(chan []string)
		go func() { made <- makeFolders(dir, stop) }()
		filesAt(t, tree)
		close(stop)
		folders := <-made
		filesAt(t, tree)
		for _, folder := range folders {
			if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := filesAt(t, tree), len(folders); got != want {
			t.Fatalf("%d of %d files are known; %+v", got, want, tree.Usage())
		}
	}
}

// makeFolders makes folders in the 50 that are there, until it is stopped.
func makeFolders(dir string, stop <-chan struct{}) (made []string) {
	for {
		select {
		case <-stop:
			return made
		default:
		}
		folder := filepath.Join(dir, fmt.Sprint(len(made)%50), fmt.Sprint("new", len(made)))
		if os.Mkdir(folder, 0o755) != nil {
			return made
		}
		made = append(made, folder)
	}
}

// filesAt takes a checkpoint and counts its regular files.
func filesAt(t *testing.T, tree *workspace.Tree) (n int) {
	t.Helper()
	c, err := tree.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	files, err := c.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Mode.IsRegular() {
			n++
		}
	}
	return n
}
