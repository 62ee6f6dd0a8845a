// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// The time of a bubble is long ago, so that every file is from the future.
func TestWriteBack_FileWithAFutureTimeIsStable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		root, err := filetree.OpenStrict(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		got, err := (&target{dir: dir, root: root}).look("a")
		if err != nil || got.Size != 1 {
			t.Errorf("look = %+v, %v", got, err)
		}
	})
}
