// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// What a command of the CLI really has in its environment is what counts.
func TestNothingOfTheHostButPathReachesTheCLI(t *testing.T) {
	for i, name := range []string{"DROVER_PLANTED", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
		"GITHUB_TOKEN", "XDG_CONFIG_HOME", "LANG", "USER"} {
		t.Setenv(name, fmt.Sprintf("planted-%d", i))
	}
	t.Setenv("HOME", filepath.Join(t.TempDir(), "planted-home"))
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "env"}), script.Text("Seen."))
	opts := cli.Options(model)
	opts.Tools = []string{"Bash"}
	opts.PermissionMode = claude.ModeBypassPermissions
	for _, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			t.Fatal(err)
		}
	}
	text, failed, _ := model.ToolResult("Bash")
	if failed || strings.Contains(text, "planted") {
		t.Errorf("the command saw (failed: %t)\n%s\nwant nothing that was planted", failed, text)
	}
	for name, want := range map[string]string{"PATH": os.Getenv("PATH"), "HOME": cli.Home, "CLAUDE_CONFIG_DIR": cli.Config} {
		if !strings.Contains("\n"+text+"\n", "\n"+name+"="+want+"\n") {
			t.Errorf("%s=%s is not in the environment\n%s", name, want, text)
		}
	}
}

func TestOldestCLI(t *testing.T) {
	cli := claudetest.OldestCLI(t)
	model := claudetest.NewModel(t, script.Text("Still alive."))
	var version, answer string
	for m, err := range claude.Query(t.Context(), "go", cli.Options(model)) {
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *claude.SystemInit:
			version = m.ClaudeCodeVersion
		case *claude.ResultMessage:
			answer = m.Result
		}
	}
	if version != claude.OldestTested || cli.Version != version || answer != "Still alive." {
		t.Errorf("version %q (said to be %q) answered %q, want %s and the script's words", version, cli.Version, answer, claude.OldestTested)
	}
}

// The leaks of tests that run side by side could not be told apart.
func TestParallelTestsAreRefused(t *testing.T) {
	t.Run("group", func(t *testing.T) {
		t.Run("parallel before", func(t *testing.T) {
			t.Parallel()
			defer wantPanic(t, "t.Parallel")
			claudetest.CLI(t)
		})
	})
	t.Run("parallel after", func(t *testing.T) {
		claudetest.CLI(t)
		defer wantPanic(t, "t.Parallel")
		t.Parallel()
	})
}

func wantPanic(t *testing.T, words string) {
	if got := fmt.Sprint(recover()); !strings.Contains(got, words) {
		t.Errorf("panic %q, want one that speaks of %s", got, words)
	}
}

func TestWriteFile(t *testing.T) {
	cli := claudetest.CLI(t)
	path := cli.WriteFile(t, "a/b.txt", "text")
	got, err := os.ReadFile(filepath.Join(cli.Work, "a", "b.txt"))
	if err != nil || string(got) != "text" || path != filepath.Join(cli.Work, "a", "b.txt") {
		t.Errorf("wrote %s with %q (%v)", path, got, err)
	}
}
