// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace"
)

// swap exchanges a folder for a link to somewhere else and back, until stop is closed.
func swap(dir, elsewhere string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if os.Rename(dir, dir+".real") == nil {
			_ = os.Symlink(elsewhere, dir)
			_ = os.Remove(dir)
			_ = os.Rename(dir+".real", dir)
		}
	}
}

func TestWriteBack_FolderExchangedForALinkDoesNotEscape(t *testing.T) {
	for name, inside := range map[string]func(host, root string) string{
		"on the host":      func(host, _ string) string { return filepath.Join(host, "d") },
		"in the workspace": func(_, root string) string { return filepath.Join(root, "p", "d") },
		"the mount itself": func(host, _ string) string { return host },
	} {
		t.Run(name, func(t *testing.T) {
			outcomes := map[string]int{}
			for range testkit.Size(25, 1000) {
				outcomes[raceOnce(t, inside)]++
			}
			t.Log(outcomes)
		})
	}
}

func raceOnce(t *testing.T, inside func(host, root string) string) string {
	t.Helper()
	top, err := os.MkdirTemp(t.TempDir(), "")
	must(t, err)
	defer os.RemoveAll(top)
	plant(t, top, map[string]string{"host/d/a": "1", "host/d/gone": "1", "out/a": "1", "out/gone": "1", "temp/": ""})
	host := filepath.Join(top, "host")
	w := openOn(t, host, func(o *workspace.Options) { o.TempDir, o.Tree.NoWatch = filepath.Join(top, "temp"), true })
	defer w.Close()
	edits(map[string]string{"d/a": "agent's", "d/new": "agent's"}, "d/gone")(t, filepath.Join(w.Root(), "p"))

	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { swap(inside(host, w.Root()), filepath.Join(top, "out"), stop) })
	state := filepath.Join(top, "state")
	_, err = w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state, Force: true})
	close(stop)
	wg.Wait()
	if diff := cmp.Diff(map[string]string{"a": "0644 1", "gone": "0644 1"}, harvest(t, filepath.Join(top, "out"))); diff != "" {
		t.Fatalf("error %v; outside was changed (-before +after):\n%s", err, diff)
	}
	if _, err := workspace.RecoverWriteBack(t.Context(), state); err != nil {
		t.Fatalf("recovering: %v", err)
	}
	if err != nil {
		return "refused"
	}
	return "written"
}
