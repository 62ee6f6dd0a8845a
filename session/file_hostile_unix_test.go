// SPDX-License-Identifier: Apache-2.0

//go:build unix

package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/session"
)

func openFileSession(t *testing.T, path string, opts *session.FileOptions) *session.Session {
	t.Helper()
	store, err := session.OpenFile(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFileStore_DeletedLogIsReported(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := openFileSession(t, "log", nil)
	t.Chdir(t.TempDir()) // which is no deletion
	dispatch(t, t.Context(), s, added{1})
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v, want none: the log is there", err)
	}
	path := filepath.Join(dir, "log")
	if _, err := os.Stat(path + ".checkpoint"); err != nil {
		t.Errorf("the checkpoint is not beside the log: %v", err)
	}
	s = openFileSession(t, path, nil)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second := openFileSession(t, path, nil)
	dispatch(t, t.Context(), s, added{2})
	if err := s.Close(); err == nil || !strings.Contains(advice.Text(err), "deleted") {
		t.Errorf("Close = %v, want that the log is not there any more", err)
	}
	if err := second.Close(); err != nil {
		t.Errorf("closing the log in its place: %v", err)
	}
}

// A program that may write to the directory of a log, as an agent may to its workspace, can put files there.
func TestSaveCheckpoint_FollowsNoLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{".checkpoint", ".checkpoint.new"} {
		if err := os.Symlink(other, path+suffix); err != nil {
			t.Fatal(err)
		}
	}
	s := openFileSession(t, path, nil)
	dispatch(t, t.Context(), s, added{1})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(other); string(got) != "precious" {
		t.Errorf("the file behind the link is now %.40q", got)
	}
	if info, err := os.Lstat(path + ".checkpoint"); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the checkpoint is %v, %v, want a file", info, err)
	}
}

func TestFileStore_PipeInsteadOfACheckpointDoesNotBlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, suffix := range []string{".checkpoint", ".checkpoint.new"} {
		if err := syscall.Mkfifo(path+suffix, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		s := openFileSession(t, path, nil)
		dispatch(t, t.Context(), s, added{1})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
