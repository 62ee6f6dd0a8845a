// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// counting is a tool that takes any object and counts its runs.
func counting(name string, ran *tally, opts ...tool.Option) *tool.Tool {
	return tool.Must(name, "Does "+name+".", func(context.Context, map[string]any) (string, error) {
		ran.add(name)
		return "ran", nil
	}, opts...)
}

// However a call names a tool, it is judged as what would run.
func TestEngine_NoNameMakesADeniedToolRun(t *testing.T) {
	readOnly := func(r *tool.Registry, server string) gate.Policy {
		return gate.FromRisk(gate.RiskOptions{Registry: r, Server: server, ReadOnly: true, AgentTools: true})
	}
	harmful := func(r *tool.Registry, server string) gate.Policy {
		return gate.FromRisk(gate.RiskOptions{Registry: r, Server: server})
	}
	for _, tt := range []struct {
		name, server string
		call         tool.Call
		risk         func(*tool.Registry, string) gate.Policy
		lists        []gate.Policy
	}{
		{"its id, where its name is denied", "desk", tool.Call{Name: "default:b__save"}, harmful, []gate.Policy{gate.DenyTools("b__save")}},
		{"its id, where its full name is denied", "desk", tool.Call{Name: "default:b__save"}, harmful, []gate.Policy{gate.DenyTools("mcp__desk__b__save")}},
		{"its id behind a server, where its name is denied", "desk", tool.Call{Name: "mcp__desk__default:b__save"}, harmful, []gate.Policy{gate.DenyTools("b__save")}},
		{"that of a tool of another server, which is allowed", "desk", tool.Call{Name: "mcp__other__b__save"}, readOnly, []gate.Policy{gate.AllowTools("mcp__other")}},
		{"that of a server with __ in its name", "a__b", tool.Call{Name: "mcp__a__b__save"}, readOnly, nil},
		{"that of a tool of the agent", "desk", tool.Call{Name: "b__save", As: "Read"}, readOnly, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran := newTally()
			r := tool.MustRegistry(nil, counting("save", ran, tool.ReadOnly), counting("b__save", ran, tool.Mutates))
			r.DecideBy(gate.NewEngine(gate.ForClaude(append(tt.lists, tt.risk(r, tt.server))...), nil))
			if got := r.Execute(t.Context(), tt.call); got.Outcome != tool.Denied || ran.of("b__save") != 0 {
				t.Errorf("the call ended with %s, %q, and ran %d times; want a denial", got.Outcome, got.Render(), ran.of("b__save"))
			}
		})
	}
}

// A gate that knows one registry decides nothing about the tools of another that have the same names.
func TestEngine_ToolOfAnUnknownRegistryIsDenied(t *testing.T) {
	ran := newTally()
	known := tool.MustRegistry(nil, counting("save", ran, tool.ReadOnly))
	other := tool.MustRegistry(nil, counting("save", ran, tool.WithID("other", ""), tool.Mutates))
	other.DecideBy(gate.NewEngine(gate.ForClaude(gate.FromRisk(gate.RiskOptions{Registry: known, Server: "desk", ReadOnly: true})), nil))
	if got := other.Execute(t.Context(), tool.Call{Name: "save"}); got.Outcome != tool.Denied || ran.of("save") != 0 {
		t.Errorf("the call ended with %s, want a denial", got.Outcome)
	}
}

func TestEngine_ReplacedToolIsJudgedAgain(t *testing.T) {
	ran := newTally()
	r := tool.MustRegistry(nil, counting("look", ran, tool.ReadOnly))
	e := gate.NewEngine(gate.ForClaude(gate.FromRisk(gate.RiskOptions{Registry: r, Server: "desk", ReadOnly: true})), nil)
	r.DecideBy(e)
	if d := e.Decide(t.Context(), event.ToolCall{ID: "1", Name: "mcp__desk__look"}); d.Verdict != event.Allow {
		t.Fatalf("the tool that only looks: %s", d.Verdict)
	}
	if err := r.Replace(counting("look", ran, tool.Mutates)); err != nil {
		t.Fatal(err)
	}
	if got := r.Execute(t.Context(), tool.Call{ID: "1", Name: "look"}); got.Outcome != tool.Denied || ran.of("look") != 0 {
		t.Errorf("the call ended with %s, want a denial", got.Outcome)
	}
}

// The name alone may mean either tool; the registry that runs the call knows which.
func TestEngine_NameInTwoRegistriesIsAskedAboutOnce(t *testing.T) {
	ran := newTally()
	one, two := tool.MustRegistry(nil, counting("save", ran)), tool.MustRegistry(nil, counting("save", ran, tool.Mutates))
	p := answering(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(gate.ForClaude(gate.Knows("one", one), gate.Knows("two", two), gate.AskTools("save")), &gate.EngineOptions{Approver: p})
	one.DecideBy(e)
	e.Decide(t.Context(), event.ToolCall{ID: "1", Name: "mcp__one__save"})
	if got := one.Execute(t.Context(), tool.Call{ID: "1", Name: "default:save", As: "save"}); !got.OK() || p.asked.Load() != 1 {
		t.Errorf("the call ended with %s, %q, after %d questions; want one", got.Outcome, got.Render(), p.asked.Load())
	}
}

// The id of a call may come from outside. An approval for one call is not one for all that have its id.
func TestEngine_ReusedIDIsAskedAboutAgain(t *testing.T) {
	ran := newTally()
	r := tool.MustRegistry(nil, counting("save", ran, tool.Mutates))
	p := answering(gate.Answer{Verdict: event.Allow})
	e := gate.NewEngine(gate.ForClaude(gate.Knows("desk", r), gate.AskTools("save")), &gate.EngineOptions{Approver: p})
	r.DecideBy(e)
	e.Decide(t.Context(), event.ToolCall{ID: "1", Name: "mcp__desk__save"}) // at the hook
	for i := range int64(3) {
		if got := r.Execute(t.Context(), tool.Call{ID: "1", Name: "save"}); !got.OK() || got.CallID != "1" || p.asked.Load() != i+1 {
			t.Errorf("call %d: %s, id %q, after %d questions; want as many as calls", i+1, got.Outcome, got.CallID, p.asked.Load())
		}
	}
}
