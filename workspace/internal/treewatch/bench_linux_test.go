// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"os"
	"path/filepath"
	"testing"
)

// The cost of a look at a quiet tree, and at one in which a file was written.
func BenchmarkTake(b *testing.B) {
	dir := b.TempDir()
	write(b, dir+"/a/f", "f")
	w := watchTree(b, dir, nil)
	b.Run("quiet", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = w.Take()
		}
	})
	f, err := os.OpenFile(dir+"/a/f", os.O_WRONLY, 0)
	must(b, err)
	defer f.Close()
	b.Run("one write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = f.WriteAt([]byte("x"), 0)
			_, _ = w.Take()
		}
	})
}

func BenchmarkUnwritten(b *testing.B) {
	path := b.TempDir() + "/f"
	write(b, path, "f")
	f, err := os.Open(path)
	must(b, err)
	defer f.Close()
	for b.Loop() {
		_, _ = Unwritten(f)
	}
}

// What it costs to watch a further folder, and a further file.
func BenchmarkAdd(b *testing.B) {
	const n = 1000
	dir := b.TempDir()
	for i := range n {
		write(b, filepath.Join(dir, itoa(i), "f"), "f")
	}
	for _, kind := range []string{"folders", "folders and files"} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				w, err := New(dir, nil)
				must(b, err)
				for i := range n {
					must(b, w.Add(itoa(i)))
					if kind != "folders" {
						must(b, w.AddFile(itoa(i)+"/f"))
					}
				}
				must(b, w.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/folder")
		})
	}
}
