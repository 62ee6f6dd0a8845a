// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
)

// The same files are copied by this package and by cp -r in the same run, so that both see the same machine.
func BenchmarkCopy(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		if n > 10_000 && !testkit.Soak() {
			continue
		}
		src := b.TempDir()
		makeMany(b, src, n)
		copiers := map[string]func(b *testing.B, dst string){
			"ours": func(b *testing.B, dst string) {
				must(b, os.Mkdir(dst, 0o755))
				_, err := copyInto(b.Context(), b, Source{open(b, src), "."}, dst, Options{})
				must(b, err)
			},
			"cp": func(b *testing.B, dst string) { must(b, exec.Command("cp", "-r", src, dst).Run()) },
		}
		for _, name := range []string{"cp", "ours"} {
			b.Run(strconv.Itoa(n)+"/"+name, func(b *testing.B) {
				dir := b.TempDir()
				for b.Loop() {
					dst := filepath.Join(dir, "dst")
					copiers[name](b, dst)
					b.StopTimer()
					must(b, os.RemoveAll(dst))
					b.StartTimer()
				}
			})
		}
	}
}
