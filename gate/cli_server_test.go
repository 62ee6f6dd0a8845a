// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// savingServer has one tool, and counts its runs under the name of the server.
func savingServer(t testing.TB, name, saves string, ran *tally) claude.MCPServer {
	t.Helper()
	server, err := claude.NewToolServer(name, "1", nil, claude.MustTool(saves, "Saves.", func(context.Context, struct{}) (claude.ToolResult, error) {
		ran.add(name)
		return claude.TextResult("saved"), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return server.Server()
}

// A server whose name begins with that of one that is allowed: "mcp__notes__more__save" can be the tool
// more__save of the one or the tool save of the other.
func TestCLI_ServerWithOurNameAsPrefixHasNoneOfItsRights(t *testing.T) {
	for _, tt := range []struct {
		name string
		gate func(*tool.Registry) *gate.Gate
	}{
		{"all tools of ours are allowed", func(*tool.Registry) *gate.Gate { return gate.ForClaude(gate.AllowTools("mcp__notes")) }},
		{"ours has a tool of that name", func(r *tool.Registry) *gate.Gate {
			return gate.ForClaude(gate.FromRisk(gate.RiskOptions{Registry: r, Server: "notes", ReadOnly: true}))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t, script.Reply(script.ToolCall{ID: "toolu_1", Name: "mcp__notes__more__save"}), script.Text("Done."))
			ran := newTally()
			registry := tool.MustRegistry(nil, counting("more__save", ran, tool.ReadOnly))
			opts := cli.Options(model)
			opts.PermissionMode = claude.ModeBypassPermissions
			opts.MCPServers = map[string]claude.MCPServer{"notes": savingServer(t, "notes", "look", ran)}
			bind(t, gate.NewEngine(tt.gate(registry), nil), opts)
			opts.MCPServers["notes__more"] = savingServer(t, "notes__more", "save", ran) // as settings could
			turn(t, claudetest.Connect(t, opts), "save it")
			if text, failed, _ := model.ToolResult("toolu_1"); !failed || ran.of("notes__more") != 0 {
				t.Errorf("the model saw %q (failed: %t); the other server was called %d times", text, failed, ran.of("notes__more"))
			}
		})
	}
}
