// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agentfile

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/advice"
)

// A pipe that is opened without care blocks the reader until a writer opens it.
func TestLoadProject_PipeIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, ProjectFile), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := LoadProject(dir)
	if p != nil || err == nil || !strings.Contains(err.Error(), "not a regular file") || advice.Of(err) == "" {
		t.Errorf("got %v, %v, want an error about the pipe, and advice", p, err)
	}
}
