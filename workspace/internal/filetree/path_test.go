// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	slashpath "path"
	"strings"
	"testing"
	"time"
)

func FuzzClean(f *testing.F) {
	for _, path := range []string{"a", "a/b", "./a", "a//b/", "../a", "a/../b", "/", "", ".", "a/..b/...", "\xff/\x00", "a/./."} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := Clean(path)
		if err != nil {
			if !errors.Is(err, ErrPath) || got != "" {
				t.Errorf("got %q, %v, want only %v", got, err, ErrPath)
			}
			return
		}
		if got != slashpath.Clean(path) || got[0] == '/' || strings.HasPrefix(got+"/", "../") || strings.ContainsRune(got, 0) {
			t.Errorf("%q became %q", path, got)
		}
		if again, err := Clean(got); again != got || err != nil {
			t.Errorf("%q became %q and then %q, %v", path, got, again, err)
		}
		if dir, name := split(got); got != "." && join(dir, name) != got {
			t.Errorf("%q is split into %q and %q", got, dir, name)
		}
	})
}

func TestRacy_IsTrueWithinOneTick(t *testing.T) {
	looked := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		changed time.Duration // before the look
		want    bool
	}{
		"long before":    {time.Hour, false},
		"21 ms before":   {21 * time.Millisecond, false},
		"20 ms before":   {20 * time.Millisecond, true},
		"just then":      {0, true},
		"in the future":  {-time.Hour, true},
		"one tick later": {-4 * time.Millisecond, true},
	} {
		e := Entry{Stamp: Stamp{Changed: looked.Add(-c.changed).UnixNano()}}
		if got := Racy(e, looked); got != c.want {
			t.Errorf("changed %s: got %t, want %t", name, got, c.want)
		}
	}
}
