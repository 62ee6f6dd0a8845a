// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kinds are watches of the files "log" and "end": one whose changes the system reports, where it does, and one that looks.
var kinds = map[string]func(dir string) *Watch{
	"reported": func(dir string) *Watch { return NewWatch(dir, "log", "end") },
	"looking": func(dir string) *Watch {
		w := newWatch(dir, []string{"log", "end"})
		w.startLooking()
		return w
	},
}

func awaitChange(t *testing.T, what string, w *Watch) {
	t.Helper()
	select {
	case <-w.Changed():
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: not reported in 10 s", what)
	}
}

func TestWatch_ReportsEachKindOfChange(t *testing.T) {
	for kind, watch := range kinds {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			log, end := filepath.Join(dir, "log"), filepath.Join(dir, "end")
			must(t, os.WriteFile(log, []byte("a\n"), 0o600))
			must(t, os.WriteFile(end+".new", []byte("x"), 0o600))
			var open *os.File
			for _, change := range []struct {
				what string
				make func() error
			}{
				{"append", func() (err error) {
					open, err = os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
					if err == nil {
						_, err = open.WriteString("b\n")
					}
					return err
				}},
				{"close", func() error { return open.Close() }},
				{"made", func() error { return os.WriteFile(end, nil, 0o600) }},
				{"mode", func() error { return os.Chmod(end, 0o640) }},
				{"replaced", func() error { return os.Rename(end+".new", end) }},
				{"removed", func() error { return os.Remove(end) }},
				{"another folder", func() error {
					return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700), os.WriteFile(log, []byte("another\n"), 0o600))
				}},
			} {
				w := watch(dir)
				must(t, change.make())
				awaitChange(t, change.what, w)
				if change.what == "another folder" {
					must(t, os.WriteFile(log, []byte("another one\n"), 0o600))
					awaitChange(t, "a change in it", w)
				}
				w.Close()
			}
		})
	}
}

// A look at files that stay as they are is less and less often, and comes soon after a change.
func TestWatch_LooksLessOftenAtWhatStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	must(t, os.WriteFile(path, nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(filepath.Dir(path), []string{"log"})
		w.startLooking()
		defer w.Close()
		<-w.Changed()
		began := time.Now()
		for range 10 {
			<-w.Changed()
		}
		if took := time.Since(began); took < 10*anyway {
			t.Errorf("ten values without a change in %v, want at least %v", took, 10*anyway)
		}
		for i, most := range []time.Duration{anyway, slowest, slowest} {
			must(t, os.WriteFile(path, make([]byte, i+1), 0o600))
			began = time.Now()
			if <-w.Changed(); time.Since(began) > most {
				t.Errorf("change %d is reported after %v, want %v", i+1, time.Since(began), most)
			}
		}
	})
}
