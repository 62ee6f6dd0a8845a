// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// newBot makes an agent that reads everything, writes below docs, and does nothing else.
func newBot(base *claude.Options) (*agent.Runner, error) {
	return agent.NewRunner(claudecode.New(base), &agent.RunnerOptions{
		Defaults: agent.Request{
			Settings: agent.Settings{
				Tools: []string{"Read", "Write", "Edit"},
				Permissions: &gate.Permissions{
					FileWrite:     gate.LevelAllow,
					ShellExecute:  gate.LevelDeny,
					NetworkAccess: gate.LevelDeny,
					WritablePaths: []string{"docs"},
				},
			},
		},
	})
}

// The options of nil are those of the claude command: its login, its environment, the current folder.
func Example_bot() {
	bot, err := newBot(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	done, err := agent.Wait(bot.Run(context.Background(), agent.Request{Prompt: "Bring the pages up to date."}))
	fmt.Println(done.Status, done.Result, err)
}

func TestBotExample_WritesOnlyBelowDocs(t *testing.T) {
	cli := claudetest.CLI(t)
	other, err := claude.NewTool("act", "Acts.", func(context.Context, struct{}) (claude.ToolResult, error) {
		return claude.TextResult("acted"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := claude.NewToolServer("other", "1.0.0", nil, other)
	if err != nil {
		t.Fatal(err)
	}
	base := cli.Options(claudetest.NewModel(t,
		script.Reply(
			write(cli, filepath.Join("docs", "page.md")),
			write(cli, "main.go"),
			bash("touch by-command"),
			script.ToolCall{Name: "mcp__other__act"},
		),
		script.Text("Done."),
	))
	base.MCPServers = map[string]claude.MCPServer{"other": server.Server()}
	bot, err := newBot(base)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range bot.Run(t.Context(), agent.Request{Prompt: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := e.Payload.(event.ToolResult); ok {
			got = append(got, fmt.Sprint(r.Name, " ", r.Status))
		}
	}
	// The agent has neither Bash nor the servers of base: the list of tools names neither.
	want := []string{"Write success", "Write denied", "Bash error", "mcp__other__act error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
