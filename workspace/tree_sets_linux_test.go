// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Files are read again without a sign of a change only as long as there is a reason to.
func TestSuspectsAreForgotten(t *testing.T) {
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
			t.Errorf("a file that somebody has opened is hot: %v; without a watcher it need not be", hot)
		}
		_ = f.Close()
		checkpoint(t, tree)
		if len(tree.hot) > 0 {
			t.Error("a file that nobody has open any more is hot")
		}
	})
}
