// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// checkComplete refuses file systems with unreported changes: by other machines, by the program that serves the file
// system, or by the layer below. The allowed ones keep their files themselves.
func checkComplete(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return fmt.Errorf("treewatch: statfs: %w", err)
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return nil
	}
	return fmt.Errorf("%w: a file system of type %#x may change unseen", ErrUnsupported, uint32(st.Type))
}

// A mountTable lists all mounts that this process sees. Watchers get no event if something is mounted over a path.
type mountTable struct{ file *os.File }

func openMountTable() (*mountTable, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("%w: the list of mounts is needed: %w", ErrUnsupported, err)
	}
	return &mountTable{file}, nil
}

func (m *mountTable) close() { _ = m.file.Close() }

// changed reports whether the list changed since it was asked last.
func (m *mountTable) changed() bool {
	poll := []unix.PollFd{{Fd: int32(m.file.Fd()), Events: unix.POLLPRI | unix.POLLERR}}
	n, err := unix.Poll(poll, 0)
	return err != nil || n > 0
}

// below returns the first mount inside a folder, or "".
func (m *mountTable) below(dir string) (string, error) {
	text, err := io.ReadAll(io.NewSectionReader(m.file, 0, 1<<30))
	if err != nil {
		return "", fmt.Errorf("treewatch: read the list of mounts: %w", err)
	}
	prefix := strings.TrimSuffix(dir, "/") + "/"
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		if point := unescape(fields[4]); strings.HasPrefix(point, prefix) && point != prefix {
			return point, nil
		}
	}
	return "", lines.Err()
}

// unescape reads the \040 by which the list writes blanks and the like.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out = append(out, byte(n))
				i += 3
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// checkMounts fails if something is mounted inside the tree. It reads the list only if it changed.
func (w *Watcher) checkMounts(first bool) error {
	if changed := w.mounts.changed(); !changed && !first {
		return nil
	}
	dir, err := os.Readlink(w.base)
	if err != nil {
		return fmt.Errorf("%w: /proc is needed: %w", ErrUnsupported, err)
	}
	point, err := w.mounts.below(dir)
	if err != nil || point == "" {
		return err
	}
	rel, err := filepath.Rel(dir, point)
	if err != nil {
		rel = point
	}
	return fmt.Errorf("%w: %s", ErrMounted, rel)
}
