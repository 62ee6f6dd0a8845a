// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace"
)

func init() {
	maybe := func(t *testing.T, p string, files map[string]fs.FileMode) {
		for name, mode := range files {
			must(t, os.WriteFile(filepath.Join(p, name), []byte("agent's"), 0o644))
			must(t, os.Chmod(filepath.Join(p, name), mode))
		}
	}
	writeBackCases["pipes and sockets"] = writeBackCase{
		host: map[string]string{"was": "1"},
		agent: func(t *testing.T, p string) {
			must(t, os.Remove(filepath.Join(p, "was")))
			must(t, syscall.Mkfifo(filepath.Join(p, "was"), 0o600))
			must(t, syscall.Mkfifo(filepath.Join(p, "pipe"), 0o600))
			listen(t, filepath.Join(p, "socket"))
		},
		skipped: []string{
			"p/pipe: is a pipe, which is never written back",
			"p/socket: is a socket, which is never written back",
			"p/was: is a pipe, which is never written back",
		},
	}
	writeBackCases["set-id bits of the workspace"] = writeBackCase{
		host: map[string]string{"a": "1", "d/": ""},
		agent: func(t *testing.T, p string) {
			maybe(t, p, map[string]fs.FileMode{"a": 0o755 | fs.ModeSetuid, "new": 0o755 | fs.ModeSetuid | fs.ModeSetgid})
			must(t, os.Chmod(filepath.Join(p, "d"), 0o755|fs.ModeSetgid))
		},
		want: map[string]string{"a": "0755 agent's", "new": "0755 agent's", "d/": "0755"},
		skipped: []string{
			"p/a: is written without its set-id bits",
			"p/d: is written without its set-id bits",
			"p/new: is written without its set-id bits",
		},
	}
	writeBackCases["a program of the host loses its set-id bits with its content"] = writeBackCase{
		host:  map[string]string{"a": "1", "b": "1"},
		agent: func(t *testing.T, p string) { maybe(t, p, map[string]fs.FileMode{"a": 0o644}) },
		meanwhile: func(t *testing.T, host string) {
			must(t, os.Chmod(filepath.Join(host, "a"), 0o755|fs.ModeSetuid))
			must(t, os.Chmod(filepath.Join(host, "b"), 0o755|fs.ModeSetuid))
		},
		want: map[string]string{"a": "0755 agent's", "b": "4755 1"},
	}
}

func listen(t *testing.T, at string) {
	t.Helper()
	wd, err := os.Getwd()
	must(t, err)
	must(t, os.Chdir(filepath.Dir(at))) // the path of a socket may not be long
	defer func() { must(t, os.Chdir(wd)) }()
	l, err := net.Listen("unix", filepath.Base(at))
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
}

func TestWriteBack_LateHostChangeUndoesAllMounts(t *testing.T) {
	for _, point := range []string{"before 0", "before 1"} {
		t.Run(point, func(t *testing.T) {
			one, two, state := t.TempDir(), t.TempDir(), t.TempDir()
			plant(t, one, map[string]string{"a": "1", "gone/x": "1"})
			plant(t, two, map[string]string{"b": "1", "c": "1"})
			w := openOn(t, one, func(o *workspace.Options) {
				o.Mounts = append(o.Mounts, workspace.HostMount{HostPath: two, MountPath: "q"})
			})
			edits(map[string]string{"p/a": "2", "p/new/deep": "2", "q/b": "2", "q/c": "2"}, "p/gone")(t, w.Root())
			workspace.SetTestPoint(func(now string) {
				if now == point {
					plant(t, two, map[string]string{"b": "host's", "mine": "host's"})
				}
			})
			defer workspace.SetTestPoint(func(string) {})
			_, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state, Force: true})
			var conflict *workspace.ConflictError
			if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Path != "q/b" {
				t.Errorf("error: %v, want a conflict about q/b", err)
			}
			if diff := cmp.Diff(map[string]string{"a": "0644 1", "gone/": "0755", "gone/x": "0644 1"}, harvest(t, one)); diff != "" {
				t.Errorf("the first mount (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"b": "0644 host's", "c": "0644 1", "mine": "0644 host's"}, harvest(t, two)); diff != "" {
				t.Errorf("the second mount (-want +got):\n%s", diff)
			}
			checkNothingLeft(t, state, workspace.WriteBackResult{})
		})
	}
}

func TestWriteBack_JournalsOnAnotherFileSystem(t *testing.T) {
	state, err := os.MkdirTemp("/dev/shm", "drover-test-")
	if err != nil {
		t.Skip("there is no other file system: ", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	host := t.TempDir()
	plant(t, host, map[string]string{"a": "1", "both": "1", "gone/x": "1"})
	w := openOn(t, host, nil)
	edits(map[string]string{"a": "2", "both": "2", "new/x": "2"}, "gone")(t, filepath.Join(w.Root(), "p"))
	plant(t, host, map[string]string{"both": "host's"})
	done, err := w.WriteBack(t.Context(), &workspace.WriteBackOptions{State: state, Force: true})
	must(t, err)
	want := map[string]string{"a": "0644 2", "both": "0644 2", "new/": "0755", "new/x": "0644 2"}
	if diff := cmp.Diff(want, harvest(t, host)); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	if got, err := os.ReadFile(done.Conflicts[0].Aside); string(got) != "host's" || err != nil {
		t.Errorf("aside there is %q, %v", got, err)
	}
}
