// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// These benchmarks do the same thing in several ways, which take turns within one run. Each way reports
// the median of its times, and "git/drover" says how many times as long git takes. A folder of 10,000
// files is meant to be copied in at most 1.1 times what cp takes ("cp/drover" at least 0.91), and a
// checkpoint or a rollback with one change to be at least 5 times as fast as git.

// A side is one way to do the thing. Only do is timed.
type side struct {
	name              string
	before, do, after func(b *testing.B)
}

// takeTurns compares all sides with the last one.
func takeTurns(b *testing.B, sides ...side) {
	b.Helper()
	times := make([][]time.Duration, len(sides))
	for b.Loop() {
		for i, s := range sides {
			call(b, s.before)
			began := time.Now()
			s.do(b)
			times[i] = append(times[i], time.Since(began))
			call(b, s.after)
		}
	}
	b.ReportMetric(0, "ns/op") // the sum of all says nothing
	last := len(sides) - 1
	peer := median(times[last])
	b.ReportMetric(peer.Seconds()*1e3, sides[last].name+"-ms")
	for i, s := range sides[:last] {
		took := median(times[i])
		b.ReportMetric(took.Seconds()*1e3, s.name+"-ms")
		b.ReportMetric(peer.Seconds()/took.Seconds(), sides[last].name+"/"+s.name)
	}
}

func call(b *testing.B, f func(*testing.B)) {
	if f != nil {
		f(b)
	}
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// eachSize runs a benchmark for 100 and 10,000 files, and in a soak for 100,000.
func eachSize(b *testing.B, bench func(b *testing.B, files int)) {
	for _, n := range []int{100, 10_000, 100_000} {
		if n > 10_000 && !testkit.Soak() {
			continue
		}
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) { bench(b, n) })
	}
}

// sources makes a folder with files of 4 KiB on average, 20 to a folder, always the same.
func sources(b *testing.B, n int) string {
	b.Helper()
	dir := b.TempDir()
	random := rand.New(rand.NewPCG(1, uint64(n)))
	text := make([]byte, 64<<10)
	for i := range text {
		text[i] = "abcdefgh    \t\n"[random.IntN(14)]
	}
	for i := range n {
		path := filepath.Join(dir, sourcePath(i))
		if i%20 == 0 {
			check(b, os.MkdirAll(filepath.Dir(path), 0o755))
		}
		from := random.IntN(len(text) - 8<<10)
		content := fmt.Appendf(nil, "// %d\n%s", i, text[from:from+random.IntN(8<<10)])
		check(b, os.WriteFile(path, content, 0o644))
	}
	// What was written a moment ago is looked at twice, by git as well.
	old := time.Now().Add(-time.Hour)
	check(b, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { return os.Chtimes(path, old, old) }))
	time.Sleep(50 * time.Millisecond)
	return dir
}

func sourcePath(i int) string {
	return filepath.Join(fmt.Sprintf("p%03d", i/400), fmt.Sprintf("q%04d", i/20), fmt.Sprintf("f%06d.go", i))
}

// edit changes some files of a folder, far from each other, and is never the same twice.
func edit(b *testing.B, dir string, files, changed int) {
	b.Helper()
	for i := range changed {
		path := filepath.Join(dir, sourcePath(i*(files/changed)))
		check(b, os.WriteFile(path, fmt.Appendf(nil, "edited %d", time.Now().UnixNano()), 0o644))
	}
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// A repository is a folder with git beside it, as one uses git to keep states of a folder.
type repository struct{ git, store, dir string }

func newRepository(b *testing.B, dir string) *repository {
	b.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		b.Skip(err)
	}
	r := &repository{git: git, store: b.TempDir(), dir: dir}
	r.run(b, "init", "-q")
	return r
}

// run leaves out everything that is set up for git on this machine.
func (r *repository) run(b *testing.B, args ...string) {
	b.Helper()
	cmd := exec.Command(r.git, args...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + filepath.Dir(r.git), "HOME=" + r.store, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_DIR=" + filepath.Join(r.store, "git"), "GIT_WORK_TREE=" + r.dir,
		"GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@example.com",
		"GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@example.com",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (r *repository) commit(b *testing.B) {
	r.run(b, "add", "-A")
	r.run(b, "-c", "gc.auto=0", "commit", "-q", "--no-verify", "-m", "checkpoint")
}

func (r *repository) reset(b *testing.B) {
	r.run(b, "reset", "-q", "--hard")
	r.run(b, "clean", "-qfd")
}

// A kept tree takes a checkpoint each time, and gives up the one before.
type keptTree struct {
	*workspace.Tree
	before, last *workspace.Checkpoint
}

func keep(b *testing.B, dir string, noWatch bool) *keptTree {
	b.Helper()
	tree, err := workspace.OpenTree(dir, &workspace.TreeOptions{NoWatch: noWatch, TempDir: b.TempDir()})
	check(b, err)
	b.Cleanup(func() { _ = tree.Close() })
	k := &keptTree{Tree: tree}
	k.checkpoint(b)
	return k
}

func (k *keptTree) checkpoint(b *testing.B) {
	next, err := k.Checkpoint(b.Context())
	check(b, err)
	k.before, k.last = k.last, next
}

// saw checks that the last checkpoint has that many changes, and gives up the one before.
func (k *keptTree) saw(changed int) func(b *testing.B) {
	return func(b *testing.B) {
		changes, err := k.Changes(k.before, k.last)
		check(b, err)
		if len(changes) != changed {
			b.Fatalf("the checkpoint has %d changes, want %d", len(changes), changed)
		}
		k.before.Release()
	}
}

func (k *keptTree) rollback(b *testing.B) {
	done, err := k.Rollback(b.Context(), k.last, nil)
	check(b, err)
	if len(done.Restored) == 0 || len(done.Conflicts) > 0 {
		b.Fatalf("rolled back: %+v", done)
	}
}

func BenchmarkMaterialiseBesideCp(b *testing.B) {
	cp, err := exec.LookPath("cp")
	if err != nil {
		b.Skip(err)
	}
	eachSize(b, func(b *testing.B, files int) {
		from, temp := sources(b, files), b.TempDir()
		var w *workspace.Workspace
		open := func(noCheckpoints bool) func(b *testing.B) {
			return func(b *testing.B) {
				w, err = workspace.Open(b.Context(), &workspace.Options{
					Mounts: []workspace.HostMount{{HostPath: from, MountPath: "m"}}, AllowAnyRoot: true,
					TempDir: temp, NoCheckpoints: noCheckpoints,
				})
				check(b, err)
			}
		}
		closeIt := func(b *testing.B) { check(b, w.Close()) }
		to := filepath.Join(temp, "copy")
		takeTurns(b,
			side{name: "drover", do: open(true), after: closeIt},
			side{name: "with-checkpoint", do: open(false), after: closeIt},
			side{
				name:  "cp",
				do:    func(b *testing.B) { check(b, exec.Command(cp, "-r", from, to).Run()) },
				after: func(b *testing.B) { check(b, os.RemoveAll(to)) },
			})
	})
}

func BenchmarkFirstCheckpointBesideGit(b *testing.B) {
	eachSize(b, func(b *testing.B, files int) {
		dir := sources(b, files)
		var tree *workspace.Tree
		first := func(noWatch bool) func(b *testing.B) {
			return func(b *testing.B) {
				var err error
				tree, err = workspace.OpenTree(dir, &workspace.TreeOptions{NoWatch: noWatch, TempDir: b.TempDir()})
				check(b, err)
				_, err = tree.Checkpoint(b.Context())
				check(b, err)
			}
		}
		closeIt := func(b *testing.B) { check(b, tree.Close()) }
		var r *repository
		takeTurns(b,
			side{name: "drover", do: first(false), after: closeIt},
			side{name: "nowatch", do: first(true), after: closeIt},
			side{
				name:   "git",
				before: func(b *testing.B) { r = newRepository(b, dir) },
				do:     func(b *testing.B) { r.run(b, "add", "-A"); r.run(b, "write-tree") },
				after:  func(b *testing.B) { check(b, os.RemoveAll(r.store)) },
			})
	})
}

// three are trees of the same files: watched, not watched, and in git's care.
func three(b *testing.B, files int) (watched, unwatched *keptTree, r *repository) {
	b.Helper()
	watched, unwatched = keep(b, sources(b, files), false), keep(b, sources(b, files), true)
	if u := watched.Usage(); !u.Watching {
		b.Logf("not watched: %s", u.WatchProblem)
	}
	r = newRepository(b, sources(b, files))
	r.commit(b)
	return watched, unwatched, r
}

func besideGit(b *testing.B, files, changed int, read bool) {
	watched, unwatched, r := three(b, files)
	change := func(dir string) func(b *testing.B) {
		return func(b *testing.B) {
			edit(b, dir, files, changed)
			if read {
				check(b, readAll(dir))
			}
		}
	}
	takeTurns(b,
		side{name: "drover", before: change(watched.Dir()), do: watched.checkpoint, after: watched.saw(changed)},
		side{name: "nowatch", before: change(unwatched.Dir()), do: unwatched.checkpoint, after: unwatched.saw(changed)},
		side{name: "git", before: change(r.dir), do: r.commit})
	if u := watched.Usage(); u.Watching && u.FullChecks > 1 {
		b.Logf("%d full checks, %d fast ones", u.FullChecks, u.FastChecks)
	}
}

func BenchmarkCheckpointBesideGit(b *testing.B) {
	eachSize(b, func(b *testing.B, files int) { besideGit(b, files, 1, false) })
}

// Who has opened a file may write it: one that was only read is asked about, and its content left alone.
func BenchmarkCheckpointAfterReadingBesideGit(b *testing.B) {
	eachSize(b, func(b *testing.B, files int) { besideGit(b, files, 1, true) })
}

// The cost of a checkpoint is to grow with what changed.
func BenchmarkManyChangesBesideGit(b *testing.B) {
	for _, changed := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) { besideGit(b, 10_000, changed, false) })
	}
}

func BenchmarkRollbackBesideGit(b *testing.B) {
	eachSize(b, func(b *testing.B, files int) {
		watched, unwatched, r := three(b, files)
		change := func(dir string) func(b *testing.B) {
			return func(b *testing.B) { edit(b, dir, files, 1) }
		}
		takeTurns(b,
			side{name: "drover", before: change(watched.Dir()), do: watched.rollback},
			side{name: "nowatch", before: change(unwatched.Dir()), do: unwatched.rollback},
			side{name: "git", before: change(r.dir), do: r.reset})
	})
}

// A program without an index reads every file to find the changed ones.
func BenchmarkSyncBesideReading(b *testing.B) {
	eachSize(b, func(b *testing.B, files int) {
		open := func(noWatch bool) *workspace.Workspace {
			w, err := workspace.Open(b.Context(), &workspace.Options{
				Mounts: []workspace.HostMount{{HostPath: sources(b, files), MountPath: "m"}}, AllowAnyRoot: true,
				TempDir: b.TempDir(), Tree: workspace.TreeOptions{NoWatch: noWatch},
			})
			check(b, err)
			b.Cleanup(func() { _ = w.Close() })
			return w
		}
		sync := func(w *workspace.Workspace, name string) side {
			s := session.New(nil)
			return side{
				name:   name,
				before: func(b *testing.B) { edit(b, filepath.Join(w.Root(), "m"), files, 1) },
				do: func(b *testing.B) {
					synced, err := workspace.Sync(b.Context(), s, w)
					check(b, err)
					if synced.Count != 1 {
						b.Fatalf("synced %d files, want 1", synced.Count)
					}
				},
			}
		}
		watched, unwatched := open(false), open(true)
		takeTurns(b, sync(watched, "drover"), sync(unwatched, "nowatch"), side{
			name: "reading",
			do:   func(b *testing.B) { check(b, readAll(unwatched.Root())) },
		})
	})
}

// readAll reads every file of a folder and takes its digest.
func readAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		sha256.Sum256(content)
		return err
	})
}
