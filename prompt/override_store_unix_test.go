// SPDX-License-Identifier: Apache-2.0

//go:build unix

package prompt

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// To open a pipe would wait for somebody to write into it.
func TestAPipeInThePlaceOfAFileIsRefused(t *testing.T) {
	f := mustFile(t, t.TempDir(), mustBind(t, []*Section{Markdown("a", "A", "x")}), "")
	must(t, os.MkdirAll(filepath.Dir(f.Path()), 0o755), syscall.Mkfifo(f.Path(), 0o644))
	if _, _, err := f.Resolve(); !errors.Is(err, ErrOverrideFile) {
		t.Errorf("reading: %v, want ErrOverrideFile", err)
	}
	if err := f.SetText(t.Context(), "a", "y"); !errors.Is(err, ErrOverrideFile) {
		t.Errorf("writing: %v, want ErrOverrideFile", err)
	}
}
