// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// BenchmarkSync changes one file of many and syncs: the cost is that of the change.
func BenchmarkSync(b *testing.B) {
	for _, files := range []int{100, 10_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			w, s := manyFiles(b, files)
			at := filepath.Join(w.Root(), "p", "f0")
			for i := 0; b.Loop(); i++ {
				must(b, os.WriteFile(at, fmt.Append(nil, i), 0o644))
				if synced, err := workspace.Sync(b.Context(), s, w); err != nil || synced.Count != 1 {
					b.Fatalf("Sync = %+v, %v", synced, err)
				}
			}
		})
	}
}

// BenchmarkWriteBack changes one file of many and writes it back.
func BenchmarkWriteBack(b *testing.B) {
	for _, files := range []int{100, 10_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			w, _ := manyFiles(b, files)
			at, opts := filepath.Join(w.Root(), "p", "f0"), &workspace.WriteBackOptions{State: b.TempDir()}
			for i := 0; b.Loop(); i++ {
				must(b, os.WriteFile(at, fmt.Append(nil, i), 0o644))
				if done, err := w.WriteBack(b.Context(), opts); err != nil || len(done.Written) != 1 {
					b.Fatalf("WriteBack = %+v, %v", done, err)
				}
			}
		})
	}
}

func manyFiles(b *testing.B, files int) (*workspace.Workspace, *session.Session) {
	b.Helper()
	host, s := b.TempDir(), session.New(nil)
	for i := range files {
		must(b, os.WriteFile(filepath.Join(host, fmt.Sprint("f", i)), fmt.Append(nil, "file ", i), 0o644))
	}
	return openOn(b, host, func(o *workspace.Options) { o.Session = s }), s
}
