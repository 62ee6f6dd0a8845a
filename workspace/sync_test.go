// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// plant makes files below a folder. A name that ends in a slash is a folder, and a content that begins
// with an arrow a link.
func plant(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch target, isLink := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		case isLink:
			err = os.Symlink(target, at)
		default:
			err = os.WriteFile(at, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// openOn mounts a folder of the host at "p".
func openOn(t testing.TB, host string, edit func(*workspace.Options)) *workspace.Workspace {
	t.Helper()
	opts := &workspace.Options{
		Mounts: []workspace.HostMount{{HostPath: host, MountPath: "p"}}, AllowAnyRoot: true, TempDir: t.TempDir(),
	}
	if edit != nil {
		edit(opts)
	}
	w, err := workspace.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestSync_DispatchesChangesToTheSession(t *testing.T) {
	host, s := t.TempDir(), session.New(nil)
	plant(t, host, map[string]string{
		"keep.txt": "same", "edit.txt": "old", "gone.txt": "x", "empty": "", "bin": "\xff\x00", "swap": "file", "l": "-> keep.txt",
	})
	w := openOn(t, host, func(o *workspace.Options) { o.Session = s })
	seeded, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	if got, want := seeded.Len(), 6; got != want {
		t.Fatalf("%d files are known at first, want %d: %v", got, want, fileTable(seeded))
	}
	for f := range seeded.All() {
		if f.Version != 1 || f.CreatedAt.IsZero() || f.CreatedAt != f.UpdatedAt {
			t.Errorf("%s: version %d, created %v, updated %v", f.Path, f.Version, f.CreatedAt, f.UpdatedAt)
		}
	}
	root := filepath.Join(w.Root(), "p")
	plant(t, root, map[string]string{"edit.txt": "new", "made/deep.txt": "hello", "zero": ""})
	for _, name := range []string{"gone.txt", "swap"} {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	plant(t, root, map[string]string{"swap/inner": "now a folder"})
	if err := os.Chmod(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := workspace.Sync(t.Context(), s, w)
	if err != nil {
		t.Fatal(err)
	}
	want := workspace.Synced{
		Created: []string{"p/made/deep.txt", "p/swap/inner", "p/zero"},
		Changed: []string{"p/bin", "p/edit.txt"},
		Deleted: []string{"p/gone.txt", "p/swap"},
		Count:   5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Sync (-want +got):\n%s", diff)
	}
	var modes []workspace.FileWrite
	for e := range s.Events() {
		if write, ok := e.Payload.(workspace.WriteFile); ok {
			modes = append(modes, write.Mode)
		}
	}
	if diff := cmp.Diff([]workspace.FileWrite{"overwrite", "overwrite", "create", "create", "create"}, modes); diff != "" {
		t.Errorf("modes of the events (-want +got):\n%s", diff)
	}
	checkText(t, s, w, "p/edit.txt", "new", 2)
	checkText(t, s, w, "p/zero", "", 1)
	checkText(t, s, w, "p/keep.txt", "same", 1)

	again, err := workspace.Sync(t.Context(), s, w)
	if err != nil || again.Count != 0 || len(again.Deleted) != 0 {
		t.Errorf("a second Sync = %+v, %v, want nothing", again, err)
	}
}

func checkText(t *testing.T, s *session.Session, w *workspace.Workspace, path, want string, version int) {
	t.Helper()
	view, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	f, ok := view.Get(vfsPath(t, path))
	if !ok || f.Version != version || f.Encoding != workspace.UTF8 || f.SizeBytes != int64(len(want)) {
		t.Errorf("%s is %+v, %t, want version %d", path, f, ok, version)
	}
	if got, err := w.ReadText(t.Context(), f); got != want || err != nil {
		t.Errorf("ReadText(%s) = %q, %v, want %q", path, got, err, want)
	}
}

func TestSync_BinaryFilesHaveNoText(t *testing.T) {
	host, s := t.TempDir(), session.New(nil)
	plant(t, host, map[string]string{"bin": "\xff\xfe"})
	w := openOn(t, host, func(o *workspace.Options) { o.Session = s })
	view, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	f, _ := view.Get(vfsPath(t, "p/bin"))
	if f.Encoding != workspace.Binary || f.SizeBytes != 2 || f.Mode != 0o644 {
		t.Errorf("the file is %+v", f)
	}
	if _, err := w.ReadText(t.Context(), f); !errors.Is(err, workspace.ErrNotText) {
		t.Errorf("ReadText: %v, want ErrNotText", err)
	}
	content, err := w.Content(t.Context(), f.Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if got, err := io.ReadAll(content); string(got) != "\xff\xfe" || err != nil {
		t.Errorf("content = %q, %v", got, err)
	}
	for _, bad := range []string{"", "xyz", f.Hash[1:], f.Hash + "0", strings.Repeat("0", 64)} {
		if c, err := w.Content(t.Context(), bad); err == nil {
			_ = c.Close()
			t.Errorf("Content(%q) succeeded", bad)
		}
	}
}

func TestSync_NoticesARollbackOfTheSession(t *testing.T) {
	host, s := t.TempDir(), session.New(nil)
	plant(t, host, map[string]string{"a": "1", "b": "1"})
	w := openOn(t, host, func(o *workspace.Options) { o.Session = s })
	snapshot := s.Snapshot()
	plant(t, filepath.Join(w.Root(), "p"), map[string]string{"a": "2", "c": "2"})
	if _, err := workspace.Sync(t.Context(), s, w); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	got, err := workspace.Sync(t.Context(), s, w)
	if err != nil {
		t.Fatal(err)
	}
	want := workspace.Synced{Created: []string{"p/c"}, Changed: []string{"p/a"}, Count: 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Sync (-want +got):\n%s", diff)
	}
}

func TestSync_LaterSessionReceivesTheMountedFilesFirst(t *testing.T) {
	host := t.TempDir()
	plant(t, host, map[string]string{"a": "1", "b": "1"})
	w := openOn(t, host, nil)
	plant(t, filepath.Join(w.Root(), "p"), map[string]string{"a": "2"})
	for range 2 {
		s := session.New(nil)
		got, err := workspace.Sync(t.Context(), s, w)
		if want := (workspace.Synced{Changed: []string{"p/a"}, Count: 1}); err != nil || !cmp.Equal(want, got) {
			t.Errorf("Sync = %+v, %v, want %+v", got, err, want)
		}
		checkText(t, s, w, "p/a", "2", 2)
		checkText(t, s, w, "p/b", "1", 1)
	}
}

func TestModified_ReturnsFilesThatDifferFromTheMount(t *testing.T) {
	host, s := t.TempDir(), session.New(nil)
	plant(t, host, map[string]string{"same": "1", "edit": "1", "gone": "1", "again": "1", "back": "1"})
	w := openOn(t, host, func(o *workspace.Options) { o.Session = s })
	root := filepath.Join(w.Root(), "p")
	edit := func(files map[string]string, gone ...string) {
		t.Helper()
		plant(t, root, files)
		for _, name := range gone {
			if err := os.Remove(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := workspace.Sync(t.Context(), s, w); err != nil {
			t.Fatal(err)
		}
	}
	edit(map[string]string{"edit": "2", "made": "2", "back": "2"}, "gone", "again")
	edit(map[string]string{"again": "other", "back": "1"})
	files, deleted, err := workspace.Modified(s, w)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Path.String())
	}
	if diff := cmp.Diff([]string{"p/again", "p/back", "p/edit", "p/made"}, names); diff != "" {
		t.Errorf("modified (-want +got):\n%s", diff)
	}
	if len(deleted) != 1 || deleted[0].String() != "p/gone" {
		t.Errorf("deleted = %v, want p/gone", deleted)
	}
}

func TestSync_WithoutCheckpointsIsAnError(t *testing.T) {
	w := openOn(t, t.TempDir(), func(o *workspace.Options) { o.NoCheckpoints = true })
	for name, call := range map[string]func() error{
		"Sync":      func() error { _, err := workspace.Sync(t.Context(), session.New(nil), w); return err },
		"Modified":  func() error { _, _, err := workspace.Modified(session.New(nil), w); return err },
		"Content":   func() error { _, err := w.Content(t.Context(), ""); return err },
		"WriteBack": func() error { _, err := w.WriteBack(t.Context(), nil); return err },
	} {
		if err := call(); err == nil || !strings.Contains(advice.Text(err), "NoCheckpoints") {
			t.Errorf("%s: %v, want an error about NoCheckpoints", name, err)
		}
	}
}
