// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace"
)

// scribble does random things to a folder. What fails, because it makes no sense there, is left out.
func scribble(t *rapid.T, dir, label string, steps int) {
	names := rapid.SampledFrom([]string{"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "e", "e/a", "e/a/b"})
	for range rapid.IntRange(0, steps).Draw(t, label) {
		name := names.Draw(t, "name")
		at := filepath.Join(dir, name)
		switch rapid.IntRange(0, 9).Draw(t, "do") {
		case 0, 1, 2, 3:
			_ = os.MkdirAll(filepath.Dir(at), 0o755)
			_ = os.WriteFile(at, []byte(rapid.SampledFrom([]string{"", "1", "2", "three"}).Draw(t, "content")), 0o644)
		case 4:
			_ = os.RemoveAll(at)
		case 5:
			_ = os.MkdirAll(at, 0o755)
		case 6:
			_ = os.Rename(at, filepath.Join(dir, names.Draw(t, "to")))
		case 7:
			_ = os.Chmod(at, rapid.SampledFrom([]os.FileMode{0o755, 0o700, 0o744}).Draw(t, "mode"))
		case 8:
			up := strings.Repeat("../", strings.Count(name, "/"))
			_ = os.Symlink(up+names.Draw(t, "target"), at)
		case 9:
			if rapid.Bool().Draw(t, "replace") {
				_ = os.RemoveAll(at)
				_ = os.WriteFile(at, []byte("replaced"), 0o600)
			}
		}
	}
}

// scribbled is a host and a workspace of it, both changed at random.
type scribbled struct {
	host, p                   string
	mounted, agents, hostsNow map[string]string
	w                         *workspace.Workspace
	opts                      workspace.WriteBackOptions
}

func newScribbled(t *testing.T, r *rapid.T, onHost int) *scribbled {
	top, err := os.MkdirTemp(t.TempDir(), "")
	must(t, err)
	s := &scribbled{host: filepath.Join(top, "host"), opts: workspace.WriteBackOptions{State: filepath.Join(top, "state")}}
	must(t, os.Mkdir(s.host, 0o755))
	scribble(r, s.host, "before", 12)
	s.mounted = harvest(t, s.host)
	s.w, err = workspace.Open(context.Background(), &workspace.Options{
		Mounts: []workspace.HostMount{{HostPath: s.host, MountPath: "p"}}, AllowAnyRoot: true, TempDir: top,
		Tree: workspace.TreeOptions{NoWatch: true},
	})
	must(t, err)
	s.p = filepath.Join(s.w.Root(), "p")
	scribble(r, s.p, "agent", 12)
	scribble(r, s.host, "meanwhile", onHost)
	s.agents, s.hostsNow = harvest(t, s.p), harvest(t, s.host)
	return s
}

// writeBack writes back, and makes sure that a dry run reports what then happens.
func (s *scribbled) writeBack(t *testing.T) (workspace.WriteBackResult, error) {
	t.Helper()
	s.opts.DryRun = true
	planned, dryErr := s.w.WriteBack(context.Background(), &s.opts)
	if diff := cmp.Diff(s.hostsNow, harvest(t, s.host)); diff != "" {
		t.Fatalf("a dry run has changed the host (-before +after):\n%s", diff)
	}
	s.opts.DryRun = false
	done, err := s.w.WriteBack(context.Background(), &s.opts)
	checkDryRun(t, planned, dryErr, done, err)
	checkNothingLeft(t, s.opts.State, done)
	return done, err
}

func TestWriteBack_HostEqualsTheWorkspace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newScribbled(t, r, 0)
		defer s.w.Close()
		done, err := s.writeBack(t)
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(s.agents, harvest(t, s.host)); diff != "" {
			r.Fatalf("skipped %v; the host (-workspace +host):\n%s", done.Skipped, diff)
		}
		for _, at := range done.Written {
			if was, is := s.mounted[strings.TrimPrefix(at.Path, "p/")], s.agents[strings.TrimPrefix(at.Path, "p/")]; was == is && was != "" {
				r.Errorf("%s was written and has not changed", at.Path)
			}
		}
	})
}

func TestWriteBack_MergesOrLeavesTheHostUntouched(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newScribbled(t, r, 4)
		defer s.w.Close()
		_, err := s.writeBack(t)
		after := harvest(t, s.host)
		if err != nil {
			if !errors.Is(err, workspace.ErrConflict) {
				r.Fatal(err)
			}
			if diff := cmp.Diff(s.hostsNow, after); diff != "" {
				r.Fatalf("a refused write-back has changed the host (-before +after):\n%s", diff)
			}
			return
		}
		s.checkMerged(r, after)
	})
}

// checkMerged makes sure that each file is the workspace's if it was changed there, else the host's.
func (s *scribbled) checkMerged(r *rapid.T, after map[string]string) {
	all := map[string]bool{}
	for _, side := range []map[string]string{s.mounted, s.agents, s.hostsNow, after} {
		for name := range maps.Keys(side) {
			all[name] = true
		}
	}
	for name := range all {
		if strings.HasSuffix(name, "/") {
			continue
		}
		want := s.hostsNow[name]
		if withoutMode(s.agents[name]) != withoutMode(s.mounted[name]) {
			want = s.agents[name]
		}
		if withoutMode(after[name]) != withoutMode(want) {
			r.Errorf("%s is %q; mounted %q, workspace %q, host %q", name, after[name], s.mounted[name], s.agents[name], s.hostsNow[name])
		}
	}
}

func withoutMode(entry string) string {
	mode, content, _ := strings.Cut(entry, " ")
	if mode == "->" || mode == "" {
		return entry
	}
	return "file " + content
}
