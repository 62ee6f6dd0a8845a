// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/files"
)

// A folder is exchanged for a link that leads out, again and again, while files are written, made, moved
// and removed through it. Nothing may arrive outside, and nothing may be left of a write that failed.
func TestDirFS_FolderExchangedForALinkDoesNotEscape(t *testing.T) {
	base := t.TempDir()
	root, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
	for _, dir := range []string{root, filepath.Join(root, "d"), outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "precious"), []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	fsys := openDirFS(t, root, nil)
	d, out := filepath.Join(root, "d"), filepath.Join(root, "out")
	if err := exchange(d, out); err != nil {
		t.Skipf("nothing can be exchanged here: %v", err)
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			_ = exchange(d, out)
		}
	})
	refused, done, rounds := 0, 0, testkit.Size(1000, 50_000)
	for i := 0; i < rounds || i < 100*rounds && (refused < 50 || done < 50); i++ { // until it was a race
		for _, err := range []error{
			fsys.WriteFile("d/precious", []byte("overwritten"), nil),
			fsys.WriteFile(fmt.Sprintf("d/new%d/x", i%10), []byte("x"), nil),
			fsys.Rename("d/precious", "d/moved"),
			fsys.Remove("d/moved"),
		} {
			if errors.Is(err, workspace.ErrSecurity) {
				refused++
			} else if err == nil {
				done++
			}
		}
		if data, err := fsys.ReadFile("d/precious"); err == nil && string(data) == "kept" {
			t.Fatal("a file outside was read")
		}
	}
	stop.Store(true)
	wg.Wait()
	if refused == 0 || done == 0 {
		t.Errorf("%d refused, %d done: the race was not one", refused, done)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside there is %v, %v; want the one file", entries, err)
	}
	if got, err := os.ReadFile(filepath.Join(outside, "precious")); err != nil || string(got) != "kept" {
		t.Errorf("the file outside is %q, %v", got, err)
	}
	for _, name := range tempFiles(t, root) {
		t.Errorf("a write left %q", name)
	}
}

func tempFiles(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".drover-") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestDirFS_PipesAndDevicesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	fsys := openDirFS(t, dir, nil)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	names := []string{"pipe", "link"}
	if err := os.Symlink("pipe", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := makeNull(filepath.Join(dir, "null")); err == nil {
			names = append(names, "null")
		}
	}
	for _, name := range names {
		_, opened := fsys.Open(name)
		_, read := fsys.ReadFile(name)
		_, listed := fsys.ReadDir(name)
		for op, err := range map[string]error{"Open": opened, "ReadFile": read, "ReadDir": listed, "WriteFile": fsys.WriteFile(name, nil, nil)} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%s(%q) = %v, want a refusal", op, name, err)
			}
		}
		if _, err := fsys.Lstat(name); err != nil {
			t.Errorf("Lstat(%q) = %v", name, err)
		}
	}
	found, err := files.Grep(t.Context(), fsys, files.GrepOptions{Pattern: "."})
	if err != nil || len(found.Hits) > 0 {
		t.Errorf("Grep = %+v, %v", found, err)
	}
}

func TestDirFS_ReplacedFileKeepsItsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away: run as root")
	}
	dir := t.TempDir()
	fsys := openDirFS(t, dir, nil)
	put(t, fsys, "file", "x")
	if err := os.Chown(filepath.Join(dir, "file"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	put(t, fsys, "file", "y")
	info, err := fsys.Stat("file")
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 65534 {
		t.Errorf("Stat = %v, %v; want the owner of before", info, err)
	}
}
