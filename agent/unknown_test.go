// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
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
		"permissions":                      {agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}, nil, "Frob", "Frob. Use another tool. The catalogue of claude-code does not have this one; to allow it, the caller names it in UnknownTools", false},
		"permissions that allow all":       {agent.Request{Settings: agent.Settings{Permissions: levels(gate.LevelAllow)}}, nil, "Frob", "names it in UnknownTools", false},
		"permissions that set rules aside": {agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{Mode: gate.ModeBypass}}}, nil, "Frob", "", true},
		"a list of allowed tools":          {agent.Request{Settings: agent.Settings{Tools: []string{"Read(/x)"}}}, nil, "Frob", "names it in UnknownTools", false},
		"a rule about risks":               {agent.Request{}, []gate.Policy{gate.FromRisk(gate.RiskOptions{AgentTools: true})}, "Frob", "RiskOptions.Builtin", false},
		"named in the list":                {agent.Request{Settings: agent.Settings{Tools: []string{"Frob", "Read(/x)"}, UnknownTools: []string{"Frob"}, Permissions: levels(gate.LevelDeny)}}, nil, "Frob", "", true},
		"named in a rule":                  {agent.Request{Settings: agent.Settings{UnknownTools: []string{"Frob"}, Permissions: levels(gate.LevelDeny)}}, []gate.Policy{gate.Rules(gate.RuleOptions{Allow: []string{"Frob"}})}, "Frob", "", true},
		"named as harmless":                {agent.Request{}, []gate.Policy{gate.FromRisk(gate.RiskOptions{Builtin: gate.BuiltinLists{ReadOnly: []string{"Frob"}}})}, "Frob", "", true},
		"a rule about another tool":        {agent.Request{Settings: agent.Settings{Permissions: levels(gate.LevelAllow)}}, []gate.Policy{gate.Rules(gate.RuleOptions{Allow: []string{"Read"}})}, "Frob", "names it in UnknownTools", false},
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

// A name that no tool has would leave the agent without a tool, or a tool without its rule.
func TestRunner_MisspelledToolsAreRefused(t *testing.T) {
	deny := func(names ...string) []gate.Policy {
		return []gate.Policy{gate.DenyTools(names...), gate.Default(event.Allow)}
	}
	tools := tool.MustRegistry(nil)
	for name, x := range map[string]struct {
		settings agent.Settings
		policies []gate.Policy
		want     string // empty means that it runs
	}{
		"a list":                 {agent.Settings{Tools: []string{"Read", "Raed"}}, nil, "agent: Tools: there is no tool Raed\n  next: write Read; if"},
		"a list with arguments":  {agent.Settings{Tools: []string{"bash(git:*)"}}, nil, "agent: Tools: there is no tool bash\n  next: write Bash; if"},
		"what is taken away":     {agent.Settings{DisallowedTools: []string{"Bsah"}}, nil, "agent: DisallowedTools: there is no tool Bsah\n  next: write Bash; if it is a tool of a newer agent, or is added later, name it in UnknownTools too"},
		"a rule":                 {agent.Settings{}, deny("Bsah(rm *)"), "policy deny-list: there is no tool Bsah\n  next: write Bash"},
		"tools before others":    {agent.Settings{}, []gate.Policy{gate.RequireBefore(map[string][]string{"Write": {"Reed"}})}, "policy require-before: there is no tool Reed"},
		"a tool of a newer CLI":  {agent.Settings{DisallowedTools: []string{"Frob"}, UnknownTools: []string{"Frob"}}, deny("Frob"), ""},
		"tools of a gate":        {agent.Settings{}, append(deny("look"), gate.Knows("desk", tool.Tools{{Name: "look"}})), ""},
		"a server of the agent":  {agent.Settings{DisallowedTools: []string{"mcp__theirs__x"}}, deny("mcp__theirs"), ""},
		"a tool to be added":     {agent.Settings{Tools: []string{"mcp__drover__later"}}, nil, ""},
		"rules of known tools":   {agent.Settings{Tools: []string{"Bash(git:*)", "Read(/src/**)", "mcp__drover"}}, deny("Edit(*.md)"), ""},
		"an empty list of tools": {agent.Settings{Tools: []string{}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := withTools(agenttest.New(agenttest.Done("")))
			var failure error
			for _, err := range newRunner(t, a, &agent.RunnerOptions{Policies: x.policies}).Run(t.Context(), agent.Request{Settings: x.settings, Registry: tools}) {
				failure = errors.Join(failure, err)
			}
			if text := advice.Text(failure); (text == "") != (x.want == "") || !strings.Contains(text, x.want) || (len(a.Requests()) == 0) != (x.want != "") {
				t.Errorf("got %q and %d requests, want %q", text, len(a.Requests()), x.want)
			}
		})
	}
}
