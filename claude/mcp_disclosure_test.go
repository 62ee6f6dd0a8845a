// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// withoutToolSearch shows the model every tool as it is.
func withoutToolSearch(cli *claudetest.RealCLI, opts *claude.Options, model *claudetest.Model) *claude.Options {
	cli.SetEnv(opts, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	return opts
}

// A stair is a server whose tools add one tool each: step0 adds step1, left adds left-child.
func stair(t testing.TB) *claude.ToolServer {
	var server *claude.ToolServer
	opens := func(name string, next func() claude.Tool) claude.Tool {
		tool := claude.MustTool(name, "", func(context.Context, struct{}) (claude.ToolResult, error) {
			return claude.TextResult(name + " ran"), server.Add(next())
		})
		tool.Annotations.ReadOnly = true // so that the CLI runs two calls at once
		return tool
	}
	var step func(i int) claude.Tool
	step = func(i int) claude.Tool {
		return opens(fmt.Sprintf("step%d", i), func() claude.Tool { return step(i + 1) })
	}
	leaf := func(name string) func() claude.Tool {
		return func() claude.Tool { return fixedTool(name, claude.TextResult(name+" ran")) }
	}
	server = toolServer(t, step(0), opens("left", leaf("left-child")), opens("right", leaf("right-child")))
	return server
}

// Each call adds the tool that the model calls in its very next request. Two calls do so at once.
func TestToolServer_ToolAddedByAHandlerIsInTheNextRequest(t *testing.T) {
	const steps = 8
	calls := func(names ...string) script.Turn { return mcpCallsOf("tools", names...) }
	var want [][]string // tools that the model calls in each of its answers
	for i := range steps {
		want = append(want, []string{fmt.Sprintf("step%d", i)})
	}
	want = append(want, []string{"left", "right"}, []string{"left-child", "right-child"})
	var turns []script.Turn
	for _, names := range want {
		turns = append(turns, calls(names...))
	}
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, append(turns, script.Text("Done."))...).RequireAllUsed()
	opts := withTools(cli.Options(model), map[string]claude.MCPServer{"tools": stair(t).Server()})
	turn(t, claudetest.Connect(t, withoutToolSearch(cli, opts, model)), "go")
	requests := model.Requests()
	for i, names := range want {
		for _, name := range names {
			name = "mcp__tools__" + name
			if _, ok := requests[i].Tool(name); !ok {
				t.Errorf("request %d does not have %s, which was added before it: %v", i+1, name, requests[i].ToolNames())
			}
			if text, failed, _ := requests[i+1].ToolResult(name); failed {
				t.Errorf("the call of %s gave %q", name, text)
			}
		}
	}
}

func mcpCallsOf(server string, tools ...string) script.Turn {
	var calls []script.Block
	for _, tool := range tools {
		calls = append(calls, script.ToolCall{Name: "mcp__" + server + "__" + tool})
	}
	return script.Reply(calls...)
}

// The oldest CLI does not list tools again: neither the handler nor the turn fails for it.
func TestToolServer_OldestCLIIgnoresAnAddedTool(t *testing.T) {
	cli := claudetest.OldestCLI(t)
	model := claudetest.NewModel(t, mcpCallsOf("tools", "step0"), mcpCallsOf("tools", "left"), mcpCallsOf("tools", "step1"), script.Text("Done.")).RequireAllUsed()
	opts := withTools(cli.Options(model), map[string]claude.MCPServer{"tools": stair(t).Server()})
	turn(t, claudetest.Connect(t, withoutToolSearch(cli, opts, model)), "go")
	last := model.LastRequest()
	for _, name := range []string{"step0", "left"} {
		if text, failed, _ := last.ToolResult("mcp__tools__" + name); failed || text != name+" ran" {
			t.Errorf("the model saw %q of %s", text, name)
		}
	}
	if _, failed, _ := last.ToolResult("mcp__tools__step1"); !failed {
		t.Error("the tool that was added can be called: let the documentation of ToolServer say so")
	}
}

// With tool search on an added tool is one to search for, whatever it says of itself. The model reads
// its name, and a call by the name works.
func TestToolServer_AddedToolIsAnnouncedWithToolSearch(t *testing.T) {
	var server *claude.ToolServer
	loaded, plain := fixedTool("loaded", claude.TextResult("loaded ran")), fixedTool("plain", claude.TextResult("plain ran"))
	loaded.AlwaysLoad = true
	open := claude.MustTool("open", "", func(context.Context, struct{}) (claude.ToolResult, error) {
		return claude.TextResult("open"), server.Add(loaded, plain)
	})
	open.AlwaysLoad = true
	server = toolServer(t, open)
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, mcpCallsOf("tools", "open"), mcpCallsOf("tools", "loaded", "plain"), script.Text("Done.")).RequireAllUsed()
	opts := cli.Options(model)
	opts.MCPServers = map[string]claude.MCPServer{"tools": server.Server()}
	opts.AllowedTools = []string{"mcp__tools"}
	turn(t, claudetest.Connect(t, opts), "go")
	request := model.Requests()[1]
	if tool, ok := request.Tool("mcp__tools__loaded"); !ok || !tool.DeferLoading {
		t.Errorf("the tool to be always loaded is offered: %t, deferred: %t; want both", ok, tool.DeferLoading)
	}
	if tool, ok := request.Tool("mcp__tools__plain"); ok && !tool.DeferLoading {
		t.Error("the other tool is offered at once")
	}
	for _, name := range []string{"loaded", "plain"} {
		if !request.SawText("mcp__tools__" + name) {
			t.Errorf("the request does not name %s", name)
		}
		if text, failed, _ := model.ToolResult("mcp__tools__" + name); failed || text != name+" ran" {
			t.Errorf("the call of %s gave %q", name, text)
		}
	}
}

// The time that a handler spends on adding a tool.
func BenchmarkToolServerAdd(b *testing.B) {
	cli := claudetest.CLI(b)
	model := claudetest.NewModel(b, script.Text("Ready."))
	server := toolServer(b, fixedTool("first", claude.TextResult("")))
	c := claudetest.Connect(b, withTools(cli.Options(model), map[string]claude.MCPServer{"tools": server.Server()}))
	turn(b, c, "go")
	for i := 0; b.Loop(); i++ {
		if err := server.Set(fixedTool(fmt.Sprintf("tool%d", i), claude.TextResult(""))); err != nil {
			b.Fatal(err)
		}
	}
}
