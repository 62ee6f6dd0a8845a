// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
)

// Very old CLIs end before they report their version.
func TestRun_TooOldCLIIsRejected(t *testing.T) {
	old := filepath.Join(t.TempDir(), "claude")
	program := "#!/bin/sh\n[ \"$1\" = --version ] && echo '2.1.100 (Claude Code)'\n"
	if err := os.WriteFile(old, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(claude.EnvCLI, old)
	code, stdout, stderr := drover(t.Context(), t, nil, "run", "--model-script", "../../examples/run/tour.yaml", "Look around")
	if code != exitError || stdout != "" {
		t.Errorf("exit code %d, stdout %q; want 1 and nothing", code, stdout)
	}
	for _, words := range []string{"version 2.1.100 at " + old + " is older than 2.1.197", "\n  next: unset DROVER_CLAUDE && npm install"} {
		if !strings.Contains(stderr, words) {
			t.Errorf("stderr %q lacks %q", stderr, words)
		}
	}
}
