// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// manyFiles makes a folder with files of 1 KiB, 50 in each folder.
func manyFiles(b testing.TB, n int) string {
	b.Helper()
	dir := b.TempDir()
	for i := range n {
		p := filepath.Join(dir, fmt.Sprintf("d%02d/e%03d/f%05d.go", i/2500, i/50, i))
		if i%50 == 0 {
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(p, fmt.Appendf(nil, "%01024d", i), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

func BenchmarkFirstCheckpoint(b *testing.B) {
	dir := manyFiles(b, 10_000)
	for _, noWatch := range []bool{false, true} {
		b.Run(fmt.Sprintf("NoWatch=%v", noWatch), func(b *testing.B) {
			for b.Loop() {
				tree := openTree(b, dir, &TreeOptions{NoWatch: noWatch})
				checkpoint(b, tree)
				_ = tree.Close()
			}
		})
	}
}

func BenchmarkCheckpointAndRollback(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		dir := manyFiles(b, n)
		for _, noWatch := range []bool{false, true} {
			b.Run(fmt.Sprintf("files=%d/NoWatch=%v", n, noWatch), func(b *testing.B) {
				tree := openTree(b, dir, &TreeOptions{NoWatch: noWatch})
				checkpoint(b, tree)
				p := filepath.Join(dir, "d00/e000/f00000.go")
				b.Run("checkpoint", func(b *testing.B) {
					for i := 0; b.Loop(); i++ {
						b.StopTimer()
						if err := os.WriteFile(p, fmt.Appendf(nil, "change %d", i), 0o644); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
						c := checkpoint(b, tree)
						b.StopTimer()
						c.Release()
						b.StartTimer()
					}
				})
				b.Run("rollback", func(b *testing.B) {
					c := checkpoint(b, tree)
					for i := 0; b.Loop(); i++ {
						b.StopTimer()
						if err := os.WriteFile(p, fmt.Appendf(nil, "change %d", i), 0o644); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
						rollback(b, tree, c, nil)
					}
				})
			})
		}
	}
}
