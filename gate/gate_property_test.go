// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/event"
	_ "github.com/drover-agents/drover/internal/testkit"
)

var (
	drawnNames = []string{
		"Read", "Write", "Edit", "Grep", "Bash", "WebFetch", "find", "save", "mcp__ours__find", "mcp__ours__save", "mcp__other__find", "mcp__other__Bash",
		"mcp__ours", "mcp__other", "nothing",
	}
	drawnRules = append([]string{
		"Write(/src/**)", "Edit(/**)", "Read(//etc/**)", "Read(.env)", "Bash(git status:*)", "Bash(rm:*)", "Bash(ls)", "find(/src/**)",
	}, drawnNames...)
	drawnInputs = []string{
		"", `{}`, `{"file_path":"/w/src/a"}`, `{"file_path":"src/../.env"}`, `{"path":"/etc/passwd"}`, `{"command":"git status"}`, `{"command":"ls; rm x"}`, `{"command":"ls"}`,
		`{"file_path":7}`, `[`, `{"path":"/w/src"}`,
	}
)

func drawCall(t *rapid.T) event.ToolCall {
	return event.ToolCall{
		ID: "1", Name: rapid.SampledFrom(drawnNames).Draw(t, "name"),
		Input: json.RawMessage(rapid.SampledFrom(drawnInputs).Draw(t, "input")),
	}
}

func drawNames(t *rapid.T, label string) map[string]bool {
	return set(rapid.SliceOfN(rapid.SampledFrom(drawnNames), 0, 3).Draw(t, label)...)
}

func drawFacts(t *rapid.T) Facts {
	f := Facts{
		Now: time.Unix(rapid.Int64Range(1, 3).Draw(t, "now"), 0), Calls: rapid.IntRange(0, 3).Draw(t, "calls"),
		Invoked: drawNames(t, "invoked"), Blocked: drawNames(t, "blocked"),
		ReadPaths: set(rapid.SliceOfN(rapid.SampledFrom([]string{"/w/src/a", "/w/.env"}), 0, 2).Draw(t, "read")...),
		Dir:       rapid.SampledFrom([]string{"", "/w", "/etc"}).Draw(t, "dir"),
		Target: Target{
			Path:    rapid.SampledFrom([]string{"", "/w/src/a", "/etc/passwd"}).Draw(t, "target"),
			Missing: rapid.Bool().Draw(t, "missing"),
		},
	}
	if rapid.Bool().Draw(t, "deadline") {
		f.Deadline = time.Unix(2, 0)
	}
	return f
}

func drawRules(t *rapid.T, label string) []string {
	return rapid.SliceOfN(rapid.SampledFrom(drawnRules), 0, 4).Draw(t, label)
}

// restricting makes a policy that denies or asks, and never allows.
func restricting(t *rapid.T) Policy {
	switch rapid.IntRange(0, 6).Draw(t, "restricting") {
	case 0:
		return Limits(LimitOptions{MaxCalls: rapid.IntRange(0, 3).Draw(t, "max")})
	case 1:
		return DenyTools(drawRules(t, "deny")...)
	case 2:
		return AskTools(drawRules(t, "ask")...)
	case 3:
		return Blocked()
	case 4:
		return RequireBefore(map[string][]string{rapid.SampledFrom(drawnNames).Draw(t, "after"): {"find", "Read"}})
	case 5:
		return ReadBeforeWrite(ReadBeforeWriteOptions{})
	}
	v := rapid.SampledFrom([]event.Verdict{event.Deny, event.Ask, 99}).Draw(t, "verdict")
	stage := Stage(rapid.IntRange(0, int(StageCustom)).Draw(t, "stage"))
	name := rapid.SampledFrom(drawnNames).Draw(t, "about")
	p := Custom("own", func(c *Call, _ *Facts) (event.Decision, bool) {
		return event.Decision{Verdict: v}, c.Tool == name && c.Origin != Foreign
	})
	p.Stage = stage
	return p
}

// anyPolicy makes a policy of any kind, with a name of its own.
func anyPolicy(t *rapid.T, n int) Policy {
	var p Policy
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		p = AllowTools(drawRules(t, "allow")...)
	case 1:
		p = Rules(RuleOptions{Root: "/w", Allow: drawRules(t, "allow"), Ask: drawRules(t, "ask"), Deny: drawRules(t, "deny")})
	case 2:
		p = Policy{Otherwise: &Otherwise{Verdict: event.Verdict(rapid.IntRange(0, 2).Draw(t, "otherwise"))}}
	default:
		p = restricting(t)
	}
	p.Name = fmt.Sprintf("%s %d", p.Name, n)
	return p
}

func drawPolicies(t *rapid.T) []Policy {
	policies := []Policy{known("ours", "find", "save")}
	for i := range rapid.IntRange(0, 5).Draw(t, "policies") {
		policies = append(policies, anyPolicy(t, i))
	}
	return policies
}

func TestGate_RestrictingPolicyNeverLoosens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies, call, facts := drawPolicies(t), drawCall(t), drawFacts(t)
		before := ForClaude(policies...).Decide(call, facts)
		at := rapid.IntRange(0, len(policies)).Draw(t, "at")
		extra := restricting(t)
		after := ForClaude(slices.Insert(slices.Clone(policies), at, extra)...).Decide(call, facts)
		if before.Verdict == event.Deny && after.Verdict == event.Ask && before.Policy == "otherwise" {
			return // a policy knows the call now, and asks
		}
		if after.Verdict > before.Verdict {
			t.Fatalf("%s turned %s by %s into %s by %s", extra.Name, before.Verdict, before.Policy, after.Verdict, after.Policy)
		}
	})
}

func TestGate_DenyNeverBecomesAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies, call, facts := drawPolicies(t), drawCall(t), drawFacts(t)
		before := ForClaude(policies...).Decide(call, facts)
		after := ForClaude(append(policies, DenyTools(drawRules(t, "extra")...))...).Decide(call, facts)
		if after.Verdict != event.Deny && (after.Verdict != before.Verdict || after.Reason != before.Reason) {
			t.Fatalf("a deny list turned %s (%s) into %s (%s)", before.Verdict, before.Reason, after.Verdict, after.Reason)
		}
		all := Custom("no", func(*Call, *Facts) (event.Decision, bool) { return event.Decision{}, true })
		if got := ForClaude(append(policies, all)...).Decide(call, facts); got.Verdict != event.Deny {
			t.Fatalf("with a policy that denies all: got %s", got.Verdict)
		}
	})
}

func TestGate_OrderOfPoliciesDoesNotChangeTheVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies, call, facts := drawPolicies(t), drawCall(t), drawFacts(t)
		seed := rapid.Uint64().Draw(t, "seed")
		shuffled := slices.Clone(policies)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		before, after := ForClaude(policies...).Decide(call, facts), ForClaude(shuffled...).Decide(call, facts)
		if before.Verdict != after.Verdict {
			t.Fatalf("in another order: got %s by %s, want %s by %s", after.Verdict, after.Policy, before.Verdict, before.Policy)
		}
		stages := map[Stage]bool{}
		for _, p := range policies {
			judges := p.Judge != nil || p.compile != nil
			if judges && stages[p.Stage] {
				return // within a stage the order decides who gives the reason
			}
			stages[p.Stage] = judges || stages[p.Stage]
		}
		if diff := cmp.Diff(before, after); diff != "" && before.Policy != "otherwise" {
			t.Fatalf("in another order (-before +after):\n%s", diff)
		}
	})
}

func TestGate_DecisionsAreDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies, call, facts := drawPolicies(t), drawCall(t), drawFacts(t)
		g := ForClaude(policies...)
		input := slices.Clone(call.Input)
		first := g.Decide(call, facts)
		if diff := cmp.Diff(first, g.Decide(call, facts)); diff != "" {
			t.Fatalf("the second time (-first +second):\n%s", diff)
		}
		if diff := cmp.Diff(first, ForClaude(policies...).Decide(call, facts)); diff != "" {
			t.Fatalf("by a gate of the same policies (-first +second):\n%s", diff)
		}
		if string(call.Input) != string(input) {
			t.Fatalf("the input became %s", call.Input)
		}
	})
}

func TestGate_RegisteredToolHasOneVerdictByBothNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies, call, facts := drawPolicies(t), drawCall(t), drawFacts(t)
		g := ForClaude(policies...)
		name := rapid.SampledFrom([]string{"find", "save"}).Draw(t, "tool")
		decide := func(name string) event.Decision {
			call.Name = name
			return g.Decide(call, facts)
		}
		if bare, full := decide(name), decide("mcp__ours__"+name); bare.Verdict != full.Verdict || bare.Policy != full.Policy {
			t.Fatalf("%s: got %s by %s, with its server %s by %s", name, bare.Verdict, bare.Policy, full.Verdict, full.Policy)
		}
	})
}
