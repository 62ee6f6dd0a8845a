// SPDX-License-Identifier: Apache-2.0

//go:build unix

package overrides

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/prompt"
)

// To open a pipe would wait for a writer.
func TestFile_NamedPipeIsRejected(t *testing.T) {
	f := mustFile(t, t.TempDir(), mustBind(t, []*prompt.Section{prompt.Markdown("a", "A", "x")}), "")
	must(t, os.MkdirAll(filepath.Dir(f.Path()), 0o755), syscall.Mkfifo(f.Path(), 0o644))
	if _, _, err := f.Resolve(); !errors.Is(err, ErrFile) {
		t.Errorf("reading: %v, want ErrFile", err)
	}
	if err := f.SetText(t.Context(), "a", "y"); !errors.Is(err, ErrFile) {
		t.Errorf("writing: %v, want ErrFile", err)
	}
}
