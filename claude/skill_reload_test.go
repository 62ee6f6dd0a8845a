// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// A handler that writes a skill and has the skills reloaded gives it to the model in the same turn.
func TestReloadSkills_SkillAddedByAHandlerIsInTheNextRequest(t *testing.T) {
	const announced, body = "what folding is for", "FOLD THE PAPER TWICE"
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("mcp__tools__learn", nil), script.Call("Skill", script.Input{"skill": "folding"}), script.Text("Done.")).RequireAllUsed()
	var c *claude.Client
	learn := claude.MustTool("learn", "", func(ctx context.Context, _ struct{}) (claude.ToolResult, error) {
		dir := filepath.Join(cli.Config, "skills", "folding")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return claude.ToolResult{}, err
		}
		text := "---\nname: folding\ndescription: " + announced + "\n---\n" + body + "\n"
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o600); err != nil {
			return claude.ToolResult{}, err
		}
		skills, err := c.ReloadSkills(ctx)
		if !slices.ContainsFunc(skills, func(s claude.SlashCommand) bool { return s.Name == "folding" }) {
			t.Errorf("the skills after the reload are %+v, %v", skills, err)
		}
		return claude.TextResult("learnt"), err
	})
	opts := withTools(cli.Options(model), map[string]claude.MCPServer{"tools": toolServer(t, learn).Server()})
	opts.Tools, opts.SettingSources = []string{"Skill"}, []string{"user"}
	opts.AllowedTools = append(opts.AllowedTools, "Skill")
	c = claudetest.Connect(t, withoutToolSearch(cli, opts, model))
	turn(t, c, "go")
	requests := model.Requests()
	if requests[0].SawText("folding") || !requests[1].SawText(announced) {
		t.Errorf("announced before: %t, in the next request: %t; want it after the reload only", requests[0].SawText("folding"), requests[1].SawText(announced))
	}
	if text, failed, _ := requests[2].ToolResult("Skill"); failed || !requests[2].SawText(body) {
		t.Errorf("the skill gave %q (failed: %t), and its text was read: %t", text, failed, requests[2].SawText(body))
	}
}
