// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestBegin_DoesNotWaitForTheCount(t *testing.T) {
	root := t.TempDir()
	for n := range 2000 {
		if err := os.WriteFile(filepath.Join(root, strconv.Itoa(n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken := make(chan Breach, 1)
	t.Run("a limit that the count breaks is reported", func(t *testing.T) {
		w, err := Begin(t.Context(), Options{Paths: []string{root}, MaxFiles: 1000, Whole: true, Exceeded: func(b Breach) { broken <- b }})
		if err != nil {
			t.Fatal(err)
		}
		if b := <-broken; b.What != Files {
			t.Errorf("got %v, want a breach of %v", b, Files)
		}
		<-w.Ready()
		w.Close()
	})
	t.Run("what was there is free", func(t *testing.T) {
		w, err := Begin(t.Context(), Options{Paths: []string{root}, MaxFiles: 1, Exceeded: func(b Breach) { broken <- b }})
		if err != nil {
			t.Fatal(err)
		}
		<-w.Ready()
		if got := w.Measure().Files; got != 2000 {
			t.Errorf("got %d files, want 2000", got)
		}
		for n := range 2 {
			if err := os.WriteFile(filepath.Join(root, "new-"+strconv.Itoa(n)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if b := <-broken; b.What != Files || b.Found != 2 {
			t.Errorf("got %v, want two files too many", b)
		}
		w.Close()
	})
	t.Run("a full disk and a missing folder are reported at once", func(t *testing.T) {
		full := Options{Paths: []string{root}, MinFree: 1 << 62, Exceeded: func(Breach) {}}
		if _, err := Begin(t.Context(), full); !isBreach(err) {
			t.Errorf("got %v, want a breach", err)
		}
		if _, err := Begin(t.Context(), Options{Paths: []string{root + "/none"}, Exceeded: func(Breach) {}}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want that the folder is missing", err)
		}
	})
	t.Run("closing ends the count", func(t *testing.T) {
		w, err := Begin(t.Context(), Options{Paths: []string{"/"}, MaxFiles: 1, Exceeded: func(b Breach) { broken <- b }})
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		<-w.Ready()
		if len(broken) > 0 {
			t.Errorf("a count that was broken off reported %v", <-broken)
		}
	})
}

func isBreach(err error) bool { _, ok := errors.AsType[Breach](err); return ok }
