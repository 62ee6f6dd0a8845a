// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

// foreigners write to a tree while it is rolled back. Each text that they write is there once, and they
// destroy nothing: what they delete they move to a folder of their own.
type foreigners struct {
	dir, grave string
	paths      []string
	serial     atomic.Int64
	mu         sync.Mutex
	written    []string
}

var token = regexp.MustCompile(`<[a-z0-9-]+>`)

func (f *foreigners) next() string { return fmt.Sprintf("<text-%d>", f.serial.Add(1)) }

// act does something to a path. Most of it fails at times, because others do the same.
func (f *foreigners) act(random *rand.Rand) {
	p := filepath.Join(f.dir, f.paths[random.IntN(len(f.paths))])
	q := filepath.Join(f.dir, f.paths[random.IntN(len(f.paths))])
	switch random.IntN(9) {
	case 0:
		f.write(p, 0)
	case 1, 2:
		f.write(p, os.O_CREATE|os.O_EXCL)
	case 3:
		_ = unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, q, unix.RENAME_NOREPLACE)
	case 4:
		_ = os.Rename(p, filepath.Join(f.grave, fmt.Sprint(f.serial.Add(1))))
	case 5:
		_ = unix.Fchmodat(unix.AT_FDCWD, p, 0o600|uint32(random.IntN(0o77)), unix.AT_SYMLINK_NOFOLLOW)
	case 6:
		_ = os.Link(p, q)
	case 7:
		_ = os.Symlink("nowhere", p)
	case 8:
		_ = os.Mkdir(p, 0o755)
	}
}

func (f *foreigners) write(p string, how int) {
	file, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW|how, 0o644)
	if err != nil {
		return
	}
	defer file.Close()
	text := f.next()
	if _, err := file.WriteString(text); err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.written = append(f.written, text)
	}
}

// run lets them work for a time, and returns when they stopped.
func (f *foreigners) run(seed uint64, duration time.Duration) time.Time {
	var wg sync.WaitGroup
	end := time.Now().Add(duration)
	for i := range uint64(3) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, i))
			for time.Now().Before(end) {
				f.act(random)
			}
		})
	}
	wg.Wait()
	return time.Now()
}

// texts are all that can be found below some folders.
func texts(t *testing.T, dirs ...string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(p)
			for _, text := range token.FindAllString(string(content), -1) {
				all[text] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Whatever others do to the very paths that are rolled back: nothing that they wrote is lost, nothing
// outside is touched, and what is reported as restored is.
func TestRollback_AmongForeignWritersLosesNothing(t *testing.T) {
	bothWays(t, func(t *testing.T, opts *TreeOptions) {
		scratch := t.TempDir()
		dir, store, outside := filepath.Join(scratch, "tree"), filepath.Join(scratch, "store"), filepath.Join(scratch, "outside")
		f := &foreigners{dir: dir, grave: filepath.Join(scratch, "grave")}
		for d := range 6 {
			folder := fmt.Sprintf("d%d", d)
			f.paths = append(f.paths, folder, folder+"/sub")
			for i := range 8 {
				p := path.Join(folder, []string{"", "sub"}[i%2], fmt.Sprint(i))
				f.paths = append(f.paths, p, p+"-new")
				write(t, filepath.Join(dir, p), f.next())
			}
		}
		write(t, filepath.Join(outside, "f"), "outside")
		shell(t, scratch, "mkdir grave; ln -s ../../outside tree/d0/out; ln tree/d1/0 tree/d2/hard")
		untouched := snapshot(t, outside)
		opts.Store = store
		tree := openTree(t, dir, opts)
		c := checkpoint(t, tree)
		want := snapshot(t, dir)
		judged := 0
		for round := range testkit.Size(25, 120) {
			seed := uint64(round)
			f.run(seed, 2*time.Millisecond)
			stopped := make(chan time.Time, 1)
			go func() { stopped <- f.run(seed+1000, time.Duration(round%20)*time.Millisecond) }()
			began := time.Now()
			rolled, err := tree.Rollback(context.Background(), c, nil)
			ended := time.Now()
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if s := <-stopped; s.Before(began.Add(ended.Sub(began) / 2)) {
				judged++
				wantReported(t, want, snapshot(t, dir), rolled, tree.Usage().Watching)
				if t.Failed() {
					t.Fatalf("round %d: took %v, foreigners until %v; %d restored, conflicts %+v", round, ended.Sub(began), s.Sub(began), len(rolled.Restored), rolled.Conflicts)
				}
			}
			there := texts(t, dir, store, f.grave)
			for _, text := range f.written {
				if !there[text] {
					t.Fatalf("round %d: %s is lost", round, text)
				}
			}
			wantSnapshot(t, outside, untouched)
		}
		t.Logf("%d rounds judged, %d texts", judged, len(f.written))
		rollback(t, tree, c, nil)
		wantSnapshot(t, dir, want)
	})
}

// wantReported fails for a difference that is not reported: any with a watcher, which may fail on the way, and
// else those of paths that were rolled back.
func wantReported(t *testing.T, want, got map[string]state, rolled RolledBack, all bool) {
	t.Helper()
	conflicts := map[string]bool{}
	for _, c := range rolled.Conflicts {
		conflicts[c.Path] = true
		if c.Aside != "" {
			if _, err := os.Lstat(c.Aside); err != nil {
				t.Errorf("conflict %+v: %v", c, err)
			}
		}
	}
	either := maps.Clone(want)
	maps.Copy(either, got)
	for p := range either {
		if !all && !slices.Contains(rolled.Restored, p) {
			continue
		}
		w, g := want[p], got[p]
		if w.Mode&syscall.S_IFMT == syscall.S_IFDIR {
			w.ModTime = g.ModTime
		}
		w.Names, g.Names = nil, nil
		same := fmt.Sprintf("%+v", w) == fmt.Sprintf("%+v", g)
		if !same && !conflicts[p] {
			t.Errorf("%s differs, and no conflict says so (restored: %v): want %+v, got %+v", p, slices.Contains(rolled.Restored, p), w, g)
		}
	}
}
