// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExamine_FreeSpace(t *testing.T) {
	const fix = "df -h . && du -xh --max-depth=1 .   shows what takes the space"
	cases := []struct {
		name string
		free uint64
		err  error
		want Check
	}{
		{"much", 80_999_999_999, nil, Check{State: stateOK, Detail: "80 GB free in /shop"}},
		{"enough", 1_000_000_000, nil, Check{State: stateOK, Detail: "1.0 GB free in /shop"}},
		{"little", 999_999_999, nil, Check{State: stateWarning, Detail: "only 999 MB free in /shop", Fix: []string{fix}}},
		{"just not too little", 100_000_000, nil, Check{State: stateWarning, Detail: "only 100 MB free in /shop", Fix: []string{fix}}},
		{"too little", 99_999_999, nil, Check{State: stateBroken, Detail: "only 99 MB free in /shop", Fix: []string{fix}}},
		{"none", 0, nil, Check{State: stateBroken, Detail: "only 0 kB free in /shop", Fix: []string{fix}}},
		{"unreadable", 0, errors.New("it broke"), Check{State: stateBroken, Detail: "cannot look at /shop: it broke", Fix: []string{fix}}},
		{"unknown", 0, errors.ErrUnsupported, Check{State: stateSkipped, Detail: "free space is not known on linux"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			d.free = func(string) (uint64, error) { return c.free, c.err }
			c.want.Path = "/shop"
			if c.err == nil {
				c.want.FreeBytes = &c.free
			}
			if diff := cmp.Diff(&c.want, d.examineDisk(t.Context())); diff != "" {
				t.Errorf("check (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExamine_WritesATemporaryFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(dir, "locked")
	if err := os.Mkdir(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	bad := []string{file, filepath.Join(dir, "none")}
	if os.Getuid() > 0 { // root may write everywhere
		bad = append(bad, locked)
	}
	d := healthy(t)
	for _, temp := range bad {
		d.tempDir = func() string { return temp }
		if got := d.examineTemp(t.Context()); got.State != stateBroken || len(got.Fix) == 0 {
			t.Errorf("%s: got %+v, want broken and a fix", temp, got)
		}
	}
	d.tempDir = func() string { return dir }
	if got := d.examineTemp(t.Context()); got.State != stateOK {
		t.Errorf("got %+v, want ok", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 2 {
		t.Errorf("%v are there, want the two of the test only", left)
	}
}

func TestFreeSpace_ReadsTheDisk(t *testing.T) {
	free, err := freeSpace(t.TempDir())
	if err != nil || free == 0 {
		t.Errorf("got %d, %v, want some bytes", free, err)
	}
	if _, err := freeSpace(filepath.Join(t.TempDir(), "none")); err == nil && runtime.GOOS == "linux" {
		t.Error("a folder that is not there has free space")
	}
}
