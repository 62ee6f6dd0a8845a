// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/tool/mcp"
)

// A server of the official SDK answers the real CLI, with a manifest and without, and a tool that it
// gains while the CLI runs can be called.
func TestMount_OnTheRealCLI(t *testing.T) {
	for _, tt := range []struct {
		name     string
		get      func(testing.TB) *claudetest.RealCLI
		manifest bool
		parked   string
	}{
		{"handshake", claudetest.CLI, false, ""},
		{"manifest", claudetest.CLI, true, "parked"},
		{"oldest CLI", claudetest.OldestCLI, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cli := tt.get(t)
			model := claudetest.NewModel(t,
				script.Reply(script.ToolCall{ID: "toolu_hi", Name: "mcp__sdk__greet", Input: script.Input{"name": "Ada"}}),
				script.Text("Greeted."), script.Call("mcp__sdk__later", nil), script.Text("Later."))
			server := testServer(nil, nil)
			opts := cli.Options(model)
			opts.Tools, opts.AllowedTools = []string{}, []string{"mcp__sdk"}
			opts.MCPServers = map[string]claude.MCPServer{"sdk": claudecode.MountMCP(mcp.InProcess{Server: server}, &claudecode.MountOptions{Manifest: tt.manifest})}
			c, err := claude.Connect(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			play(t, c, "greet")
			if text, failed, _ := model.ToolResult("toolu_hi"); failed || text != "hi Ada from toolu_hi" {
				t.Errorf("the model saw %q", text)
			}
			if got := c.Initialized().MCPManifestsParked["sdk"]; got != tt.parked {
				t.Errorf("manifest %q, want %q", got, tt.parked)
			}
			if cli.Version == claude.OldestTested {
				return // takes no notice of changes
			}
			sdk.AddTool(server, &sdk.Tool{Name: "later", Description: "new"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "better late"}}}, nil, nil
			})
			awaitTool(t, c, "later")
			play(t, c, "use the new tool")
			if text, failed, _ := model.ToolResult("mcp__sdk__later"); failed || !strings.Contains(text, "better late") {
				t.Errorf("the model saw %q of the tool that was added", text)
			}
		})
	}
}

// The CLI starts a program that serves a registry like any other MCP server.
func TestServe_ToTheRealCLI(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Reply(script.ToolCall{ID: "toolu_echo", Name: "mcp__tools__echo", Input: script.Input{"text": "hi"}}),
		script.Call("mcp__tools__last-id", nil),
		script.Call("mcp__tools__clash", nil),
		script.Call("mcp__tools__ask", nil),
		script.Call("mcp__tools__change", script.Input{"add": "later"}),
		script.Text("Done."), script.Call("mcp__tools__later", nil), script.Text("Later."))
	self := child(t, "registry")
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	opts.Tools, opts.AllowedTools = []string{}, []string{"mcp__tools"}
	opts.MCPServers = map[string]claude.MCPServer{"tools": claude.MCPStdio{Command: self.Path, Env: map[string]string{serveVariable: "registry"}}}
	c, err := claude.Connect(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	awaitTool(t, c, "echo")
	play(t, c, "use the tools")
	awaitTool(t, c, "later")
	play(t, c, "use the new tool")
	for _, want := range []struct {
		tool, text string
		failed     bool
	}{
		{"echo", `{"text":"hi","length":2}`, false},
		{"last-id", "toolu_echo", false},
		{"clash", "Somebody else has it", true},
		{"ask", "needs approval", true},
		{"later", "new", false},
	} {
		text, failed, _ := model.ToolResult("mcp__tools__" + want.tool)
		if failed != want.failed || !strings.Contains(text, want.text) {
			t.Errorf("of %s the model saw %q (failed: %t), want %q", want.tool, text, failed, want.text)
		}
	}
}

// awaitTool asks until the CLI has read the list that the server announced.
func awaitTool(t *testing.T, c *claude.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		status, err := c.MCPStatus(ctx)
		if err != nil {
			t.Fatalf("the CLI does not list the tool %s: %v", name, err)
		}
		for _, s := range status {
			for _, tool := range s.Tools {
				if tool.Name == name {
					return
				}
			}
		}
	}
}

func play(t *testing.T, c *claude.Client, prompt string) {
	t.Helper()
	for _, err := range c.Turn(t.Context(), claude.Text(prompt)) {
		if err != nil {
			t.Fatalf("%s: %v", prompt, err)
		}
	}
}
