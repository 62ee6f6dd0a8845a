// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

func newHome(t *testing.T, parent string) *isolation.Home {
	t.Helper()
	home, err := isolation.NewHome(isolation.HomeOptions{TempDir: parent, ConfigDir: ".config"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	return home
}

// checkEmpty checks that nothing is left in a folder.
func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("in %s there is %v, %v, want nothing", dir, left, err)
	}
}

func TestHome_IsPrivate(t *testing.T) {
	parent := t.TempDir()
	own, err := isolation.NewHome(isolation.HomeOptions{TempDir: parent, Prefix: "claude-agent-", ConfigDir: ".config"})
	if err != nil || !strings.HasPrefix(filepath.Base(own.Path()), "claude-agent-") {
		t.Fatalf("the home with another prefix is %v: %v", own, err)
	}
	defer own.Close()
	home := newHome(t, parent)
	if name := filepath.Base(home.Path()); !strings.HasPrefix(name, "drover-home-") {
		t.Errorf("the home is called %s", name)
	}
	err = filepath.WalkDir(parent, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == parent {
			return err
		}
		info, err := entry.Info()
		want := os.FileMode(0o600)
		if entry.IsDir() {
			want = fs.ModeDir | 0o700
		}
		if err == nil && runtime.GOOS != "windows" && info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHome_Folders(t *testing.T) {
	home := newHome(t, t.TempDir())
	for _, test := range []struct{ name, got, want string }{
		{"ConfigDir", home.ConfigDir(), ".config"},
		{"TempDir", home.TempDir(), "tmp"},
	} {
		if want := filepath.Join(home.Path(), filepath.FromSlash(test.want)); test.got != want {
			t.Errorf("%s = %s, want %s", test.name, test.got, want)
		}
		if _, err := os.Stat(test.got); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestHome_ConcurrentClosesRemoveItOnce(t *testing.T) {
	parent := t.TempDir()
	home := newHome(t, parent)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := home.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(home.Path()); err == nil {
				t.Error("Close returned before the home was gone")
			}
		})
	}
	wg.Wait()
	if err := home.Close(); err != nil {
		t.Error("the second time:", err)
	}
	checkEmpty(t, parent)
}

func TestHome_IsRemovedWhenTheRunPanics(t *testing.T) {
	parent := t.TempDir()
	func() {
		defer func() { _ = recover() }()
		home := newHome(t, parent)
		defer home.Close()
		panic("the run went wrong")
	}()
	checkEmpty(t, parent)
}

// Runs as an ordinary user too: root can read everything anyway.
func TestHome_LockedFilesAreRemoved(t *testing.T) {
	parent, outside := t.TempDir(), t.TempDir()
	if err := os.Chmod(outside, 0o500); err != nil {
		t.Fatal(err)
	}
	home := newHome(t, parent)
	locked := filepath.Join(home.TempDir(), "a", "b", "c")
	if err := os.MkdirAll(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	plant(t, filepath.Join(locked, "file"), "x")
	if err := os.Symlink(outside, filepath.Join(locked, "link")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{locked, filepath.Dir(locked), filepath.Join(home.TempDir(), "a"), home.TempDir(), home.ConfigDir(), home.Path()} {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := home.Close(); err != nil {
		t.Error(err)
	}
	checkEmpty(t, parent)
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("a folder outside was changed: %v, %v", info, err)
	}
}

func TestHome_DeepTreeIsRemoved(t *testing.T) {
	parent := t.TempDir()
	home := newHome(t, parent)
	makeDeep(t, home.TempDir(), 400)
	lowerOpenFiles(t, 128)
	if err := home.Close(); err != nil {
		t.Error(err)
	}
	checkEmpty(t, parent)
}

// makeDeep makes a chain of folders with more levels than a process may have files.
func makeDeep(t *testing.T, dir string, depth int) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	for n := 0; n < depth && err == nil; n++ {
		var next *os.Root
		if err = root.Mkdir("d", 0o700); err == nil {
			next, err = root.OpenRoot("d")
		}
		root.Close()
		root = next
	}
	if err != nil {
		t.Fatal(err)
	}
	root.Close()
}

func TestHome_ErrorHasTheNextStep(t *testing.T) {
	if _, err := isolation.NewHome(isolation.HomeOptions{Prefix: "../x"}); err == nil || !strings.Contains(advice.Text(err), "Isolation.TempDir") {
		t.Errorf("got %v, want what to do", err)
	}
	_, err := isolation.NewHome(isolation.HomeOptions{TempDir: filepath.Join(t.TempDir(), "missing")})
	if err == nil || !strings.Contains(advice.Text(err), "Isolation.TempDir") {
		t.Errorf("got %v, want what to do", err)
	}
}
