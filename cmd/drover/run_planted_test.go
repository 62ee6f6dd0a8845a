// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
)

// An agent that leaves a CLI where a project's own is looked for gains nothing: it is neither started nor
// asked for its version, at any level, and another one is used if there is one.
func TestRun_PlantedCLIIsNotStarted(t *testing.T) {
	p := newProgram(t, unusedEndpoint(t)).setEnv(map[string]string{claude.EnvCLI: ""})
	ran := filepath.Join(p.cli.Root, "ran")
	planted := p.cli.WriteFile(t, ".drover/bin/claude", "#!/bin/sh\ntouch "+ran+"\necho '"+claude.PinnedVersion+" (Claude Code)'\n")
	if err := os.Chmod(planted, 0o755); err != nil {
		t.Fatal(err)
	}
	script := p.cli.WriteFile(t, "model.yaml", "version: 1\nturns:\n  - text: Hello.\n")
	for _, args := range [][]string{
		{"run", "--model-script", script, "hi"},
		{"run", "--isolation", "host", "--model-script", script, "hi"},
		{"doctor", "--offline"},
	} {
		got := p.run(args...)
		if output := got.out + got.errors; got.code == 0 || !strings.Contains(output, "agents could replace") {
			t.Errorf("%v: exit code %d, want a refusal:\n%s", args, got.code, output)
		}
	}
	bin := filepath.Join(p.cli.Root, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.cli.Path, filepath.Join(bin, "claude")); err != nil {
		t.Fatal(err)
	}
	p.setEnv(map[string]string{"PATH": bin + ":" + p.env["PATH"]})
	if got := p.run("run", "--quiet", "--model-script", script, "hi"); got.code != 0 || strings.TrimSpace(got.out) != "Hello." {
		t.Errorf("with a CLI on PATH: exit code %d, %q:\n%s", got.code, got.out, got.errors)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the CLI that an agent left was run")
	}
}
