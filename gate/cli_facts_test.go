// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// What the caller knows of the run decides about calls of the real CLI: limits first, then what has
// happened before, and rules for paths and commands. Only the gate would deny any of these.
func TestCLI_FactsAndRulesDecideAboutItsTools(t *testing.T) {
	cli := claudetest.CLI(t)
	notes := cli.WriteFile(t, "notes.txt", "one\n")
	inside := func(name string) string { return filepath.Join(cli.Work, name) }
	now := time.Now()
	target := gate.Target{Path: notes}
	for _, dir := range []string{"src", "etc"} {
		cli.WriteFile(t, dir+"/.keep", "")
	}
	cases := []struct {
		id, tool string
		input    script.Input
		facts    gate.Facts
		want     string // what the model reads; empty for a call that runs
	}{
		{"late", "Bash", script.Input{"command": "echo late"}, gate.Facts{Deadline: now}, "Deadline exceeded"},
		{"poor", "Bash", script.Input{"command": "echo poor"}, gate.Facts{Remaining: gate.Remaining{Tokens: new(int64(0))}}, "Token budget exhausted"},
		{"late-and-poor", "Bash", script.Input{"command": "echo both"}, gate.Facts{Deadline: now, Remaining: gate.Remaining{Tokens: new(int64(0))}}, "Deadline exceeded"},
		{"broke", "Bash", script.Input{"command": "echo broke"}, gate.Facts{Remaining: gate.Remaining{CostUSD: new(0.0)}}, "Cost budget exhausted"},
		{"blocked", "Bash", script.Input{"command": "echo blocked"}, gate.Facts{Blocked: map[string]bool{"Bash": true}}, "Tool Bash blocked by session policy"},
		{"too-early", "Bash", script.Input{"command": "echo early"}, gate.Facts{}, "Tool Bash needs these tools to succeed first: Read"},
		{"unread", "Write", script.Input{"file_path": notes, "content": "two\n"}, gate.Facts{Target: target}, "notes.txt has not been read"},
		{"outside", "Write", script.Input{"file_path": inside("etc/x"), "content": "x"}, gate.Facts{Target: gate.Target{Missing: true}}, "Write is allowed only as"},
		{"other-command", "Bash", script.Input{"command": "echo fine; touch hidden"}, gate.Facts{Invoked: map[string]bool{"Read": true}}, "Bash is allowed only as"},
		{"new-file", "Write", script.Input{"file_path": inside("src/new.txt"), "content": "x"}, gate.Facts{Target: gate.Target{Missing: true}}, ""},
		{"command", "Bash", script.Input{"command": "echo fine"}, gate.Facts{Deadline: now.Add(time.Hour), Invoked: map[string]bool{"Read": true}}, ""},
	}
	facts := map[string]gate.Facts{}
	var turns []script.Turn
	for _, c := range cases {
		c.facts.Now, c.facts.Dir = now, cli.Work
		facts[c.id] = c.facts
		turns = append(turns, script.Reply(script.ToolCall{ID: c.id, Name: c.tool, Input: c.input}))
	}
	model := claudetest.NewModel(t, append(turns, script.Text("Done."))...)
	opts := cli.Options(model)
	bind(t, gate.NewEngine(gate.ForClaude(
		gate.Limits(gate.LimitOptions{}), gate.Blocked(), gate.RequireBefore(map[string][]string{"Bash": {"Read"}}),
		gate.ReadBeforeWrite(gate.ReadBeforeWriteOptions{}),
		gate.Rules(gate.RuleOptions{Root: cli.Work, Allow: []string{"Write(/src/**)", "Write(/notes.txt)", "Bash(echo:*)"}}),
		gate.Default(event.Allow),
	), &gate.EngineOptions{Facts: func(_ context.Context, c gate.Call) gate.Facts { return facts[string(c.ID)] }}), opts)
	turn(t, claudetest.Connect(t, opts), "go")
	for _, c := range cases {
		text, failed, ok := model.LastRequest().ToolResult(c.id)
		if !ok || failed != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: the model read %q (failed %v), want %q", c.id, text, failed, c.want)
		}
	}
	if exists(cli, "hidden") || exists(cli, "etc/x") || !exists(cli, "src/new.txt") {
		t.Error("what was denied was done, or what was allowed was not")
	}
}
