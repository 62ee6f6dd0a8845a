// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was done in a workspace can be done to the host with git, and taken back.
func TestWritePatch_OfAWorkspaceAppliesToTheHost(t *testing.T) {
	needGit(t)
	before := testTree{
		"p/keep": {"k\n", 0o644}, "p/edit": {"a\nb\n", 0o644}, "p/gone": {"x", 0o644}, "p/link": {"keep", linkMode},
		"p/bin": {"\x00", 0o644}, "p/dir/run": {"#!\n", 0o644},
	}
	host := filepath.Join(t.TempDir(), "host")
	before.write(t, host)
	w, err := Open(t.Context(), &Options{AllowedHostRoots: []string{host}, Mounts: []HostMount{{HostPath: filepath.Join(host, "p")}}, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	at := func(name string) string { return filepath.Join(w.Root(), "p", name) }
	errs := []error{os.Mkdir(at("new"), 0o755)}
	for name, content := range map[string]string{"edit": "a\nc\n", "new/file": "n\n", "bin": "\x00\x01"} {
		errs = append(errs, os.WriteFile(at(name), []byte(content), 0o644))
	}
	errs = append(errs, os.Remove(at("gone")), os.Remove(at("link")), os.Mkdir(at("link"), 0o755), os.Chmod(at("dir/run"), 0o755))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var patch bytes.Buffer
	summary, err := w.Patch(t.Context(), &patch, nil)
	want := Summary{Created: 1, Changed: 3, Deleted: 2}
	if diff := cmp.Diff(want, summary); err != nil || diff != "" {
		t.Errorf("Patch() = %v (-want +got):\n%s", err, diff)
	}
	after := readTree(t, w.Root())
	for _, step := range []struct {
		args []string
		want testTree
	}{{[]string{"apply"}, after}, {[]string{"apply", "-R"}, before}} {
		if out, err := runGit(t, host, patch.Bytes(), step.args...); err != nil {
			t.Fatalf("git %v: %v\n%s\n%s", step.args, err, out, patch.Bytes())
		}
		if diff := cmp.Diff(step.want, readTree(t, host)); diff != "" {
			t.Errorf("git %v (-want +got):\n%s", step.args, diff)
		}
	}
}

func TestChanges_AreReadableUntilReleased(t *testing.T) {
	w, err := Open(t.Context(), &Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	file := filepath.Join(w.Root(), "file")
	if err := os.WriteFile(file, []byte("first\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	changes, release, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("second\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var diff bytes.Buffer
	if err := WriteDiff(&diff, changes, nil); err != nil {
		t.Fatal(err)
	}
	want := "created file: file\n--- /dev/null\n+++ b/file\n@@ -0,0 +1 @@\n+first\n"
	if got := diff.String(); got != want {
		t.Errorf("diff is %q, want %q", got, want)
	}
	held := w.Tree().Usage().Checkpoints
	release()
	if now := w.Tree().Usage().Checkpoints; now != held-1 {
		t.Errorf("after release there are %d checkpoints of %d", now, held)
	}
	if _, err := w.Diff(t.Context(), &diff, nil); err != nil || w.Tree().Usage().Checkpoints != held-1 {
		t.Errorf("Diff = %v and leaves %d checkpoints", err, w.Tree().Usage().Checkpoints)
	}
}

func TestChanges_WithoutCheckpointsIsAnError(t *testing.T) {
	w, err := Open(t.Context(), &Options{TempDir: t.TempDir(), NoCheckpoints: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Changes(t.Context()); !errors.Is(err, ErrNoCheckpoints) {
		t.Errorf("Changes() = %v", err)
	}
	if _, err := w.Patch(t.Context(), &bytes.Buffer{}, nil); !errors.Is(err, ErrNoCheckpoints) {
		t.Errorf("Patch() = %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
