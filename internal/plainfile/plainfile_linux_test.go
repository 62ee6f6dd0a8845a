// SPDX-License-Identifier: Apache-2.0

package plainfile_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/internal/plainfile"
)

func TestOpen_RefusesWhatIsNotARegularFile(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	toPipe, toProc := filepath.Join(dir, "to-pipe"), filepath.Join(dir, "to-proc")
	if err := errors.Join(os.Symlink(pipe, toPipe), os.Symlink("/proc/self/environ", toProc)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		dir, pipe, toPipe, socket, toProc, "/dev/zero", "/dev/null", "/proc/self/environ", "/proc/self/status", "/proc/kmsg", "/sys/kernel/notes",
	} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if _, err := plainfile.Open(path); !errors.Is(err, plainfile.ErrNotPlain) && !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s: got %v, want %v", path, err, plainfile.ErrNotPlain)
		}
	}
}

func TestOpenReal_FollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(path("file"), []byte("text"), 0o600), os.Symlink("file", path("link")), os.Symlink("none", path("dangling")),
		syscall.Mkfifo(path("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"file": nil, "link": plainfile.ErrNotPlain, "dangling": plainfile.ErrNotPlain, "pipe": plainfile.ErrNotPlain, ".": plainfile.ErrNotPlain, "new": nil} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY | os.O_APPEND | os.O_CREATE} {
			want := want
			if name == "new" && flag == os.O_RDONLY {
				want = os.ErrNotExist
			}
			f, err := plainfile.OpenReal(path(name), flag, 0o600)
			if !errors.Is(err, want) {
				t.Errorf("%s with %#x: got %v, want %v", name, flag, err, want)
			}
			if err == nil {
				_ = f.Close()
			}
		}
		if name == "new" {
			_ = os.Remove(path(name))
		}
	}
	if text, err := os.ReadFile(path("file")); string(text) != "text" || err != nil {
		t.Errorf("the file is %q, %v", text, err)
	}
	if _, err := os.Lstat(path("none")); err == nil {
		t.Error("a file was made through a link")
	}
}
