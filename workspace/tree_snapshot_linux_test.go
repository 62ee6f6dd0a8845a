// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// A state is everything about an entry that a rollback puts back, found out by plain system calls.
type state struct {
	Mode     uint32
	UID, GID uint32
	Size     int64
	ModTime  syscall.Timespec
	Content  string // a hash, or the target of a link
	Xattrs   map[string]string
	Names    []string // of the same file, if there are several
}

// snapshot looks at a folder and everything below it.
func snapshot(t testing.TB, dir string) map[string]state {
	t.Helper()
	states := map[string]state{}
	names := map[uint64][]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		var st syscall.Stat_t
		if err := syscall.Lstat(p, &st); err != nil {
			return err
		}
		s := state{Mode: st.Mode, UID: st.Uid, GID: st.Gid, ModTime: st.Mtim, Xattrs: xattrs(p)}
		switch st.Mode & syscall.S_IFMT {
		case syscall.S_IFREG:
			s.Size, s.Content = st.Size, contentOf(t, p)
			names[st.Ino] = append(names[st.Ino], rel)
		case syscall.S_IFLNK:
			s.Content, err = os.Readlink(p)
		}
		states[rel] = s
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range names {
		if slices.Sort(group); len(group) < 2 {
			continue
		}
		for _, rel := range group {
			s := states[rel]
			s.Names = group
			states[rel] = s
		}
	}
	return states
}

func contentOf(t testing.TB, p string) string {
	t.Helper()
	f, err := os.Open(p)
	if errors.Is(err, fs.ErrPermission) {
		return "not readable"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func xattrs(p string) map[string]string {
	buf := make([]byte, 4096)
	n, err := unix.Llistxattr(p, buf)
	if err != nil || n == 0 {
		return nil
	}
	var all map[string]string
	for name := range strings.SplitSeq(strings.TrimRight(string(buf[:n]), "\x00"), "\x00") {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, 4096)
		if n, err := unix.Lgetxattr(p, name, value); err == nil {
			if all == nil {
				all = map[string]string{}
			}
			all[name] = string(value[:n])
		}
	}
	return all
}

// wantSnapshot fails if a folder is not what it was.
func wantSnapshot(t testing.TB, dir string, want map[string]state) {
	t.Helper()
	if diff := cmp.Diff(want, snapshot(t, dir)); diff != "" {
		t.Fatalf("the tree is not what it was (-want +got):\n%s", diff)
	}
}
