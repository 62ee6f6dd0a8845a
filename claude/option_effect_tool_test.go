// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/script"
)

func toolEffects() []optionEffect {
	touch := func(name string) script.Turn { return script.Call("Bash", script.Input{"command": "touch " + name}) }
	return []optionEffect{
		{
			name: "permission callback",
			turns: []script.Turn{
				script.Reply(script.ToolCall{Name: "Bash", Input: script.Input{"command": "touch asked"}}, script.ToolCall{Name: "Bash", Input: script.Input{"command": "touch allowed"}}),
				script.Call("Write", script.Input{"file_path": "x", "content": "y"}), script.Text("ok"),
			},
			set: func(_ *testing.T, r *effectRun) {
				r.opts.AllowedTools, r.opts.DisallowedTools = []string{"Bash(touch allowed)"}, []string{"Write"}
				r.opts.QuestionPreview, r.opts.AllowBypass = "html", true
				r.opts.CanUseTool = func(_ context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
					r.notes["asked"] += string(req.Input)
					return &claude.Allow{}, nil
				}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"Options.CanUseTool":   equal("the question about asked", func(_ *testing.T, r *effectRun) bool { return strings.Contains(r.notes["asked"], "touch asked") }, true),
				"Options.AllowedTools": equal("the question about allowed", func(_ *testing.T, r *effectRun) bool { return strings.Contains(r.notes["asked"], "touch allowed") }, false),
				"Options.DisallowedTools": func(t *testing.T, r *effectRun) {
					if _, isError, _ := r.model.ToolResult("Write"); !isError || slices.Contains(r.init(t).Tools, "Write") {
						t.Error("Write is there")
					}
				},
				"Options.QuestionPreview": func(t *testing.T, r *effectRun) {
					if tool, ok := r.first(t).Tool("AskUserQuestion"); !ok || !strings.Contains(strings.ToLower(tool.Description+string(tool.InputSchema)), "html") {
						t.Errorf("AskUserQuestion does not speak of HTML: %v", ok)
					}
				},
				"Options.AllowBypass": func(t *testing.T, r *effectRun) {
					if err := r.client.SetPermissionMode(t.Context(), claude.ModeBypassPermissions); err != nil {
						t.Error(err)
					}
				},
			},
		},
		{
			name: "denied without asking", newOnly: true,
			turns: []script.Turn{touch("denied"), script.Text("ok")},
			set: func(_ *testing.T, r *effectRun) {
				r.opts.PermissionPrompts, r.opts.CanUseTool = "none", func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
					r.notes["asked"] = "yes"
					return &claude.Allow{}, nil
				}
			},
			checks: map[string]func(*testing.T, *effectRun){"Options.PermissionPrompts": func(t *testing.T, r *effectRun) {
				_, err := os.Stat(filepath.Join(r.cli.Work, "denied"))
				if _, isError, _ := r.model.ToolResult("Bash"); !isError || r.notes["asked"] != "" || err == nil {
					t.Errorf("the call was asked about (%q) or ran", r.notes["asked"])
				}
			}},
		},
		{
			name:  "permission tool",
			turns: []script.Turn{touch("asked"), script.Text("ok")},
			set: func(t *testing.T, r *effectRun) {
				type question struct {
					Tool  string         `json:"tool_name"`
					Input map[string]any `json:"input"`
					ID    string         `json:"tool_use_id"`
				}
				ask := claude.MustTool("ask", "Answers permission questions.", func(_ context.Context, in question) (claude.ToolResult, error) {
					r.notes["asked"] = in.Tool
					return claude.TextResult(`{"behavior":"deny","message":"NOT BY ME"}`), nil
				})
				server, err := claude.NewToolServer("s", "1", nil, ask)
				if err != nil {
					t.Fatal(err)
				}
				r.opts.MCPServers, r.opts.PermissionPromptTool = map[string]claude.MCPServer{"s": server.Server()}, "mcp__s__ask"
			},
			checks: map[string]func(*testing.T, *effectRun){"Options.PermissionPromptTool": func(t *testing.T, r *effectRun) {
				if text, isError, _ := r.model.ToolResult("Bash"); !isError || !strings.Contains(text, "NOT BY ME") || r.notes["asked"] != "Bash" {
					t.Errorf("the tool was asked about %q, the model saw %q", r.notes["asked"], text)
				}
			}},
		},
		{
			name:  "aliases",
			turns: []script.Turn{script.Call("Bash", script.Input{"text": "hello"}), script.Text("ok")},
			set: func(t *testing.T, r *effectRun) {
				type input struct {
					Text string `json:"text"`
				}
				echo := claude.MustTool("echo", "Echoes.", func(_ context.Context, in input) (claude.ToolResult, error) {
					return claude.TextResult("ALIASED " + in.Text), nil
				})
				echo.AlwaysLoad = true
				server, err := claude.NewToolServer("s", "1", nil, echo)
				if err != nil {
					t.Fatal(err)
				}
				r.opts.MCPServers, r.opts.ToolAliases = map[string]claude.MCPServer{"s": server.Server()}, map[string]string{"Bash": "mcp__s__echo"}
				r.opts.AllowedTools = []string{"mcp__s__echo"}
			},
			checks: map[string]func(*testing.T, *effectRun){"Options.ToolAliases": func(t *testing.T, r *effectRun) {
				if text, isError, _ := r.model.ToolResult("Bash"); isError || !strings.Contains(text, "ALIASED hello") {
					t.Errorf("the model saw %q", text)
				}
			}},
		},
		hookEffect(),
	}
}

// hookEffect has one hook that answers and one that takes too long.
func hookEffect() optionEffect {
	return optionEffect{
		name:  "hooks",
		turns: []script.Turn{script.Call("Bash", script.Input{"command": "touch ran"}), script.Call("Read", script.Input{"file_path": "ran"}), script.Text("ok")},
		set: func(_ *testing.T, r *effectRun) {
			r.opts.PermissionMode = claude.ModeBypassPermissions
			slow := claude.On("Bash", func(ctx context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
				<-ctx.Done() // the CLI withdraws the call
				return nil, nil
			})
			slow.Timeout = 100 * time.Millisecond
			r.opts.Hooks = []claude.Hook{slow, claude.On("Read", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
				r.notes["read"] += in.ToolName
				return nil, nil
			})}
		},
		checks: map[string]func(*testing.T, *effectRun){
			"Options.Hooks": equal("the call of the second hook", func(_ *testing.T, r *effectRun) string { return r.notes["read"] }, "Read"),
			"Hook.Event":    equal("the call of the second hook", func(_ *testing.T, r *effectRun) string { return r.notes["read"] }, "Read"),
			"Hook.Func":     equal("the call of the second hook", func(_ *testing.T, r *effectRun) string { return r.notes["read"] }, "Read"),
			"Hook.Matcher":  equal("the call of the second hook", func(_ *testing.T, r *effectRun) string { return r.notes["read"] }, "Read"),
			"Hook.Timeout": func(t *testing.T, r *effectRun) {
				if _, isError, _ := r.model.ToolResult("Bash"); !isError {
					t.Error("the tool ran although its hook did not answer in time")
				}
			},
		},
	}
}
