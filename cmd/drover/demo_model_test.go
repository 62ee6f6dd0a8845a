// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
)

func TestTheDemoTakesTheModelThatTheEnvironmentHas(t *testing.T) {
	for name, c := range map[string]struct {
		environ  map[string]string
		scripted bool
		want     string // of what it says
		mode     isolation.Mode
	}{
		"nothing":               {want: "scripted, no key needed; "},
		"a key":                 {environ: map[string]string{"ANTHROPIC_API_KEY": "planted"}, want: "Anthropic, by ANTHROPIC_API_KEY; DROVER_DEMO=script", mode: claudecell.ModeAPIKey},
		"a key and the flag":    {environ: map[string]string{"ANTHROPIC_API_KEY": "planted"}, scripted: true, want: "scripted, as asked"},
		"a key and the word":    {environ: map[string]string{"ANTHROPIC_API_KEY": "planted", envDemo: "script"}, want: "scripted, as asked"},
		"Bedrock":               {environ: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-west-1"}, want: "Bedrock in eu-west-1, by CLAUDE_CODE_USE_BEDROCK;", mode: claudecell.ModeBedrock},
		"Bedrock nowhere":       {environ: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1"}, want: "scripted, since CLAUDE_CODE_USE_BEDROCK is on, and no region is set"},
		"a service unsupported": {environ: map[string]string{"CLAUDE_CODE_USE_VERTEX": "1"}, want: "scripted, since CLAUDE_CODE_USE_VERTEX is on"},
	} {
		t.Run(name, func(t *testing.T) {
			bareEnvironment(t)
			t.Setenv("AWS_REGION", "")
			t.Setenv("AWS_DEFAULT_REGION", "")
			for name, value := range c.environ {
				t.Setenv(name, value)
			}
			m, err := chooseDemoModel(c.scripted, project{work: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.close() }()
			if !strings.HasPrefix(m.says, c.want) || m.auth.Only != c.mode || (m.upstream == nil) != (c.mode != "") {
				t.Errorf("it is %q, paid by %q; want %q, by %q", m.says, m.auth.Only, c.want, c.mode)
			}
		})
	}
}

// A key that the settings of a claude hold, and a login that it keeps, are not for a demo.
func TestTheDemoLeavesSettingsAndLoginsAlone(t *testing.T) {
	for name, variable := range map[string]string{"at home": "HOME", "elsewhere": "CLAUDE_CONFIG_DIR"} {
		t.Run(name, func(t *testing.T) {
			bareEnvironment(t)
			home := t.TempDir()
			t.Setenv(variable, home)
			dir := home
			if variable == "HOME" {
				dir = filepath.Join(home, ".claude")
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, "settings.json"), []byte(`{"env":{"ANTHROPIC_API_KEY":"planted"},"apiKeyHelper":"echo planted"}`))
			m, err := chooseDemoModel(false, project{work: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.close() }()
			if m.upstream == nil {
				t.Errorf("it is %q, want the script", m.says)
			}
		})
	}
}

// Nor do the settings say where the key of the environment is sent to.
func TestTheDemoSendsAKeyWhereItSays(t *testing.T) {
	bareEnvironment(t)
	t.Setenv("ANTHROPIC_API_KEY", "planted-key")
	dir := filepath.Join(os.Getenv("HOME"), ".claude")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "settings.json"), []byte(`{"env":{"ANTHROPIC_BASE_URL":"http://localhost:1"}}`))
	d := &demo{project: project{work: t.TempDir()}}
	var err error
	if d.model, err = chooseDemoModel(false, d.project); err != nil {
		t.Fatal(err)
	}
	found, err := claudecell.Authenticate(d.walls())
	if err != nil || found.Name != "ANTHROPIC_API_KEY" || found.BaseURL != "" {
		t.Errorf("it pays with %+v (%v), want the key of the environment, at Anthropic", found, err)
	}
}

func TestAnUnknownModelOfTheDemoIsAMistake(t *testing.T) {
	bareEnvironment(t)
	t.Setenv(envDemo, "opus")
	code, _, stderr := drover(t.Context(), t, nil, "demo")
	if code != exitUsage || !strings.Contains(stderr, `DROVER_DEMO is "opus"`+"\n  next: set it to script") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

// The model is asked with the key of the environment, and a review that it gives at once is shown.
func TestTheDemoAsksARealModel(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Structured(script.Input{
		"summary": "All is well.", "files": []string{"shop/cart.go", "api.go"}, "issues": []script.Input{},
	})).RequireAllUsed()
	bareEnvironment(t)
	t.Setenv(claude.EnvCLI, cli.Path)
	t.Setenv("ANTHROPIC_API_KEY", "planted-key")
	t.Setenv("ANTHROPIC_BASE_URL", model.BaseURL())
	code, stdout, stderr := drover(t.Context(), t, nil, "demo")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
	if got := model.LastRequest().Header.Get("X-Api-Key"); got != "planted-key" {
		t.Errorf("the model was asked with %q", got)
	}
	for _, want := range []string{"model     Anthropic, by ANTHROPIC_API_KEY", "Summary  All is well.", "in 1 model call\n", "1 demo:review"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
}

func TestAReviewThatLeavesOutAFileIsSentBack(t *testing.T) {
	p, err := unpackProject(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ output, want string }{
		"all":         {`{"files":["cart.go","shop/api.go"]}`, ""},
		"one is left": {`{"files":["cart.go"]}`, "api.go was not reviewed"},
		"no answer":   {"", "There is no review yet"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.check().Check(t.Context(), guard.Attempt{Output: []byte(c.output)})
			if err != nil || got.Done != (c.want == "") || !strings.HasPrefix(got.Feedback, c.want) {
				t.Errorf("got %+v, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestTheDemoNeedsAFolderForItsRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, nil)
	t.Setenv("XDG_STATE_HOME", file)
	if _, err := newRecord(); err == nil || !strings.Contains(err.Error(), "\n  next: set XDG_STATE_HOME") {
		t.Errorf("got %v, want what to do", err)
	}
}
