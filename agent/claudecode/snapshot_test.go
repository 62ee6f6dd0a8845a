// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"encoding/json"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/transcript"
)

// The files of a fork have the lines of the conversation up to the fork, and no subagent of it: what those have
// received since then is not for the fork, whose commands can read its files.
func TestSnapshotStore_LaterLinesAreNotLaidOut(t *testing.T) {
	store := transcript.NewMemoryStore()
	key := transcript.Key{ProjectKey: "-p", SessionID: "00000000-0000-4000-8000-000000000001"}
	sub := key
	sub.Subpath = "subagents/agent-a1"
	for _, line := range []struct {
		key  transcript.Key
		text string
	}{{key, "before"}, {sub, "before"}, {key, "later"}, {sub, "later"}} {
		if err := store.Append(t.Context(), line.key, []json.RawMessage{json.RawMessage(`{"type":"user","text":"` + line.text + `"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	fork, err := transcript.Materialise(t.Context(), snapshotStore{store, key.SessionID, 1}, key, transcript.ResumeOptions{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Close()
	var files []string
	err = fs.WalkDir(os.DirFS(fork.Dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files = append(files, name)
		text, err := fs.ReadFile(os.DirFS(fork.Dir), name)
		if strings.Contains(string(text), "later") {
			t.Errorf("%s has a later line: %s", name, text)
		}
		return err
	})
	if want := []string{"projects/-p/" + key.SessionID + ".jsonl"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("the fork has %q, %v; want %q", files, err, want)
	}
}
