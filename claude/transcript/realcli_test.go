// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// runCLI makes one turn with the CLI that DROVER_CLAUDE names, in an environment built from
// nothing, and returns its standard output.
func runCLI(t *testing.T, m *tinyModel, cwd, configDir string, args ...string) []byte {
	t.Helper()
	cli := os.Getenv("DROVER_CLAUDE")
	if cli == "" {
		t.Skip("DROVER_CLAUDE is not set: no real CLI to test with")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{"-p", "--output-format=stream-json", "--verbose", "--setting-sources=",
		"--strict-mcp-config", "--model=claude-sonnet-4-5", "--session-mirror"}, args...)
	cmd := exec.CommandContext(ctx, cli, args...)
	cmd.Dir = cwd
	home := t.TempDir()
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CLAUDE_CONFIG_DIR=" + configDir,
		"TMPDIR=" + home, "CLAUDE_CODE_TMPDIR=" + home, "ANTHROPIC_BASE_URL=" + m.URL,
		"ANTHROPIC_API_KEY=not-a-key", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("claude %v in %s: %v\nstdout: %.2000s\nstderr: %.2000s", args, filepath.Base(cwd), err, out, stderr.Bytes())
	}
	return out
}
