// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestCLIVersion_ReadsTheOutput(t *testing.T) {
	dir := t.TempDir()
	script := func(name, body string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, "#!/bin/sh\n"+body, 0o755)
		return path
	}
	good := script("good", `[ "$1" = --version ] && [ -z "$HOME" ] && echo "2.1.325 (Claude Code)"`)
	if got, err := CLIVersion(t.Context(), good, nil); got != "2.1.325" || err != nil {
		t.Errorf("version: got %q, %v, want 2.1.325", got, err)
	}
	for name, body := range map[string]string{
		"silent": "exit 0", "failing": "echo 2.1.0; exit 1", "other": "echo GNU cat 9",
	} {
		_, err := CLIVersion(t.Context(), script(name, body), nil)
		var launch *LaunchError
		if !errors.As(err, &launch) || !strings.Contains(launch.Hint, installCommand) {
			t.Errorf("%s: got %v, want a LaunchError with the install command", name, err)
		}
	}
	// The run that hangs reports through a pipe that it has begun; then it is canceled.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	stuck := script("stuck", "echo begun > "+fifo+"; exec /bin/sleep 3600")
	go func() {
		_, _ = os.ReadFile(fifo)
		cancel()
	}()
	if _, err := CLIVersion(ctx, stuck, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v, want context.Canceled", err)
	}
}
