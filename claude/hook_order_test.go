// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// moments records the order in which hooks are called.
type moments struct {
	mu   sync.Mutex
	seen []string
}

func (m *moments) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, what)
}

// A prompt, a tool that runs, a tool that fails, and the end: the hooks come in this order, the
// tool's own code between its two.
func TestHook_CallsFollowTheOrderOfTheTurn(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("mcp__home__ring", script.Input{}),
		script.Call("Read", script.Input{"file_path": "/nonexistent"}),
		script.Text("Done."),
	)
	var order moments
	ring := claude.MustTool("ring", "Ring the bell.", func(context.Context, struct{}) (claude.ToolResult, error) {
		order.note("the tool itself")
		return claude.TextResult("ding"), nil
	})
	server, err := claude.NewToolServer("home", "1", nil, ring)
	if err != nil {
		t.Fatal(err)
	}
	opts := cli.Options(model)
	opts.PermissionMode = claude.ModeBypassPermissions
	opts.MCPServers = map[string]claude.MCPServer{"home": server.Server()}
	cli.SetEnv(opts, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	opts.Hooks = []claude.Hook{
		claude.On("", func(context.Context, *claude.StopInput) (*claude.StopOutput, error) {
			order.note("Stop")
			return nil, nil
		}),
		claude.On("", func(_ context.Context, in *claude.PostToolUseFailureInput) (*claude.PostToolUseFailureOutput, error) {
			order.note("PostToolUseFailure " + in.ToolName)
			return nil, nil
		}),
		claude.On("", func(_ context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
			order.note("PostToolUse " + in.ToolName)
			return nil, nil
		}),
		claude.On("", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			order.note("PreToolUse " + in.ToolName)
			return nil, nil
		}),
		claude.On("", func(context.Context, *claude.UserPromptSubmitInput) (*claude.UserPromptSubmitOutput, error) {
			order.note("UserPromptSubmit")
			return nil, nil
		}),
	}
	if _, _, err := collect(claude.Query(t.Context(), "ring, then read", opts)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"UserPromptSubmit",
		"PreToolUse mcp__home__ring", "the tool itself", "PostToolUse mcp__home__ring",
		"PreToolUse Read", "PostToolUseFailure Read",
		"Stop",
	}
	if diff := cmp.Diff(want, order.seen); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
