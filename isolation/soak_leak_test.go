// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

// belongings are what cells could leave behind in a program and on its machine.
type belongings struct {
	Files      map[string]int // open ones, by what they are
	Goroutines int
	Processes  int
	Mounts     []string
	Groups     []string
	Temporary  []string
}

func takeStock(t *testing.T, temp string) (b belongings) {
	t.Helper()
	b.Files = map[string]int{}
	for _, name := range namesIn(t, "/proc/self/fd") {
		if target, err := os.Readlink("/proc/self/fd/" + name); err == nil {
			kind, _, _ := strings.Cut(target, ":[") // sockets and pipes have numbers
			b.Files[kind]++
		}
	}
	b.Goroutines = runtime.NumGoroutine()
	b.Processes = len(proc.Descendants(os.Getpid()))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	b.Mounts = strings.Split(string(mounts), "\n")
	b.Groups = ownGroups()
	b.Temporary = namesIn(t, temp)
	return b
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// ownGroups are the control groups that this process has made.
func ownGroups() (found []string) {
	own := "." + strconv.Itoa(os.Getpid()) + "."
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "drover.") && strings.Contains(d.Name(), own) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// cycles are the ways in which a cell can come to its end.
var cycles = map[string]func(t *testing.T, i *isolation.Isolation, dir string){
	"the program ends": func(t *testing.T, i *isolation.Isolation, dir string) {
		if err := runIn(t.Context(), i, dir, "/usr/bin/true"); err != nil {
			t.Error(err)
		}
	},
	"closed while the program runs": func(t *testing.T, i *isolation.Isolation, dir string) {
		w, err := wait(t.Context(), i, dir)
		if err != nil {
			t.Error(err)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	},
	"nothing is started": func(t *testing.T, i *isolation.Isolation, dir string) {
		cell, err := i.Open(t.Context(), programIn(dir), isolation.OpenOptions{})
		if err != nil {
			t.Error(err)
		}
		if err := cell.Close(); err != nil {
			t.Error(err)
		}
	},
	"no such program": func(t *testing.T, i *isolation.Isolation, dir string) {
		if err := runIn(t.Context(), i, dir, "/usr/bin/no-such-program"); err == nil {
			t.Error("a program that is not there has run")
		}
	},
	"the disk is too full": func(t *testing.T, i *isolation.Isolation, dir string) {
		full := *i
		full.Limits.FreeSpace = 1 << 62
		if err := runIn(t.Context(), &full, dir, "/usr/bin/true"); err == nil {
			t.Error("started on a disk that is too full")
		}
	},
	"cancelled before": func(t *testing.T, i *isolation.Isolation, dir string) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := runIn(ctx, i, dir, "/usr/bin/true"); err == nil {
			t.Error("started after the end of its context")
		}
	},
}

func TestSoak_CellsLeaveNothing(t *testing.T) {
	requireCell(t)
	temp, dir := t.TempDir(), t.TempDir()
	i := keyed(temp)
	for _, cycle := range cycles {
		cycle(t, i, dir) // what is made once for all cells
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes files that were forgotten
	before := settled(t, temp, belongings{})
	threads := len(namesIn(t, "/proc/self/task"))
	for range testkit.Size(3, 200) {
		for name, cycle := range cycles {
			cycle(t, i, dir)
			if t.Failed() {
				t.Fatalf("when %s", name)
			}
		}
	}
	if diff := cmp.Diff(before, settled(t, temp, before)); diff != "" {
		t.Errorf("what is left (-before +after):\n%s", diff)
	}
	// The runtime keeps idle threads, so that only growth by the number of cells shows a leak.
	if after := len(namesIn(t, "/proc/self/task")); after > threads+16 {
		t.Errorf("threads: got %d, want about %d", after, threads)
	}
}

// settled takes stock, again for a while if it is not as wanted: the end of a goroutine takes a moment.
func settled(t *testing.T, temp string, want belongings) belongings {
	t.Helper()
	for tries := 0; ; tries++ {
		if got := takeStock(t, temp); tries > 200 || cmp.Equal(got, want) || want.Files == nil && tries > 20 {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
}
