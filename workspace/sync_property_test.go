// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// filesOf are the regular files below a folder as a view should have them.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		must(t, err)
		content, err := os.ReadFile(at)
		rel, _ := filepath.Rel(dir, at)
		found[filepath.ToSlash(rel)] = fmt.Sprintf("%x %d %v", sha256.Sum256(content), len(content), info.Mode().Perm())
		return err
	}))
	return found
}

func viewOf(t *testing.T, s *session.Session, w *workspace.Workspace) map[string]string {
	t.Helper()
	view, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	found := map[string]string{}
	for f := range view.All() {
		found[f.Path.String()] = fmt.Sprintf("%s %d %v", f.Hash, f.SizeBytes, f.Mode)
		if f.Version < 1 {
			t.Errorf("%s has version %d", f.Path, f.Version)
		}
		content, err := w.Content(t.Context(), f.Hash)
		must(t, err)
		must(t, content.Close())
	}
	return found
}

// Whatever became of the files and of the sessions: after a Sync the view is what is there, and the next Sync
// has nothing to report.
func TestSync_ViewEqualsTheFiles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		host, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		scribble(rt, host, "mounted", 10)
		first := session.New(nil)
		w, err := workspace.Open(t.Context(), &workspace.Options{
			Mounts:       []workspace.HostMount{{HostPath: host, MountPath: "p", Include: []string{"**"}}},
			AllowAnyRoot: true, TempDir: t.TempDir(), Session: first,
		})
		if err != nil {
			rt.Skip(err) // a link that leads nowhere it may
		}
		defer func() { must(t, w.Close()) }()
		sessions := []*session.Session{first, session.New(nil)}
		snapshots := []*session.Snapshot{first.Snapshot(), sessions[1].Snapshot()}
		checkpoint, err := w.Tree().Checkpoint(t.Context())
		must(t, err)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			i := rapid.IntRange(0, 1).Draw(rt, "session")
			s := sessions[i]
			switch rapid.IntRange(0, 7).Draw(rt, "do") {
			case 0:
				snapshots[i] = s.Snapshot()
			case 1:
				must(t, s.Restore(t.Context(), snapshots[i]))
			case 2:
				must(t, s.Reset(t.Context()))
			case 3:
				_, err := w.Tree().Rollback(t.Context(), checkpoint, nil)
				must(t, err)
			case 4:
				clone, err := s.Clone(nil)
				must(t, err)
				sessions[i], snapshots[i] = clone, clone.Snapshot()
			default:
				_ = os.MkdirAll(filepath.Join(w.Root(), "p"), 0o755)
				scribble(rt, filepath.Join(w.Root(), "p"), "edits", 4)
			}
			if rapid.Bool().Draw(rt, "sync") {
				s = sessions[i]
				synced, err := workspace.Sync(t.Context(), s, w)
				must(t, err)
				if diff := cmp.Diff(filesOf(t, w.Root()), viewOf(t, s, w)); diff != "" {
					rt.Fatalf("after %+v (-there +view):\n%s", synced, diff)
				}
				if again, err := workspace.Sync(t.Context(), s, w); err != nil || again.Count+len(again.Deleted) != 0 {
					rt.Fatalf("a second Sync: %+v, %v", again, err)
				}
			}
		}
	})
}
