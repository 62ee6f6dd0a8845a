// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// decided is what the host of a run decides about a call; "no host" for a run without one.
func decided(t *testing.T, opts agent.RunnerOptions, req agent.Request, name string) string {
	t.Helper()
	got := "no host"
	ask := func(r *agenttest.Run) {
		if r.Request.Host != nil {
			got = r.Request.Host.Decide(r.Context, call("a", name)).Verdict.String()
		}
	}
	collect(t, newRunner(t, withTools(agenttest.New(ask, agenttest.Done(""))), &opts).Run(t.Context(), req))
	return got
}

func ownTools(t *testing.T) *tool.Registry {
	t.Helper()
	handler := func(context.Context, struct{}) (string, error) { return "", nil }
	save, err := tool.New("save", "Save.", handler, tool.FileWrite)
	if err != nil {
		t.Fatal(err)
	}
	look, err := tool.New("look", "Look.", handler, tool.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := tool.NewRegistry(nil, save, look)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// Who decides about which call, given permissions, lists, tools and policies.
func TestHost_DecidesByPermissionsListsAndPolicies(t *testing.T) {
	type request = agent.Request
	none, askAll := agent.RunnerOptions{}, &gate.Permissions{}
	yes := agent.RunnerOptions{Approver: gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
		return gate.Answer{Verdict: event.Allow}, nil
	})}
	noBash := agent.RunnerOptions{Policies: []gate.Policy{gate.DenyTools("Bash"), gate.Default(event.Allow)}}
	tools, shell := ownTools(t), &gate.Permissions{ShellExecute: gate.LevelAllow}
	cases := []struct {
		name string
		opts agent.RunnerOptions
		req  request
		tool string
		want string
	}{
		{"nothing set", none, request{}, "Bash", "no host"},
		{"lists alone are the adapter's", none, request{Settings: agent.Settings{Tools: []string{}, DisallowedTools: []string{"Bash"}}}, "Bash", "no host"},
		{"a list with arguments is a gate's", none, request{Settings: agent.Settings{Tools: []string{"Bash(git status)"}}}, "Bash", "deny"},
		{"another tool on a list with arguments", none, request{Settings: agent.Settings{Tools: []string{"Bash(git status)", "Read"}}}, "Read", "allow"},
		{"an approver alone decides nothing", yes, request{}, "Bash", "no host"},

		{"allowed capability", none, request{Settings: agent.Settings{Permissions: &gate.Permissions{ShellExecute: gate.LevelAllow}}}, "Bash", "allow"},
		{"denied capability", yes, request{Settings: agent.Settings{Permissions: &gate.Permissions{ShellExecute: gate.LevelDeny}}}, "Bash", "deny"},
		{"ask, and no approver", none, request{Settings: agent.Settings{Permissions: askAll}}, "Bash", "deny"},
		{"ask, and the approver allows", yes, request{Settings: agent.Settings{Permissions: askAll}}, "Bash", "allow"},
		{"a tool without capabilities", none, request{Settings: agent.Settings{Permissions: askAll}}, "Read", "allow"},
		{"bypass", none, request{Settings: agent.Settings{Permissions: &gate.Permissions{Mode: gate.ModeBypass}}}, "Bash", "allow"},
		{"levels of the defaults", agent.RunnerOptions{Defaults: request{Settings: agent.Settings{Permissions: &gate.Permissions{ShellExecute: gate.LevelAllow}}}}, request{Settings: agent.Settings{Permissions: askAll}}, "Bash", "allow"},

		{"on the allowed list", none, request{Settings: agent.Settings{Permissions: askAll, Tools: []string{"Read"}}}, "Read", "allow"},
		{"not on the allowed list", none, request{Settings: agent.Settings{Permissions: askAll, Tools: []string{"Read"}}}, "Grep", "deny"},
		{"the allowed list approves nothing by itself", none, request{Settings: agent.Settings{Permissions: &gate.Permissions{FileWrite: gate.LevelDeny}, Tools: []string{"Write"}}}, "Write", "deny"},
		{"an empty allowed list", none, request{Settings: agent.Settings{Permissions: askAll, Tools: []string{}}}, "Read", "deny"},
		{"on the disallowed list", yes, request{Settings: agent.Settings{Permissions: askAll, DisallowedTools: []string{"Read"}}}, "Read", "deny"},
		{"on both lists", none, request{Settings: agent.Settings{Permissions: askAll, Tools: []string{"Read"}, DisallowedTools: []string{"Read"}}}, "Read", "deny"},
		{"an empty disallowed list", none, request{Settings: agent.Settings{Permissions: askAll, DisallowedTools: []string{}}}, "Read", "allow"},

		{"own tool by its capability", none, request{Settings: agent.Settings{Permissions: &gate.Permissions{FileWrite: gate.LevelDeny}}, Registry: tools}, "mcp__drover__save", "deny"},
		{"own tool that needs nothing", none, request{Settings: agent.Settings{Permissions: &gate.Permissions{FileWrite: gate.LevelDeny}}, Registry: tools}, "mcp__drover__look", "allow"},
		{"own tool that is not on the list", none, request{Settings: agent.Settings{Permissions: askAll, Tools: []string{"Read"}}, Registry: tools}, "mcp__drover__look", "deny"},
		{"own tool on the list by its name", none, request{Settings: agent.Settings{Permissions: askAll, Tools: []string{"look"}}, Registry: tools}, "mcp__drover__look", "allow"},
		{"own tool on the list by its server", none, request{Settings: agent.Settings{Permissions: askAll, Tools: []string{"mcp__drover"}}, Registry: tools}, "mcp__drover__look", "allow"},
		{"own tool that is taken away", none, request{Settings: agent.Settings{Permissions: askAll, DisallowedTools: []string{"look"}}, Registry: tools}, "mcp__drover__look", "deny"},
		{"another server's tool of that name", none, request{Settings: agent.Settings{Permissions: askAll, Tools: []string{"look"}}, Registry: tools}, "mcp__other__look", "deny"},

		{"own tool of another server's name", none, request{Settings: agent.Settings{Permissions: askAll, ToolServer: "desk", Tools: []string{"look"}}, Registry: tools}, "mcp__desk__look", "allow"},
		{"own tool under the name that it does not have", none, request{Settings: agent.Settings{Permissions: askAll, ToolServer: "desk", Tools: []string{"look"}}, Registry: tools}, "mcp__drover__look", "deny"},

		{"skills beside a list", none, request{Settings: agent.Settings{Permissions: shell, Tools: []string{"Read"}}, Skills: []agent.Skill{skill("greet")}}, "Skill", "allow"},
		{"a list without skills", none, request{Settings: agent.Settings{Permissions: shell, Tools: []string{"Read"}}}, "Skill", "deny"},
		{"skills without the permission that they need", none, request{Settings: agent.Settings{Permissions: askAll}, Skills: []agent.Skill{skill("greet")}}, "Skill", "deny"},

		{"policies of the runner", noBash, request{}, "Bash", "deny"},
		{"policies of the runner, another tool", noBash, request{}, "Read", "allow"},
		{"policies beside permissions", noBash, request{Settings: agent.Settings{Permissions: &gate.Permissions{Mode: gate.ModeBypass}}}, "Bash", "deny"},
		{"policies beside a list", noBash, request{Settings: agent.Settings{DisallowedTools: []string{"Read"}}}, "Read", "deny"},
		{"a host of the request", none, request{Host: gate.NewEngine(nil, nil)}, "Read", "deny"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := decided(t, c.opts, c.req, c.tool); got != c.want {
				t.Errorf("%s: %s, want %s", c.tool, got, c.want)
			}
		})
	}
}

// A question is an event of the run with an approver that answers it and without one.
func TestPermissionRequest_EveryQuestionIsAnEvent(t *testing.T) {
	approver := gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
		return gate.Answer{Reason: "Not today."}, nil
	})
	cases := []struct {
		name     string
		approver gate.Approver
		reason   string
	}{
		{"the approver answers", approver, "Not today."},
		{"no approver", nil, "no approver is set"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := withTools(agenttest.New(agenttest.UseTool(call("a", "Bash"), "ok"), agenttest.Done("")))
			r := newRunner(t, a, &agent.RunnerOptions{Approver: c.approver})
			events := collect(t, r.Run(t.Context(), agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}))
			expect(t, events, "tool_use:a permission_request:a gate:decision:a tool_result:a done:success")
			question, decision := events[1].Payload.(event.PermissionRequest), events[2].Payload.(event.Decision)
			if question.Name != "Bash" || question.Reason == "" {
				t.Errorf("the question is %+v, want the tool and a reason", question)
			}
			if decision.Verdict != event.Deny || decision.Asked != (c.approver != nil) || !strings.Contains(decision.Reason, c.reason) {
				t.Errorf("the decision is %+v, want a denial with %q", decision, c.reason)
			}
		})
	}
}

// Each run has an engine of its own: what was approved in one is asked about again in the next.
func TestApproval_EndsWithTheRun(t *testing.T) {
	asked := 0
	approver := gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
		asked++
		return gate.Answer{Verdict: event.Allow, Remember: gate.SameTool}, nil
	})
	a := withTools(agenttest.New(agenttest.UseTool(call("a", "Bash"), "1"), agenttest.UseTool(call("b", "Bash"), "2"), agenttest.Done("")))
	r := newRunner(t, a, &agent.RunnerOptions{Approver: approver, Defaults: agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}}})
	for range 2 {
		collect(t, r.Run(t.Context(), agent.Request{}))
	}
	if asked != 2 {
		t.Errorf("asked %d times, want once in each run", asked)
	}
}
