// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

func itoa(n int) string { return strconv.Itoa(n) }

func mapOnly(t *testing.T, path string, flag, prot, how int) {
	t.Helper()
	f, err := os.OpenFile(path, flag, 0)
	must(t, err)
	defer f.Close()
	mapping, err := unix.Mmap(int(f.Fd()), 0, 4, prot, how)
	must(t, err)
	t.Cleanup(func() { _ = unix.Munmap(mapping) })
}

func TestUnwritten_IsFalseWhileAWriterIsOpen(t *testing.T) {
	for _, tt := range []struct {
		name string
		have func(t *testing.T, path string)
		want bool
	}{
		{"no process has it", func(*testing.T, string) {}, true},
		{"open for reading", func(t *testing.T, path string) { openFor(t, path, os.O_RDONLY) }, true},
		{"open for writing", func(t *testing.T, path string) { openFor(t, path, os.O_WRONLY) }, false},
		{"open for both", func(t *testing.T, path string) { openFor(t, path, os.O_RDWR) }, false},
		{"open for appending", func(t *testing.T, path string) { openFor(t, path, os.O_WRONLY|os.O_APPEND) }, false},
		{"closed again", func(t *testing.T, path string) { must(t, openFor(t, path, os.O_RDWR).Close()) }, true},
		{"mapped shared, handle closed", func(t *testing.T, path string) {
			mapOnly(t, path, os.O_RDWR, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}, false},
		{"mapped shared to read, handle for both closed", func(t *testing.T, path string) {
			mapOnly(t, path, os.O_RDWR, unix.PROT_READ, unix.MAP_SHARED)
		}, false}, // mprotect can make it writable
		{"mapped shared to read, handle for reading closed", func(t *testing.T, path string) {
			mapOnly(t, path, os.O_RDONLY, unix.PROT_READ, unix.MAP_SHARED)
		}, true},
		{"mapped privately, handle for reading closed", func(t *testing.T, path string) {
			mapOnly(t, path, os.O_RDONLY, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		}, true},
		{"mapped privately, handle for both closed", func(t *testing.T, path string) {
			mapOnly(t, path, os.O_RDWR, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		}, false}, // harmless, but the kernel does not know
		{"open for writing by another name", func(t *testing.T, path string) {
			must(t, os.Link(path, path+".other"))
			openFor(t, path+".other", os.O_WRONLY)
		}, false},
		{"open for writing by a name that is gone", func(t *testing.T, path string) {
			must(t, os.Link(path, path+".other"))
			openFor(t, path+".other", os.O_WRONLY)
			must(t, os.Remove(path+".other"))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachFileSystem(t, func(t *testing.T, dir string) {
				path := dir + "/f"
				write(t, path, "file f")
				f := openFor(t, path, os.O_RDONLY)
				tt.have(t, path)
				got, err := Unwritten(f)
				if got != tt.want || err != nil {
					t.Errorf("Unwritten = %v, %v, want %v", got, err, tt.want)
				}
			})
		})
	}
}

// Root may ask about everybody's files, all others about their own.
func TestUnwritten_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/sh", "^Test(Unwritten_(IsFalse|FileOfAnotherUser)|Watcher_Reports|Settle_)")
}

func TestUnwritten_FileOfAnotherUserIsAnError(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may ask about everybody's")
	}
	got, err := Unwritten(openFor(t, "/bin/sh", os.O_RDONLY))
	if got || !errors.Is(err, unix.EACCES) {
		t.Errorf("Unwritten = %v, %v, want EACCES", got, err)
	}
}

// The lease is there for a moment only: who opens for writing meanwhile succeeds, in the worst case a
// little later, and nothing is left behind.
func TestUnwritten_DoesNotDisturbWriters(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, dir string) {
		path := dir + "/f"
		write(t, path, "file f")
		f := openFor(t, path, os.O_RDONLY)
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !stop.Load() {
				_, _ = Unwritten(f)
			}
		}()
		for range 2000 {
			w, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
		}
		stop.Store(true)
		<-done
		if lease, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0); lease != unix.F_UNLCK || err != nil {
			t.Errorf("lease left behind: %d, %v", lease, err)
		}
	})
}

func TestSettle_RemovesOnlyHintsOfTheCaller(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, dir string) {
		for _, name := range []string{"read", "written", "hot", "other"} {
			write(t, dir+"/"+name, name)
		}
		w := watchTree(t, dir, nil)
		var read []Reading
		for _, name := range []string{"read", "written", "hot"} {
			read = append(read, Reading{Path: name, File: openFor(t, dir+"/"+name, os.O_RDONLY)})
		}
		write(t, dir+"/written", "again")
		openFor(t, dir+"/hot", os.O_RDWR)
		openFor(t, dir+"/other", os.O_RDONLY)
		hot, err := w.Settle(read)
		must(t, err)
		if hot[0] || hot[1] || !hot[2] {
			t.Errorf("hot = %v, want only the third", hot)
		}
		got := take(t, w).Files
		want := map[string]Hint{"read": 0, "written": Written, "hot": Opened, "other": Opened}
		for path, hint := range want {
			if got[path] != hint {
				t.Errorf("%s: got %q, want %q", path, got[path], hint)
			}
		}
		for _, r := range read {
			must(t, r.File.Close())
		}
		if got := reported(take(t, w)); len(got) > 0 {
			t.Errorf("after closing: %q", got)
		}
	})
}
