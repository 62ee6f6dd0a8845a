// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// What a command of the CLI really has in its environment is what counts. The command prints names
// and never values, so that a failure of this test puts no secret of the host into a log.
func TestCLI_ReceivesOnlyPathFromTheHost(t *testing.T) {
	planted := []string{
		"DROVER_PLANTED", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
		"GITHUB_TOKEN", "XDG_CONFIG_HOME", "LANG", "USER",
	}
	for _, name := range planted {
		t.Setenv(name, "planted")
	}
	t.Setenv("HOME", filepath.Join(t.TempDir(), "planted-home"))
	cli := claudetest.CLI(t)
	command := `env | cut -d= -f1 | sed 's/^/has /'; echo "planted $(env | grep -c planted)"; echo "home $HOME"; echo "config $CLAUDE_CONFIG_DIR"`
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": command}), script.Text("Seen."))
	opts := cli.Options(model)
	opts.Tools = []string{"Bash"}
	opts.PermissionMode = claude.ModeBypassPermissions
	if _, err := ask(t, opts); err != nil {
		t.Fatal(err)
	}
	text, _, _ := model.ToolResult("Bash")
	lines := strings.Split(text, "\n")
	for _, want := range []string{"has PATH", "planted 0", "home " + cli.Home, "config " + cli.Config} {
		if !slices.Contains(lines, want) {
			t.Errorf("the command did not print %q", want)
		}
	}
	for _, name := range planted {
		if slices.Contains(lines, "has "+name) {
			t.Errorf("%s of the host reached the command", name)
		}
	}
}

func TestOldestCLI_AnswersAPrompt(t *testing.T) {
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
		t.Errorf("version %q (reported as %q) answered %q, want %s and the script's words", version, cli.Version, answer, claude.OldestTested)
	}
}

// TestHelper_NamedCLI prints which CLI it got, in a test binary of its own.
func TestHelper_NamedCLI(t *testing.T) {
	if os.Getenv(namedVariable) != "" {
		fmt.Println("got", claudetest.CLI(t).Path)
	}
}

const namedVariable = "DROVER_TEST_NAMED"

// A CLI that is named needs no module to install one in, and no npm.
func TestCLI_NamedPathNeedsNoInstallation(t *testing.T) {
	for name, want := range map[string]string{
		"DROVER_CLAUDE=/opt/claude": "got /opt/claude\n",
		"DROVER_CLAUDE=":            "next: run the tests inside a module, or set DROVER_CLAUDE to a CLI",
	} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^TestHelper_NamedCLI$")
		cmd.Dir = t.TempDir() // outside of any module
		cmd.Env = []string{name, namedVariable + "=1", "TMPDIR=" + t.TempDir(), "DROVER_SLOTS=" + t.TempDir()}
		out, _ := cmd.CombinedOutput() // the second one fails, as it should
		if !strings.Contains(string(out), want) {
			t.Errorf("with %s it printed\n%s\nwant %q", name, out, want)
		}
	}
}

// The leaks of parallel tests cannot be distinguished.
func TestCLI_ParallelTestsAreRefused(t *testing.T) {
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

func TestRealCLI_WriteFile(t *testing.T) {
	cli := claudetest.CLI(t)
	path := cli.WriteFile(t, "a/b.txt", "text")
	got, err := os.ReadFile(filepath.Join(cli.Work, "a", "b.txt"))
	if err != nil || string(got) != "text" || path != filepath.Join(cli.Work, "a", "b.txt") {
		t.Errorf("wrote %s with %q (%v)", path, got, err)
	}
}
