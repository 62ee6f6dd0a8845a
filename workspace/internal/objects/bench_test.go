// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	benchFiles = 10_000
	benchSize  = 4 << 10
)

// manyFiles makes the files that are put, each with its own content.
func manyFiles(b *testing.B) (paths []string) {
	b.Helper()
	dir := b.TempDir()
	content := someBytes(1, benchSize)
	for n := range benchFiles {
		copy(content, fmt.Sprintf("file %06d", n))
		path := filepath.Join(dir, fmt.Sprintf("%06d", n))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// inParallel gives each number below n to one of as many workers as there are processors.
func inParallel(n int, work func(n int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for at := int(next.Add(1)) - 1; at < n; at = int(next.Add(1)) - 1 {
				work(at)
			}
		})
	}
	wg.Wait()
}

func putPath(b *testing.B, s *Store, path string) Hash {
	f, err := os.Open(path)
	if err != nil {
		b.Error(err)
		return empty
	}
	defer f.Close()
	h, _, err := s.Put(context.Background(), f, benchSize)
	if err != nil {
		b.Error(err)
	}
	return h
}

// BenchmarkPutManyFiles puts 10,000 files of 4 KiB into an empty store. In the same run git puts them
// into an empty repository; the ratio is how often the store is faster.
func BenchmarkPutManyFiles(b *testing.B) {
	paths := manyFiles(b)
	b.SetBytes(benchFiles * benchSize)
	var byGit time.Duration
	for b.Loop() {
		b.StopTimer()
		byGit += gitTime(b, paths)
		s := openStore(b, nil)
		b.StartTimer()
		inParallel(len(paths), func(n int) { putPath(b, s, paths[n]) })
		b.StopTimer()
		if err := os.RemoveAll(s.root.Name()); err != nil {
			b.Error(err)
		}
		b.StartTimer()
	}
	if byGit > 0 {
		b.ReportMetric(float64(byGit)/float64(b.Elapsed()), "git/drover")
	}
}

// gitTime is how long git takes, or nothing where there is no git.
func gitTime(b *testing.B, paths []string) time.Duration {
	b.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		return 0
	}
	dir := b.TempDir()
	if out, err := exec.Command(git, "init", "-q", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(git, "-C", dir, "hash-object", "-w", "--stdin-paths")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\n"))
	began := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if err := os.RemoveAll(dir); err != nil {
		b.Error(err)
	}
	return took
}

// BenchmarkPutWhatIsThere is what a file costs whose content is kept already.
func BenchmarkPutWhatIsThere(b *testing.B) {
	paths, s := manyFiles(b), openStore(b, nil)
	inParallel(len(paths), func(n int) { putPath(b, s, paths[n]) })
	b.SetBytes(benchFiles * benchSize)
	for b.Loop() {
		inParallel(len(paths), func(n int) { putPath(b, s, paths[n]) })
	}
}

func BenchmarkWriteManyFiles(b *testing.B) {
	paths, s := manyFiles(b), openStore(b, nil)
	hashes := make([]Hash, len(paths))
	inParallel(len(paths), func(n int) { hashes[n] = putPath(b, s, paths[n]) })
	b.SetBytes(benchFiles * benchSize)
	for b.Loop() {
		inParallel(len(paths), func(n int) {
			dst, err := os.OpenFile(paths[n], os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				b.Error(err)
				return
			}
			defer dst.Close()
			if err := s.WriteTo(hashes[n], dst); err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkReleaseHalf is what making room costs: every second of 10,000 contents dies.
func BenchmarkReleaseHalf(b *testing.B) {
	paths := manyFiles(b)
	b.SetBytes(benchFiles * benchSize / 2)
	for b.Loop() {
		b.StopTimer()
		s := openStore(b, nil)
		hashes := make([]Hash, len(paths))
		inParallel(len(paths), func(n int) { hashes[n] = putPath(b, s, paths[n]) })
		b.StartTimer()
		for n := 0; n < len(hashes); n += 2 {
			s.Release(hashes[n])
		}
		b.StopTimer()
		_ = os.RemoveAll(s.root.Name())
		b.StartTimer()
	}
}

func BenchmarkPutLarge(b *testing.B) {
	f := fileWith(b, someBytes(1, 64<<20))
	s := openStore(b, nil)
	b.SetBytes(64 << 20)
	for b.Loop() {
		h, _, err := s.Put(context.Background(), f, 64<<20)
		if err != nil {
			b.Fatal(err)
		}
		s.Release(h)
	}
}

func BenchmarkWriteLarge(b *testing.B) {
	s, dst := openStore(b, nil), fileWith(b, nil)
	h := put(b, s, someBytes(1, 64<<20))
	b.SetBytes(64 << 20)
	for b.Loop() {
		if err := s.WriteTo(h, dst); err != nil {
			b.Fatal(err)
		}
	}
}
