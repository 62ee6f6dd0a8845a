// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Files are read again without a sign of a change only as long as there is a reason to.
func TestCheckpoint_StopsRereadingStableFiles(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		dir := t.TempDir()
		tree := openTree(t, dir, opts)
		write(t, filepath.Join(dir, "f"), "1")
		checkpoint(t, tree)
		if _, racy := tree.racy["f"]; !racy {
			t.Error("a file that was just written is not racy")
		}
		time.Sleep(25 * time.Millisecond)
		checkpoint(t, tree)
		if len(tree.racy)+len(tree.hot)+len(tree.loose) > 0 {
			t.Errorf("a file that was written long ago is racy %v, hot %v or loose %v", tree.racy, tree.hot, tree.loose)
		}
		f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		checkpoint(t, tree)
		_, hot := tree.hot["f"]
		if hot == opts.NoWatch {
			t.Errorf("a file that a process has opened is hot: %v; without a watcher it need not be", hot)
		}
		_ = f.Close()
		checkpoint(t, tree)
		if len(tree.hot) > 0 {
			t.Error("a file that no process has open any more is hot")
		}
	})
}

// An agent that reads everything leaves many files that may be open. They are found to be closed little by
// little, and a folder that is new meanwhile is watched as always.
func TestCheckpoint_QueriesPossiblyOpenFilesInBatches(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, nil)
	tree.askAtOnce = 3
	for i := range 10 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "1")
	}
	time.Sleep(25 * time.Millisecond)
	checkpoint(t, tree)
	for i := range 10 {
		if _, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "new"), 0o755); err != nil {
		t.Fatal(err)
	}
	var left []int
	for range 5 {
		checkpoint(t, tree)
		left = append(left, len(tree.opened))
	}
	if want := []int{7, 4, 1, 0, 0}; !slices.Equal(left, want) {
		t.Errorf("files that may be open: %v, want %v", left, want)
	}
	before := checkpoint(t, tree)
	write(t, filepath.Join(dir, "new", "file"), "1")
	changes, err := tree.Changes(before, checkpoint(t, tree))
	if err != nil || !slices.ContainsFunc(changes, func(c Change) bool { return c.Path == "new/file" }) {
		t.Errorf("changes %v, %v, want new/file among them", changes, err)
	}
	if full := tree.Usage().FullChecks; full != 1 {
		t.Errorf("%d full checks, want the first alone", full)
	}
}
