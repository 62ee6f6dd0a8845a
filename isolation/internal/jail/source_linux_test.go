// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What was opened is what is mounted, although its name leads elsewhere by then.
func TestOpenSources_ExchangedFolderStaysTheSame(t *testing.T) {
	top := t.TempDir()
	work, host := filepath.Join(top, "work"), filepath.Join(top, "host")
	for _, dir := range []string{filepath.Join(work, "docs", "inner"), filepath.Join(host, "inner")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := Spec{Mounts: []Mount{{Source: work, Writable: true}, {Source: filepath.Join(work, "docs", "inner")}}}
	from, err := s.openSources()
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	want := from[1].stat.Ino
	docs := filepath.Join(work, "docs")
	if err := errors.Join(os.Rename(docs, docs+".away"), os.Symlink(host, docs)); err != nil {
		t.Fatal(err)
	}
	t.Run("staged", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root, which makes the mounts itself: run as root")
		}
		st, err := newStage(from, "/usr/bin/bwrap", owner{nobody, nobody})
		if err != nil {
			t.Fatal(err)
		}
		trees, err := st.openTrees()
		defer func() {
			for _, fd := range trees {
				_ = unix.Close(fd)
			}
		}()
		if err != nil {
			t.Fatal(err)
		}
		var got unix.Stat_t
		if err := unix.Fstat(trees[1], &got); err != nil || got.Ino != want {
			t.Errorf("got inode %d, %v, want %d", got.Ino, err, want)
		}
	})
	if _, err := s.openSources(); !errors.Is(err, unix.ELOOP) {
		t.Errorf("opened after the exchange: got %v, want that a link is on the way", err)
	}
}
