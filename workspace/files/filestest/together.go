// SPDX-License-Identifier: Apache-2.0

package filestest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-agents/drover/workspace/files"
)

func wholeFiles(t *testing.T, s System) {
	const size = 100_000
	one, two := bytes.Repeat([]byte("1"), size), bytes.Repeat([]byte("2"), size)
	put(t, s.FS, "file", string(one))
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer done.Store(true)
		for i := range 50 {
			if err := s.FS.WriteFile("file", [][]byte{one, two}[i%2], nil); err != nil {
				t.Errorf("WriteFile = %v", err)
			}
		}
	})
	for range 3 {
		wg.Go(func() {
			for !done.Load() {
				got, err := s.FS.ReadFile("file")
				if err != nil || !bytes.Equal(got, one) && !bytes.Equal(got, two) {
					t.Errorf("a reader sees %d bytes, %v; want one whole file", len(got), err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func manyAppends(t *testing.T, s System) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 8 {
		wg.Go(func() {
			<-start
			for j := range 100 {
				line := fmt.Sprintf("%d-%d\n", i, j)
				if err := s.FS.WriteFile("dir/log", []byte(line), &files.WriteOptions{Append: true}); err != nil {
					t.Errorf("append = %v", err)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	got, err := s.FS.ReadFile("dir/log")
	if n := strings.Count(string(got), "\n"); err != nil || n != 800 {
		t.Errorf("%d lines arrived, %v; want 800", n, err)
	}
}

func oneCreates(t *testing.T, s System) {
	for file := range 200 {
		var wg sync.WaitGroup
		var created atomic.Int32
		start := make(chan struct{})
		for i := range 4 {
			wg.Go(func() {
				<-start
				err := s.FS.WriteFile(fmt.Sprintf("a/b/file%d", file), fmt.Append(nil, i), &files.WriteOptions{CreateOnly: true})
				if err == nil {
					created.Add(1)
				} else if !errors.Is(err, fs.ErrExist) {
					t.Errorf("create = %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
		if n := created.Load(); n != 1 {
			t.Fatalf("%d created the file, want 1", n)
		}
	}
}

// manyAtOnce leaves to the race detector and to the last look whether all is well.
func manyAtOnce(t *testing.T, s System) {
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("d%d/f%d", j%3, i)
				_ = s.FS.WriteFile(name, []byte(name), nil)
				_, _ = s.FS.ReadDir("d1")
				_, _ = files.Glob(s.FS, "**")
				_ = s.FS.Rename(name, fmt.Sprintf("e%d/f%d", j%2, i))
				_, _ = s.FS.Stat("e1")
				if j%7 == 0 {
					_ = s.FS.Remove(fmt.Sprintf("d%d", j%3))
				}
			}
		})
	}
	wg.Wait()
	for _, name := range tree(t, s.FS) {
		if info, err := s.FS.Stat(name); err != nil || !info.IsDir() && (info.Size() != 5 || !info.Mode().IsRegular()) {
			t.Errorf("at the end %q is %v, %v", name, info, err)
		}
	}
}
