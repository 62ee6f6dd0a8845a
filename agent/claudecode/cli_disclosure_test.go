// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// chest has one tool, which adds two others.
func chest(t testing.TB, ran *[]string) *tool.Registry {
	t.Helper()
	more := desk(t, ran).Tools()
	var r *tool.Registry
	r = tool.MustRegistry(nil, tool.Must("open", "Opens the chest.", func(context.Context, tool.None) (string, error) {
		return "open", r.Add(more...)
	}, tool.ReadOnly))
	return r
}

// A handler of Request.Tools adds tools to it; the model calls them in its very next answer. Who decides
// about calls decides about these too, by what the registry says of them.
func TestDisclosure_AddedToolsAreInTheNextRequest(t *testing.T) {
	const look, save = "mcp__drover__look", "mcp__drover__save"
	for name, test := range map[string]struct {
		req      agent.Request
		policies []gate.Policy
		offered  map[string]bool
		results  map[string]event.ToolStatus
	}{
		"no handler decides": {
			offered: map[string]bool{look: true, save: true},
			results: map[string]event.ToolStatus{look: event.ToolSuccess, save: event.ToolSuccess},
		},
		"a gate knows their risks": {
			policies: []gate.Policy{gate.FromRisk(gate.RiskOptions{ReadOnly: true})},
			offered:  map[string]bool{look: true, save: true},
			results:  map[string]event.ToolStatus{look: event.ToolSuccess, save: event.ToolDenied},
		},
		"a list names one of them": {
			req:     agent.Request{Settings: agent.Settings{Tools: []string{"open", look}}},
			offered: map[string]bool{look: true, save: false},
			results: map[string]event.ToolStatus{look: event.ToolSuccess, save: event.ToolError},
		},
		"a list takes one of them away before it is there": {
			req:     agent.Request{Settings: agent.Settings{DisallowedTools: []string{"save"}, UnknownTools: []string{"save"}}},
			offered: map[string]bool{look: true, save: false},
			results: map[string]event.ToolStatus{look: event.ToolSuccess, save: event.ToolError},
		},
		"a list names one of them to a gate": {
			req:      agent.Request{Settings: agent.Settings{Tools: []string{"open", look}}},
			policies: []gate.Policy{gate.Default(event.Allow)},
			offered:  map[string]bool{look: true, save: false},
			results:  map[string]event.ToolStatus{look: event.ToolSuccess, save: event.ToolError},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t, script.Call("mcp__drover__open", nil),
				script.Reply(script.ToolCall{Name: look}, script.ToolCall{Name: save}), script.Text("Done.")).RequireAllUsed()
			base := cli.Options(model)
			cli.SetEnv(base, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
			base.PermissionMode = claude.ModeBypassPermissions
			var ran []string
			test.req.Prompt, test.req.Registry = "go", chest(t, &ran)
			got := record(t, newRunner(t, base, &agent.RunnerOptions{Policies: test.policies}).Run(inTime(t), test.req))
			got.check(t)
			for tool, want := range test.offered {
				if _, ok := model.Requests()[1].Tool(tool); ok != want {
					t.Errorf("the next request has %s: %t, want %t", tool, ok, want)
				}
			}
			for tool, want := range test.results {
				if status := got.result(tool); status != want {
					t.Errorf("%s ended with %q, want %q; ran: %v", tool, status, want, ran)
				}
			}
		})
	}
}
