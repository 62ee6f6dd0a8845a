// SPDX-License-Identifier: Apache-2.0

package leftover_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/leftover"
)

// Who still works in a folder while it is removed can put a link in the place of a folder, at any depth. What
// the link leads to is beside the folder, and neither loses its permissions nor is removed.
func TestRemoveTree_NeverFollowsALink(t *testing.T) {
	parent := parentFolder(t)
	victim := filepath.Join(parent, "victim")
	for _, sub := range []string{"a", "b", "c", "d"} {
		if err := os.MkdirAll(filepath.Join(victim, sub), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(victim, sub), 0o555); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for end := time.Now().Add(time.Second); time.Now().Before(end) && !t.Failed(); {
		removeAmongExchanges(t, root)
		checkVictim(t, victim)
	}
}

// removeAmongExchanges removes a folder with a branch as deep as is moved up, whose end becomes a link and a
// folder again all the time.
func removeAmongExchanges(t *testing.T, root *os.Root) {
	t.Helper()
	end := "folder"
	for range 32 {
		end = filepath.Join(end, "d")
	}
	for _, sub := range []string{"a", "b", "c", "d"} {
		if err := root.MkdirAll(filepath.Join(end, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	full := filepath.Join(root.Name(), end)
	if err := os.Symlink(filepath.Join("../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../../", "victim"), full+"-link"); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, full, unix.AT_FDCWD, full+"-link", unix.RENAME_EXCHANGE)
			}
		}
	})
	_ = leftover.RemoveTree(root, "folder")
	close(stop)
	wg.Wait()
	if err := leftover.RemoveTree(root, "folder"); err != nil {
		t.Fatal(err)
	}
}

func checkVictim(t *testing.T, victim string) {
	t.Helper()
	for _, sub := range []string{"a", "b", "c", "d"} {
		info, err := os.Lstat(filepath.Join(victim, sub))
		if err != nil {
			t.Errorf("what a link led to was removed: %v", err)
		} else if info.Mode().Perm() != 0o555 {
			t.Errorf("what a link led to has the permissions %v", info.Mode())
		}
	}
}
