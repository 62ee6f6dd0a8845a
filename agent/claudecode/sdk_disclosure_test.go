// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/tool"
)

// opens is a tool whose handler adds another one to the registry that it is called from.
func opens(r **tool.Registry, name, added string) *tool.Tool {
	return tool.Must(name, "opens "+added, func(context.Context, tool.None) (string, error) {
		return name + " ran", (*r).Add(named(added))
	}, tool.ReadOnly)
}

// Handlers that change their own registry, two at once, give the model the tools in its next request.
func TestDisclosure_ToolAddedToARegistryIsInTheNextRequest(t *testing.T) {
	cli := claudetest.CLI(t)
	var r *tool.Registry
	r = tool.MustRegistry(nil, opens(&r, "one", "first"), opens(&r, "left", "second"), opens(&r, "right", "third"))
	server, err := claudecode.NewSDKServer(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	rounds := [][]string{{"one"}, {"first"}, {"left", "right"}, {"second", "third"}}
	var turns []script.Turn
	for _, names := range rounds {
		var calls []script.Block
		for _, name := range names {
			calls = append(calls, script.ToolCall{Name: "mcp__s__" + name})
		}
		turns = append(turns, script.Reply(calls...))
	}
	model := claudetest.NewModel(t, append(turns, script.Text("Done."))...).RequireAllUsed()
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	opts.MCPServers = map[string]claude.MCPServer{"s": server.Server()}
	opts.PermissionMode = claude.ModeBypassPermissions
	for _, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			t.Fatal(err)
		}
	}
	requests := model.Requests()
	for i, names := range rounds {
		for _, name := range names {
			if _, ok := requests[i].Tool("mcp__s__" + name); !ok {
				t.Errorf("request %d does not have %s", i+1, name)
			}
			if text, failed, _ := requests[i+1].ToolResult("mcp__s__" + name); failed {
				t.Errorf("the call of %s gave %q", name, text)
			}
		}
	}
}
