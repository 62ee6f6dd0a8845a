// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// fileTable is a view in the form path: hash, version.
func fileTable(v workspace.VirtualFileSystem) []string {
	var lines []string
	for f := range v.All() {
		lines = append(lines, fmt.Sprintf("%s: %s v%d", f.Path, f.Hash, f.Version))
	}
	return lines
}

func TestVirtualFileSystem_FollowsTheEventsOfASession(t *testing.T) {
	ctx, s := t.Context(), session.New(nil)
	if err := session.Seed(ctx, s, workspace.VirtualFileSystem{}); err != nil {
		t.Fatal(err)
	}
	workspace.RegisterFiles(s)
	workspace.RegisterFiles(s) // as a second workspace of the session does
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dispatch := func(v any) {
		t.Helper()
		if _, err := s.Dispatch(ctx, v); err != nil {
			t.Fatal(err)
		}
	}
	dispatch(workspace.WriteFile{Path: vfsPath(t, "b"), Hash: "1", Size: 3, Mode: workspace.FileCreated, At: at})
	dispatch(workspace.WriteFile{Path: vfsPath(t, "a.go"), Hash: "2", Mode: workspace.FileCreated, At: at, Encoding: workspace.UTF8})
	dispatch(workspace.WriteFile{Path: vfsPath(t, "a/b"), Hash: "3", Mode: workspace.FileCreated, At: at})
	before, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	dispatch(workspace.WriteFile{Path: vfsPath(t, "b"), Hash: "4", Size: 9, Mode: workspace.FileOverwritten, At: at.Add(time.Hour)})
	dispatch(workspace.WriteFile{Path: vfsPath(t, "a.go"), Hash: "2", Mode: workspace.FileOverwritten, At: at.Add(time.Hour)})
	dispatch(workspace.DeleteFile{Path: vfsPath(t, "a/b")})
	now, _ := session.Query[workspace.VirtualFileSystem](s).Latest()

	if diff := cmp.Diff([]string{"a/b: 3 v1", "a.go: 2 v1", "b: 1 v1"}, fileTable(before)); diff != "" {
		t.Errorf("the view that was asked for before has changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.go: 2 v1", "b: 4 v2"}, fileTable(now)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	b, _ := now.Get(vfsPath(t, "b"))
	want := workspace.VirtualFile{
		Path: vfsPath(t, "b"), Hash: "4", SizeBytes: 9, Encoding: workspace.Binary, Version: 2, CreatedAt: at, UpdatedAt: at.Add(time.Hour),
	}
	if b != want {
		t.Errorf("b = %+v, want %+v", b, want)
	}
}

func TestVirtualFileSystem_IsRolledBackWithTheSession(t *testing.T) {
	ctx, s := t.Context(), session.New(nil)
	workspace.RegisterFiles(s)
	write := func(path, hash string) {
		t.Helper()
		if _, err := s.Dispatch(ctx, workspace.WriteFile{Path: vfsPath(t, path), Hash: hash}); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "1")
	snapshot := s.Snapshot()
	write("a", "2")
	write("b", "1")
	if err := s.Restore(ctx, snapshot); err != nil {
		t.Fatal(err)
	}
	now, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	if diff := cmp.Diff([]string{"a: 1 v1"}, fileTable(now)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

func TestVirtualFileSystem_SurvivesAStoreByteForByte(t *testing.T) {
	file := t.TempDir() + "/session"
	s := reopen(t, file)
	workspace.RegisterFiles(s)
	ctx := context.Background()
	for _, name := range []string{"a", "caf\xe9/\xff", "a<b>&c", "ü"} {
		e := workspace.WriteFile{Path: vfsPath(t, name), Hash: "1", Mode: workspace.FileCreated, Perm: 0o644, At: time.Unix(1000, 0).UTC()}
		if _, err := s.Dispatch(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, file)
	defer s.Close()
	workspace.RegisterFiles(s)
	got, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	if diff := cmp.Diff(fileTable(want), fileTable(got)); diff != "" || got.Len() != 4 {
		t.Errorf("after opening again (-want +got):\n%s", diff)
	}
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again workspace.VirtualFileSystem
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fileTable(want), fileTable(again)); diff != "" {
		t.Errorf("through JSON (-want +got):\n%s", diff)
	}
}

func reopen(t *testing.T, file string) *session.Session {
	t.Helper()
	store, err := session.OpenFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
