// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace"
)

func gitSkip(path, changes string) string {
	return path + ": belongs to a git repository, which can run programs on the host; " + changes + " not written, because Git is not set"
}

func init() {
	writeBackCases["the folder of a repository stays as it is"] = writeBackCase{
		host:    map[string]string{"a": "1", ".git/config": "host's", ".git/HEAD": "ref"},
		agent:   edits(map[string]string{"a": "2", ".git/config": "fsmonitor", ".git/hooks/post-checkout": "evil"}),
		want:    map[string]string{"a": "0644 2", ".git/": "0755", ".git/config": "0644 host's", ".git/HEAD": "0644 ref"},
		skipped: []string{gitSkip("p/.git", "3 changes")},
	}
	writeBackCases["the folder of a repository is written if asked for"] = writeBackCase{
		host:  map[string]string{".git/config": "1", ".git/HEAD": "1"},
		agent: edits(map[string]string{".git/config": "2", ".git/hooks/x": "2"}, ".git/HEAD"),
		opts:  workspace.WriteBackOptions{Git: true},
		want:  map[string]string{".git/": "0755", ".git/config": "0644 2", ".git/hooks/": "0755", ".git/hooks/x": "0644 2"},
	}
	writeBackCases["a deleted repository stays, with the folders above it"] = writeBackCase{
		host:  map[string]string{"d/sub/.git/config": "1", "d/sub/x": "1", "d/y": "1"},
		agent: edits(nil, "d"),
		opts:  workspace.WriteBackOptions{Force: true},
		want:  map[string]string{"d/": "0755", "d/sub/": "0755", "d/sub/.git/": "0755", "d/sub/.git/config": "0644 1"},
		skipped: []string{
			`p/d: stays, because the host has "sub" in it`,
			`p/d/sub: stays, because the host has ".git" in it`,
			gitSkip("p/d/sub/.git", "2 changes"),
		},
	}
	writeBackCases["no way to name the folder of a repository"] = writeBackCase{
		host: map[string]string{".git/config": "1", "a": "1"},
		agent: edits(map[string]string{
			".GIT/config": "2", "d/.Git": "gitdir: ../evil", "e/.g\u200cit/hooks/x": "2", "e/GIT~1/config": "2",
			"e/.git. /config": "2", "e/.git::$INDEX_ALLOCATION/config": "2", `e/x\.git\config`: "2",
			".gitignore": "2", "x.git": "2", "git": "2", "e/git~2": "2",
		}),
		want: map[string]string{
			".git/": "0755", ".git/config": "0644 1", "a": "0644 1", "d/": "0755", "e/": "0755",
			".gitignore": "0644 2", "x.git": "0644 2", "git": "0644 2", "e/git~2": "0644 2",
		},
		skipped: []string{
			gitSkip("p/.GIT", "2 changes"), gitSkip("p/d/.Git", "1 change"), gitSkip("p/e/.git. ", "2 changes"),
			gitSkip("p/e/.git::$INDEX_ALLOCATION", "2 changes"), gitSkip("p/e/.g\u200cit", "3 changes"),
			gitSkip("p/e/GIT~1", "2 changes"), gitSkip(`p/e/x\.git\config`, "1 change"),
		},
	}
	writeBackCases["a folder with a repository does not become a link to another"] = writeBackCase{
		host:      map[string]string{"sub/.git/config": "1", "other/x": "1"},
		agent:     edits(map[string]string{"sub": "-> other", "other/x": "2"}, "sub"),
		opts:      workspace.WriteBackOptions{Force: true},
		conflicts: []string{`p/sub: has become a link in the workspace; the folder stays, because the host has ".git" in it`},
		skipped:   []string{gitSkip("p/sub/.git", "2 changes")},
	}
	writeBackCases["a bare repository stays behind"] = writeBackCase{
		host: map[string]string{"a": "1", "d/x": "1"},
		agent: edits(map[string]string{
			"a": "2", "d/x": "2", "d/r/HEAD": "ref: refs/heads/x", "d/r/config": "fsmonitor", "d/r/objects/x": "", "d/r/refs/heads/x": "1", "d/r/src/x": "1",
			"w/HEAD": "ref: refs/heads/x", "w/commondir": "../d/r", "w/config": "fsmonitor", "l/HEAD": "-> refs/heads/x", "l/objects": "-> ../d/r/objects", "l/refs/x": "1",
			"n/HEAD": "1", "n/objects/x": "1", "m/refs/x": "1", "m/objects/x": "1",
		}),
		want: map[string]string{
			"a": "0644 2", "d/": "0755", "d/x": "0644 2", "n/": "0755", "n/HEAD": "0644 1", "n/objects/": "0755", "n/objects/x": "0644 1",
			"m/": "0755", "m/refs/": "0755", "m/refs/x": "0644 1", "m/objects/": "0755", "m/objects/x": "0644 1",
		},
		skipped: []string{gitSkip("p/d/r", "10 changes"), gitSkip("p/l", "5 changes"), gitSkip("p/w", "4 changes")},
	}
	writeBackCases["a bare repository of the host stays as it is"] = writeBackCase{
		host:    map[string]string{"r.git/HEAD": "ref", "r.git/config": "1", "r.git/objects/x": "", "r.git/refs/x": "1"},
		agent:   edits(map[string]string{"r.git/config": "fsmonitor", "r.git/hooks/post-receive": "evil"}, "r.git/HEAD"),
		skipped: []string{gitSkip("p/r.git", "4 changes")},
	}
	writeBackCases["what completes a bare repository stays behind"] = writeBackCase{
		host:    map[string]string{"r/objects/x": "", "r/refs/x": "1", "s/HEAD": "1"},
		agent:   edits(map[string]string{"r/HEAD": "ref", "r/config": "fsmonitor", "s/objects/x": "", "s/refs/x": ""}),
		skipped: []string{gitSkip("p/r", "2 changes"), gitSkip("p/s", "4 changes")},
	}
	writeBackCases["the mounted folder does not become a bare repository"] = writeBackCase{
		host:    map[string]string{"a": "1"},
		agent:   edits(map[string]string{"HEAD": "ref", "objects/x": "", "refs/x": "", "config": "fsmonitor"}),
		skipped: []string{gitSkip("p", "6 changes")},
	}
	writeBackCases["a folder with a repository of its own is no bare one"] = writeBackCase{
		host:  map[string]string{".git/HEAD": "ref", "a": "1"},
		agent: edits(map[string]string{"HEAD": "1", "objects/x": "1", "refs/x": "1", "a": "2"}),
		want: map[string]string{
			".git/": "0755", ".git/HEAD": "0644 ref", "HEAD": "0644 1", "objects/": "0755", "objects/x": "0644 1", "refs/": "0755", "refs/x": "0644 1", "a": "0644 2",
		},
	}
	writeBackCases["a bare repository is written if asked for"] = writeBackCase{
		host:  map[string]string{"a": "1"},
		agent: edits(map[string]string{"r/HEAD": "ref", "r/objects/x": "1", "r/refs/x": "1"}),
		opts:  workspace.WriteBackOptions{Git: true},
		want: map[string]string{
			"a": "0644 1", "r/": "0755", "r/HEAD": "0644 ref", "r/objects/": "0755", "r/objects/x": "0644 1", "r/refs/": "0755", "r/refs/x": "0644 1",
		},
	}
	writeBackCases["a repository that became a file, a link or another name"] = writeBackCase{
		host:  map[string]string{"a/.git/config": "1", "b/.git/config": "1", "c/.git/config": "1", "evil/config": "1"},
		agent: edits(map[string]string{"a/.git": "gitdir: ../evil", "b/.git": "-> ../evil"}, "a/.git", "b/.git", "c/.git"),
		skipped: []string{
			gitSkip("p/a/.git", "2 changes"), gitSkip("p/b/.git", "2 changes"), gitSkip("p/c/.git", "2 changes"),
		},
	}
}

// It is the host's path that counts: a mount may come from the middle of a repository.
func TestWriteBack_MountInsideARepositoryIsNotWritten(t *testing.T) {
	repo := t.TempDir()
	plant(t, repo, map[string]string{".git/hooks/x": "1", ".git/config": "1", "data/x": "1"})
	before := harvest(t, repo)
	w := openOn(t, repo, func(o *workspace.Options) {
		o.Mounts = []workspace.HostMount{
			{HostPath: filepath.Join(repo, ".git/hooks"), MountPath: "p"},
			{HostPath: filepath.Join(repo, ".git/config"), MountPath: "c"},
			{HostPath: filepath.Join(repo, "data"), MountPath: ".git"},
		}
	})
	plant(t, w.Root(), map[string]string{"p/x": "2", "p/y": "2", "c": "2", ".git/x": "2"})
	done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: t.TempDir()})
	must(t, err)
	skipped, _ := reasons(done)
	if diff := cmp.Diff([]string{gitSkip("c", "1 change"), gitSkip("p", "2 changes")}, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	before["data/x"] = "0644 2"
	if diff := cmp.Diff(before, harvest(t, repo)); diff != "" {
		t.Errorf("the host afterwards (-want +got):\n%s", diff)
	}
	plant(t, w.Root(), map[string]string{"p/y": "3"})
	done, err = w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: t.TempDir(), Git: true})
	must(t, err)
	if got, err := os.ReadFile(filepath.Join(repo, ".git/hooks/y")); string(got) != "3" || err != nil {
		t.Errorf("with Git there is %q, %v; skipped: %v", got, err, done.Skipped)
	}
}

func TestWriteBack_ExportOmitsTheRepositoryByDefault(t *testing.T) {
	host, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	w := openOn(t, host, nil)
	plant(t, w.Root(), map[string]string{"p/.git/config": "1", "p/a": "1", "new/.git/config": "1"})
	opts := &workspace.WriteBackOptions{Dir: out, State: t.TempDir()}
	_, err := w.WriteBack(t.Context(), opts)
	must(t, err)
	written := func(name string) bool { return strings.Contains(name, ".git") }
	if got := slices.Sorted(maps.Keys(harvest(t, out))); slices.ContainsFunc(got, written) || len(got) != 3 {
		t.Errorf("without Git: %q", got)
	}
	opts.Git = true
	_, err = w.WriteBack(t.Context(), opts)
	must(t, err)
	if got := slices.Sorted(maps.Keys(harvest(t, out))); len(got) != 7 {
		t.Errorf("with Git: %q", got)
	}
}
