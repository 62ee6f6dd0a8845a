// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

// Each of many CLIs, in cells of their own at once, writes its file, pays for its own calls, and sees no
// workspace but its own.
func TestSoak_ManyCLIsInCellsAtOnce(t *testing.T) {
	requireCell(t)
	cli, n := claudetest.CLI(t), testkit.Size(2, 50)
	models, dirs := make([]*claudetest.Model, n), make([]string, n)
	for k := range n {
		dirs[k] = filepath.Join(cli.Root, fmt.Sprintf("work-%d", k))
		if err := os.Mkdir(dirs[k], 0o700); err != nil {
			t.Fatal(err)
		}
		models[k] = claudetest.NewModel(t,
			script.Reply(script.ToolCall{ID: "look", Name: "Bash", Input: script.Input{
				"command": fmt.Sprintf("echo %d > mine; ls -d %s/work-*", k, cli.Root),
			}}),
			script.Text("done"))
	}
	err := each(n, func(k int) error { return turnInCell(t, cli, models[k], dirs[k]) })
	if err != nil {
		t.Fatal(err)
	}
	for k, dir := range dirs {
		content, err := os.ReadFile(filepath.Join(dir, "mine"))
		if diff := cmp.Diff(fmt.Sprintln(k), string(content)); err != nil || diff != "" {
			t.Errorf("the file of cell %d: %v\n%s", k, err, diff)
		}
		if got, _, _ := models[k].ToolResult("look"); got != dir {
			t.Errorf("workspaces that cell %d sees: got %q, want %q", k, got, dir)
		}
	}
}

// turnInCell runs the CLI once, in a cell, and expects that two calls were paid for.
func turnInCell(t *testing.T, cli *claudetest.RealCLI, model *claudetest.Model, dir string) error {
	o := cli.Options(model)
	o.Dir, o.PermissionMode = dir, claude.ModeBypassPermissions
	cell, err := claudecell.Open(t.Context(), &isolation.Isolation{TempDir: cli.Temp}, o, isolation.OpenOptions{})
	if err != nil {
		return err
	}
	if err := ask(t.Context(), o); err != nil {
		_ = cell.Close()
		return fmt.Errorf("%s: %w", dir, err)
	}
	if got := cell.Usage().Total.Requests; got != 2 {
		t.Errorf("%s: got %d calls on the bill, want 2", dir, got)
	}
	return cell.Close()
}
