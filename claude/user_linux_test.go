// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"os"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/internal/testkit"
)

func TestOrdinaryUser_RerunsTests(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^(TestQuery_Yields|TestQuery_BreakingOut|TestInterrupt_Ends)")
}

// Options.User starts the CLI, and so all its tools, as another user.
func TestOptionUser_StartsTheCLIAsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user: run the tests as root")
	}
	cli := claudetest.CLI(t)
	if err := os.Chmod(os.TempDir(), 0o711); err != nil { // the one that claudetest.Main made
		t.Fatal(err)
	}
	for _, dir := range []string{cli.Root, cli.Home, cli.Config, cli.Temp, cli.Work} {
		if err := os.Chown(dir, testkit.Nobody, testkit.Nobody); err != nil {
			t.Fatal(err)
		}
	}
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "id -u"}), script.Text("ok"))
	opts := cli.Options(model)
	opts.CLIPath = testkit.PutProgram(t, cli.Path, testkit.SharedFolder(t))
	opts.User = "nobody"
	opts.PermissionMode = claude.ModeBypassPermissions
	if _, _, err := collect(claude.Query(t.Context(), "who?", opts)); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := model.ToolResult("Bash"); got != "65534" {
		t.Errorf("the CLI's shell runs as %q, want 65534", got)
	}
}
