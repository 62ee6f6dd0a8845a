// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// withoutChain compares decisions where their chain is not the subject.
var withoutChain = cmpopts.IgnoreFields(event.Decision{}, "Chain")

// chainLines are the entries of a chain, each in a line.
func chainLines(d event.Decision) []string {
	lines := []string{}
	for _, v := range d.Chain {
		line := v.Policy + " abstains"
		if v.Verdict != nil {
			line = v.Policy + " " + v.Verdict.String()
		}
		if v.Tool != "" {
			line += " of " + v.Tool
		}
		if v.Again {
			line += " again"
		}
		if v.Reason != "" {
			line += ": " + v.Reason
		}
		lines = append(lines, line)
	}
	return lines
}

// recorder keeps the decisions that an engine records.
type recorder []event.Decision

func (r *recorder) emit(e event.Event) error {
	if d, ok := e.Payload.(event.Decision); ok {
		*r = append(*r, d)
	}
	return nil
}

func TestChain_HasEveryPolicyThatWasAsked(t *testing.T) {
	never := func(p gate.Policy) gate.Policy {
		p.When = func() bool { return false }
		return p
	}
	panics := judgedBy(func(*gate.Call) (event.Decision, bool) { panic("no fuse") })
	disagree := "Bash is denied: the policies do not agree on its input. Continue without this call."
	for _, tt := range []struct {
		name     string
		policies []gate.Policy
		answer   *gate.Answer // nil means no approver
		want     []string
	}{
		{"allowed", []gate.Policy{gate.AllowTools("Bash"), abstains("a"), allows("b")}, nil, []string{"a abstains", "allow-list allow", "b allow"}},
		{"denied by a list, later policies are not asked", []gate.Policy{gate.DenyTools("Bash"), allows("b"), denies("c", gate.StageCustom)}, nil, []string{"deny-list deny: Bash is denied. Make an allowed call instead, or continue without it."}},
		{"a denial without a reason has the one of the decision", []gate.Policy{decides("mute", 0, event.Decision{})}, nil, []string{"mute deny: Denied by policy mute. Continue without this call."}},
		{"a policy that names another", []gate.Policy{decides("outer", 0, event.Decision{Verdict: event.Allow, Policy: "inner"})}, nil, []string{"inner allow"}},
		{"asked and approved", []gate.Policy{asks("q"), allows("a")}, &gate.Answer{Verdict: event.Allow, Reason: "go on"}, []string{"q ask: q asks", "a allow", "approver allow: go on"}},
		{"asked and denied", []gate.Policy{asks("q")}, &gate.Answer{}, []string{"q ask: q asks", "approver deny: Bash was not approved. Continue without this call."}},
		{"asked without an approver", []gate.Policy{asks("q")}, nil, []string{"q ask: q asks", "approver deny: Bash needs approval (q asks), and no approver is set. Continue without this call."}},
		{"all abstain", []gate.Policy{abstains("a"), abstains("b"), gate.Default(event.Allow)}, nil, []string{"a abstains", "b abstains", "otherwise allow"}},
		{"all abstain, and the rule asks", []gate.Policy{gate.Default(event.Ask)}, &gate.Answer{Verdict: event.Allow}, []string{"otherwise ask: No policy knows the tool Bash.", "approver allow"}},
		{"no policies", nil, nil, []string{"otherwise deny: Tool not allowed: Bash"}},
		{"not applicable", []gate.Policy{never(denies("d", 0)), allows("a"), never(gate.Default(event.Deny))}, nil, []string{"a allow"}},
		{"a panic", []gate.Policy{allows("a"), panics, allows("b")}, nil, []string{"a allow", "test deny: Policy test failed: no fuse. Continue without this call."}},
		{
			"rewritten and judged again, with the facts of the call and with its own",
			[]gate.Policy{rewrites("r", `{"a":1}`, `{"a":2}`, event.Allow), allows("a")},
			nil,
			[]string{"r allow: r", "a allow", "r abstains again", "a allow again", "r abstains again", "a allow again"},
		},
		{
			"rewritten and denied",
			[]gate.Policy{deniesInput("d", `{"a":2}`), rewrites("r", `{"a":1}`, `{"a":2}`, event.Allow)},
			nil,
			[]string{"d abstains", "r allow: r", `d deny again: not {"a":2}`},
		},
		{
			"policies that do not agree on the input",
			[]gate.Policy{rewrites("s", `{"a":2}`, `{"a":1}`, event.Allow), rewrites("r", `{"a":1}`, `{"a":2}`, event.Allow)},
			nil,
			[]string{"s abstains", "r allow: r", "s allow again: s", "r allow again: r", "gate deny again: " + disagree},
		},
		{
			"a question about a rewritten input",
			[]gate.Policy{asksInput("q", `{"a":2}`), rewrites("r", `{"a":1}`, `{"a":2}`, event.Allow)},
			&gate.Answer{Verdict: event.Allow},
			[]string{"q abstains", "r allow: r", `q ask again: about {"a":2}`, "r abstains again", `q ask again: about {"a":2}`, "r abstains again", "approver allow again"},
		},
		{
			"rewritten by the approver",
			[]gate.Policy{asksInput("q", `{"a":1}`), allows("a")},
			&gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"a":2}`)},
			[]string{`q ask: about {"a":1}`, "a allow", "approver allow", "q abstains again", "a allow again"},
		},
		{
			"rewritten by the approver and denied",
			[]gate.Policy{asksInput("q", `{"a":1}`), deniesInput("d", `{"a":2}`)},
			&gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"a":2}`)},
			[]string{`q ask: about {"a":1}`, "d abstains", "approver allow", "q abstains again", `d deny again: not {"a":2}`},
		},
		{
			"rewritten by the approver into no object",
			[]gate.Policy{asks("q")},
			&gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`2`)},
			[]string{"q ask: q asks", "approver deny: Bash is denied: the approver gave an input that is not a JSON object. Continue without this call."},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log recorder
			opts := &gate.EngineOptions{Emit: log.emit}
			if tt.answer != nil {
				opts.Approver = answering(*tt.answer)
			}
			e := gate.NewEngine(gate.ForClaude(tt.policies...), opts)
			call := toolCall("c", "Bash", `{"a":1}`)
			got := e.Decide(t.Context(), call)
			if diff := cmp.Diff(tt.want, chainLines(got)); diff != "" {
				t.Errorf("chain (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(recorder{got}, log); diff != "" {
				t.Errorf("recorded (-returned +recorded):\n%s", diff)
			}
			if diff := cmp.Diff(got, e.Decide(t.Context(), call)); diff != "" {
				t.Errorf("asked about the call again (-first +second):\n%s", diff)
			}
			if d := gate.ForClaude(tt.policies...).Decide(call, gate.Facts{}); d.Chain != nil {
				t.Errorf("the gate alone made the chain %v, want none", chainLines(d))
			}
		})
	}
}

func TestChain_RememberedAnswerIsAnEntry(t *testing.T) {
	e := gate.NewEngine(gate.ForClaude(asks("q")), &gate.EngineOptions{Approver: answering(gate.Answer{Verdict: event.Allow, Reason: "always", Remember: gate.SameTool})})
	e.Decide(t.Context(), toolCall("1", "Bash", `{}`))
	got := e.Decide(t.Context(), toolCall("2", "Bash", `{}`))
	if diff := cmp.Diff([]string{"q ask: q asks", "approver allow: always"}, chainLines(got)); diff != "" || !got.Remembered {
		t.Errorf("%+v, want it remembered, with the chain (-want +got):\n%s", got, diff)
	}
}

// A registry runs save, and the call names it Read: policies judge it as both.
func TestChain_CallThatIsJudgedAsTwoTools(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policies []gate.Policy
		want     []string
	}{
		{"allowed", []gate.Policy{gate.AllowTools("save", "Read")}, []string{"allow-list allow of default:save", "allow-list allow of Read"}},
		{"the name is denied", []gate.Policy{gate.AllowTools("save"), gate.DenyTools("Read")}, []string{
			"allow-list allow of default:save", "deny-list abstains of default:save",
			"allow-list deny of Read: Tool Read is not on the list of allowed tools. Use another tool.",
		}},
		{"the tool is denied", []gate.Policy{gate.DenyTools("save")}, []string{"deny-list deny of default:save: Read is denied. Make an allowed call instead, or continue without it."}},
		{"rewritten", []gate.Policy{rewrites("r", `{}`, `{"a":2}`, event.Allow)}, []string{
			"r allow of default:save: r", "r abstains of default:save again", "r allow of Read: r", "r abstains of Read again",
			"r abstains of default:save again", "otherwise deny of default:save again: Tool not allowed: Read",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log recorder
			r := tool.MustRegistry(nil, counting("save", newTally(), tool.Mutates))
			r.DecideBy(gate.NewEngine(gate.ForClaude(append(tt.policies, gate.Knows("desk", r))...), &gate.EngineOptions{Emit: log.emit}))
			r.Execute(t.Context(), tool.Call{Name: "save", As: "Read"})
			if len(log) != 1 {
				t.Fatalf("recorded %d decisions, want one", len(log))
			}
			if diff := cmp.Diff(tt.want, chainLines(log[0])); diff != "" {
				t.Errorf("chain (-want +got):\n%s", diff)
			}
		})
	}
}

// Decisions that the engine makes itself have a chain too.
func TestChain_EngineDecidesItself(t *testing.T) {
	bash := toolCall("c", "Bash", `{}`)
	for _, tt := range []struct {
		name string
		opts gate.EngineOptions
		gate *gate.Gate
		ask  func(*gate.Engine) event.Decision
		want []string
	}{
		{"a denial of the adapter", gate.EngineOptions{}, gate.ForClaude(allows("a")), func(e *gate.Engine) event.Decision {
			return e.Deny(context.Background(), bash, "an impostor")
		}, []string{"engine deny: an impostor"}},
		{"a registry panics", gate.EngineOptions{}, gate.ForClaude(gate.Knows("x", brokenLookup{})), func(e *gate.Engine) event.Decision {
			return e.Decide(context.Background(), bash)
		}, []string{"engine deny: Bash is denied: the decision failed. Continue without this call."}},
		{"facts panic about the new input", gate.EngineOptions{Facts: func(_ context.Context, c gate.Call) gate.Facts {
			if c.Again {
				panic("no facts")
			}
			return gate.Facts{}
		}}, gate.ForClaude(rewrites("r", `{}`, `{"a":2}`, event.Allow)), func(e *gate.Engine) event.Decision {
			return e.Decide(context.Background(), bash)
		}, []string{"r allow: r", "r abstains again", "engine deny: Bash is denied: the decision failed. Continue without this call."}},
		{"it cannot be recorded", gate.EngineOptions{Emit: func(event.Event) error { return errors.New("full") }}, gate.ForClaude(allows("a")), func(e *gate.Engine) event.Decision {
			return e.Decide(context.Background(), bash)
		}, []string{"a allow", "engine deny: Bash is denied: the decision could not be recorded. Continue without this call."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, chainLines(tt.ask(gate.NewEngine(tt.gate, &tt.opts)))); diff != "" {
				t.Errorf("chain (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChain_CallerThatWithdrawsItsQuestion(t *testing.T) {
	var e *gate.Engine
	var waited event.Decision
	call := toolCall("c", "Bash", `{}`)
	e = gate.NewEngine(gate.ForClaude(asks("q")), &gate.EngineOptions{Approver: gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		waited = e.Decide(gone, call)
		return gate.Answer{Verdict: event.Allow}, nil
	})})
	got := e.Decide(t.Context(), call)
	if diff := cmp.Diff([]string{"q ask: q asks", "approver allow"}, chainLines(got)); diff != "" {
		t.Errorf("chain of the decision (-want +got):\n%s", diff)
	}
	want := []string{"engine deny: Bash is denied: the question was withdrawn before the decision. Continue without this call."}
	if diff := cmp.Diff(want, chainLines(waited)); diff != "" {
		t.Errorf("chain of the other caller (-want +got):\n%s", diff)
	}
}

// Whatever the policies are: the decision is in its chain, and denies if and only if an entry does.
func TestChain_ExplainsTheDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var policies []gate.Policy
		for range rapid.IntRange(0, 4).Draw(t, "policies") {
			verdict := rapid.SampledFrom([]event.Verdict{event.Deny, event.Ask, event.Allow, event.Allow}).Draw(t, "verdict")
			from, to := rapid.SampledFrom([]string{`{}`, `{"a":1}`}).Draw(t, "from"), rapid.SampledFrom([]string{`{}`, `{"a":1}`}).Draw(t, "to")
			policies = append(policies, rapid.SampledFrom([]gate.Policy{
				abstains("abstains"), rewrites("rewrites", from, to, verdict), gate.Default(verdict), decides("decides", 0, event.Decision{Verdict: verdict, Reason: "so"}),
			}).Draw(t, "policy"))
		}
		answer := gate.Answer{Verdict: rapid.SampledFrom([]event.Verdict{event.Deny, event.Allow}).Draw(t, "answer")}
		if rapid.Bool().Draw(t, "with a new input") {
			answer.Input = json.RawMessage(`{"a":1}`)
		}
		got := gate.NewEngine(gate.ForClaude(policies...), &gate.EngineOptions{Approver: answering(answer)}).Decide(context.Background(), toolCall("c", "Bash", `{}`))
		same := func(v event.PolicyVerdict) bool {
			return v.Policy == got.Policy && v.Verdict != nil && *v.Verdict == got.Verdict && v.Reason == got.Reason
		}
		denies := func(v event.PolicyVerdict) bool { return v.Verdict != nil && *v.Verdict == event.Deny }
		if !slices.ContainsFunc(got.Chain, same) || slices.ContainsFunc(got.Chain, denies) != (got.Verdict == event.Deny) {
			t.Fatalf("decision %v, chain %q", got, chainLines(got))
		}
	})
}
