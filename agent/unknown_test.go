// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// A tool that the agent's catalogue does not have is denied wherever something is set that could be about it, and
// the reason says how to allow it. Where nothing is set it runs, and is reported once.
func TestUnknownTool_IsDeniedWhereAPolicyIsSet(t *testing.T) {
	for name, x := range map[string]struct {
		req      agent.Request
		policies []gate.Policy
		tool     string
		denied   string // words of the reason; empty if the call is made
		reported bool
	}{
		"nothing is set":                   {tool: "Frob", reported: true},
		"a tool of the catalogue":          {tool: "Read"},
		"a tool of a server":               {tool: "mcp__theirs__frob"},
		"permissions":                      {agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}, nil, "Frob", "Frob. Use another tool. The catalogue of claude-code does not have this one; to allow it, the caller names it in Tools", false},
		"permissions that allow all":       {agent.Request{Settings: agent.Settings{Permissions: levels(gate.LevelAllow)}}, nil, "Frob", "names it in Tools", false},
		"permissions that set rules aside": {agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{Mode: gate.ModeBypass}}}, nil, "Frob", "", true},
		"a list of allowed tools":          {agent.Request{Settings: agent.Settings{Tools: []string{"Read(/x)"}}}, nil, "Frob", "names it in Tools", false},
		"a rule about risks":               {agent.Request{}, []gate.Policy{gate.FromRisk(gate.RiskOptions{AgentTools: true})}, "Frob", "RiskOptions.Builtin", false},
		"named in the list":                {agent.Request{Settings: agent.Settings{Tools: []string{"Frob", "Read(/x)"}, Permissions: levels(gate.LevelDeny)}}, nil, "Frob", "", true},
		"named in a rule":                  {agent.Request{Settings: agent.Settings{Permissions: levels(gate.LevelDeny)}}, []gate.Policy{gate.Rules(gate.RuleOptions{Allow: []string{"Frob"}})}, "Frob", "", true},
		"named as harmless":                {agent.Request{}, []gate.Policy{gate.FromRisk(gate.RiskOptions{Builtin: gate.BuiltinLists{ReadOnly: []string{"Frob"}}})}, "Frob", "", true},
		"a rule about another tool":        {agent.Request{Settings: agent.Settings{Permissions: levels(gate.LevelAllow)}}, []gate.Policy{gate.Rules(gate.RuleOptions{Allow: []string{"Read"}})}, "Frob", "names it in Tools", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := withTools(agenttest.New(agenttest.UseTool(call("1", x.tool), "ok"), agenttest.UseTool(call("2", x.tool), "ok"), agenttest.Done("")))
			reports, denials := 0, 0
			for _, e := range collect(t, newRunner(t, a, &agent.RunnerOptions{Policies: x.policies}).Run(t.Context(), x.req)) {
				switch p := e.Payload.(type) {
				case event.Error:
					reports++
					if p.Code != event.CodeUnknownTool || !p.Recoverable || !strings.Contains(p.Message, x.tool) {
						t.Errorf("reported: %+v", p)
					}
				case event.ToolResult:
					if p.Status == event.ToolDenied {
						denials++
					}
				case event.Decision:
					if x.denied != "" && !strings.Contains(p.Reason, x.denied) {
						t.Errorf("the reason is %q, want %q in it", p.Reason, x.denied)
					}
				}
			}
			if want := map[bool]int{true: 2}[x.denied != ""]; denials != want {
				t.Errorf("%d calls are denied, want %d", denials, want)
			}
			if want := map[bool]int{true: 1}[x.reported]; reports != want {
				t.Errorf("the tool is reported %d times, want %d", reports, want)
			}
		})
	}
}

func levels(l gate.Level) *gate.Permissions {
	return &gate.Permissions{FileWrite: l, ShellExecute: l, NetworkAccess: l}
}
