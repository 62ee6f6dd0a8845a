// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// unusedEndpoint is an endpoint that must get no request.
func unusedEndpoint(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the endpoint of the environment was asked")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A scripted model needs no key, and takes nothing from the environment of the caller.
func TestModelScript_NeedsNoKey(t *testing.T) {
	for name, vars := range map[string]map[string]string{
		"with nothing":        {"ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_KEY": ""},
		"with a caller's key": {"ANTHROPIC_AUTH_TOKEN": "fake-token-of-a-caller", "SOMETHING_ELSE": "fake-secret-of-a-caller"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t, unusedEndpoint(t)).setEnv(vars)
			path := p.cli.WriteFile(t, "model.yaml", `
version: 1
turns:
  - content:
      - tool: Bash
        input: {command: env, description: look around}
  - text: A caller's secret is here.
    when: {text: of-a-caller}
  - text: The key of the model is here.
    when: {text: sk-ant-script-opens-nothing}
  - text: All is well.
    when: {text: CLAUDE_CONFIG_DIR}
`)
			got := p.run("run", "--allow", "shellExecute", "--quiet", "--model-script", path, "How is it?")
			if got.code != 0 || got.out != "All is well.\n" || got.errors != "" {
				t.Errorf("got %+v, want the answer of the script", got)
			}
			if left, _ := filepath.Glob(filepath.Join(p.cli.Config, "*")); len(left) > 0 {
				t.Errorf("the run used the configuration of the caller: %v", left)
			}
		})
	}
}

func TestModelScript_ConversationIsNotStored(t *testing.T) {
	p := newProgram(t, unusedEndpoint(t))
	path := p.cli.WriteFile(t, "model.yaml", "version: 1\nturns:\n  - text: Fine.\n")
	got := p.run("run", "--json", "--model-script", path, "How is it?")
	if got.code != 0 || strings.Contains(got.out, "resumeToken") {
		t.Errorf("got %+v, want no token that cannot be used", got)
	}
}

func TestModelScript_InvalidFileIsAUsageError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.yaml")
	if err := os.WriteFile(path, []byte("version: 1\nturns:\n  - txet: Fine.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, words string }{
		"unknown key": {path, "model.yaml:3:5"},
		"missing":     {filepath.Join(dir, "none.yaml"), "none.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := drover(t.Context(), t, nil, "run", "--model-script", c.path, "Do it.")
			if code != exitUsage || stdout != "" || !strings.Contains(stderr, "drover: --model-script: ") || !strings.Contains(stderr, c.words) || !strings.Contains(stderr, "\n  next: ") {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

// A script that is too short fails the run, and the error says what was missing.
func TestModelScript_TooShortFailsTheRun(t *testing.T) {
	p := newProgram(t, unusedEndpoint(t))
	path := p.cli.WriteFile(t, "model.yaml", "version: 1\nturns: []\n")
	got := p.run("run", "--model-script", path, "How is it?")
	if got.code != exitError || !strings.Contains(got.errors, "all 0 turns of the script are used\n  next: add a turn") {
		t.Errorf("got %+v, want an error about the script", got)
	}
}

// A run whose isolation level is not available does not begin, and reports the fix.
func TestRun_UnavailableIsolationIsRefused(t *testing.T) {
	cli := claudetest.CLI(t)
	t.Setenv(claude.EnvCLI, cli.Path)
	t.Setenv("ANTHROPIC_API_KEY", claudetest.FakeKey)
	t.Chdir(cli.Work)
	t.Setenv("PATH", t.TempDir())
	code, stdout, stderr := drover(t.Context(), t, nil, "run", "Do it.")
	if code != exitError || stdout != "" {
		t.Errorf("exit code %d, stdout %q; want 1 and nothing", code, stdout)
	}
	for _, words := range []string{"level cell is not available", "bwrap", "\n  next: ", "drover run --isolation "} {
		if !strings.Contains(stderr, words) {
			t.Errorf("stderr %q lacks %q", stderr, words)
		}
	}
	if strings.Contains(stderr, "Isolation.") {
		t.Errorf("stderr %q has advice for programs", stderr)
	}
}

// An endpoint that is not there ends the run with an error, and so does a CLI that is not there.
func TestRun_MissingEndpointOrCLIIsAnError(t *testing.T) {
	t.Setenv("DROVER_CLAUDE", "/nowhere/claude")
	code, stdout, stderr := drover(t.Context(), t, nil, "run", "--json", "Do it.")
	if code != exitError || stdout != "" {
		t.Errorf("exit code %d, stdout %q; want 1 and nothing", code, stdout)
	}
	for part, words := range map[string]string{"what": "CLI not found", "where": "/nowhere/claude", "next": "\n  next: "} {
		if !strings.Contains(stderr, words) {
			t.Errorf("%s: %q is not in %q", part, words, stderr)
		}
	}
}
