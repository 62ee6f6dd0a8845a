// SPDX-License-Identifier: Apache-2.0

package plainfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/internal/plainfile"
)

func TestRead_RegularFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		if got, err := plainfile.Read(name, 5); err != nil || string(got) != "12345" {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := plainfile.Read(name, 4); !errors.Is(err, plainfile.ErrTooLarge) {
			t.Errorf("got %v, want %v", err, plainfile.ErrTooLarge)
		}
	}
	if _, err := plainfile.Read(path+".missing", 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}
