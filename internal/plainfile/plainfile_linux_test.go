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
