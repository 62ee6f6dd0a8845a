// SPDX-License-Identifier: Apache-2.0

//go:build unix

package filetree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/internal/testkit"
)

// fill makes that many files in folders of some each, three levels deep.
func fill(tb testing.TB, dir string, files, each int) {
	tb.Helper()
	for i := range files / each {
		sub := filepath.Join(dir, fmt.Sprintf("part-%d", i%10), fmt.Sprintf("module-%04d", i))
		must(tb, os.MkdirAll(sub, 0o755))
		for j := range each {
			must(tb, os.WriteFile(filepath.Join(sub, fmt.Sprintf("source_%04d.go", j)), nil, 0o644))
		}
	}
}

// BenchmarkWalk compares with the standard library. The time of the processors says more than the clock
// where the machine has other work.
func BenchmarkWalk(b *testing.B) {
	for _, size := range []struct{ files, each int }{{100, 100}, {10_000, 100}, {10_000, 10_000}, {testkit.Size(0, 100_000), 100}} {
		if size.files == 0 {
			continue
		}
		r := openTemp(b)
		fill(b, r.Dir(), size.files, size.each)
		run := func(name string, walk func() (int, error)) {
			b.Run(fmt.Sprintf("files=%d/each=%d/%s", size.files, size.each, name), func(b *testing.B) {
				b.ReportAllocs()
				start := processorTime()
				for b.Loop() {
					if n, err := walk(); err != nil || n < size.files {
						b.Fatal(n, err)
					}
				}
				b.ReportMetric(float64((processorTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
		for name, opts := range map[string]WalkOptions{"stat": {NoXattrs: true}, "stat+xattrs": {}} {
			run(name, func() (int, error) {
				all, err := r.Walk(b.Context(), &opts)
				return len(all), err
			})
		}
		run("WalkDir", func() (int, error) { return walkDir(r.Dir()) })
	}
}

// walkDir is how one would do it with the standard library.
func walkDir(dir string) (n int, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = d.Info()
		}
		n++
		return err
	})
	return n, err
}

// processorTime is what this process has used of the processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
