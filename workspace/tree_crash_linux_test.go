// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/drover-agents/drover/internal/testkit"
)

// A program is killed while it takes checkpoints and rolls back. Then the tree is what it was before the
// rollback or what it shall be, and no content is lost.
func TestTree_KilledProgramLosesNothing(t *testing.T) {
	for _, place := range []string{"", "/dev/shm"} { // on the file system of the tree, and on another
		name := "store beside the tree"
		if place != "" {
			name = "store on another file system"
		}
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for range testkit.Size(15, 300) {
				killOnce(t, place, time.Duration(random.IntN(3_000))*time.Microsecond)
			}
		})
	}
}

func killOnce(t *testing.T, place string, after time.Duration) {
	t.Helper()
	dir := t.TempDir()
	shell(t, dir, "mkdir -p changed moved/deep; for i in 0 1 2 3 4 5; do echo c$i > changed/$i; echo m$i > moved/deep/$i; done; touch -d 2001-01-01 moved")
	store, err := os.MkdirTemp(place, "drover-store-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(store)
	log := filepath.Join(t.TempDir(), "log")
	c := startChild(t, "roll", dir, store, log)
	if answer, err := c.out.ReadString('\n'); err != nil || answer != "ok\n" {
		t.Fatalf("the child answers %q, %v", answer, err)
	}
	time.Sleep(after) // it has begun with a checkpoint and a rollback, and dies at a random moment of them
	c.kill()
	tree, err := OpenTree(dir, &TreeOptions{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	was := lastRolling(t, log)
	if was.Before == "" {
		return // it died while it made its own changes
	}
	if got := snapshotHash(t, dir); got != was.Before && got != was.After {
		t.Fatalf("after %v the tree is neither what it was nor what it shall be: %v", after, snapshot(t, dir))
	}
	there := append(contents(t, dir), contents(t, store)...)
	for _, content := range was.Contents {
		if !slices.Contains(there, content) {
			t.Fatalf("after %v the content %s is lost", after, content)
		}
	}
}

func lastRolling(t *testing.T, log string) (last rolling) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(text[:bytes.LastIndexByte(text, '\n')+1], []byte("\n"))
	if len(lines) < 2 {
		return rolling{}
	}
	if err := json.Unmarshal(lines[len(lines)-2], &last); err != nil {
		t.Fatal(err)
	}
	return last
}
