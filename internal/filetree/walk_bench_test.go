// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// fill makes folders of 100 files each, three levels deep.
func fill(tb testing.TB, dir string, files int) {
	tb.Helper()
	for i := range files / 100 {
		sub := filepath.Join(dir, fmt.Sprintf("part-%d", i%10), fmt.Sprintf("module-%04d", i))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			tb.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("source_%02d.go", j)), nil, 0o644); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	for _, files := range []int{100, 10_000, 100_000} {
		if files > 10_000 && testing.Short() {
			continue
		}
		r := openTemp(b)
		fill(b, r.Dir(), files)
		for _, opts := range []WalkOptions{{NoXattrs: true}, {}} {
			b.Run(fmt.Sprintf("files=%d/xattrs=%t", files, !opts.NoXattrs), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if all, err := r.Walk(b.Context(), &opts); err != nil || len(all) < files {
						b.Fatal(len(all), err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("files=%d/WalkDir", files), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				walkDir(b, r.Dir())
			}
		})
	}
}

// walkDir is how one would do it with the standard library.
func walkDir(b *testing.B, dir string) {
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = d.Info()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}
