// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/tool"
)

// decides makes a policy that always decides the same.
func decides(name string, stage gate.Stage, d event.Decision) gate.Policy {
	return gate.Policy{Name: name, Stage: stage, Judge: func(*gate.Call, *gate.Facts) (event.Decision, bool) { return d, true }}
}

func abstains(name string) gate.Policy {
	return gate.Policy{Name: name, Judge: func(*gate.Call, *gate.Facts) (event.Decision, bool) { return event.Decision{}, false }}
}

func denies(name string, stage gate.Stage) gate.Policy {
	return decides(name, stage, event.Decision{Reason: name + " says no"})
}

func asks(name string) gate.Policy {
	return decides(name, gate.StageCustom, event.Decision{Verdict: event.Ask, Reason: name + " asks"})
}

func allows(name string) gate.Policy {
	return decides(name, gate.StageCustom, event.Decision{Verdict: event.Allow})
}

// decide asks a gate about a tool, by name alone.
func decide(g *gate.Gate, name string) event.Decision {
	return g.Decide(event.ToolCall{ID: "toolu_1", Name: name}, gate.Facts{})
}

// A declared tool is enough for a gate: it never runs one.
func declared(t testing.TB, name string, opts ...tool.Option) *tool.Tool {
	t.Helper()
	made, err := tool.New[tool.None, string](name, "A tool of the test.", nil, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestGate_DenyThenAskThenAllowThenOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		policies []gate.Policy
		want     event.Decision
	}{
		"nothing at all":                   {nil, event.Decision{Reason: "Tool not allowed: Frob" + howToAllow, Policy: "otherwise"}},
		"all abstain":                      {[]gate.Policy{abstains("a"), {Name: "empty"}}, event.Decision{Reason: "Tool not allowed: Frob" + howToAllow, Policy: "otherwise"}},
		"the rule allows":                  {[]gate.Policy{abstains("a"), gate.Default(event.Allow)}, event.Decision{Verdict: event.Allow, Policy: "otherwise"}},
		"the rule asks":                    {[]gate.Policy{gate.Default(event.Allow), gate.Default(event.Ask)}, event.Decision{Verdict: event.Ask, Reason: "No policy knows the tool Frob.", Policy: "otherwise"}},
		"the strictest rule holds":         {[]gate.Policy{gate.Default(event.Allow), gate.Default(event.Deny), gate.Default(event.Ask)}, event.Decision{Reason: "Tool not allowed: Frob" + howToAllow, Policy: "otherwise"}},
		"allow beats the rule":             {[]gate.Policy{gate.Default(event.Deny), allows("a")}, event.Decision{Verdict: event.Allow, Policy: "a"}},
		"ask beats allow":                  {[]gate.Policy{allows("a"), asks("b"), allows("c")}, event.Decision{Verdict: event.Ask, Reason: "b asks", Policy: "b"}},
		"the first question gives reasons": {[]gate.Policy{asks("a"), asks("b")}, event.Decision{Verdict: event.Ask, Reason: "a asks", Policy: "a"}},
		"deny beats ask":                   {[]gate.Policy{asks("a"), allows("b"), denies("c", gate.StageCustom)}, event.Decision{Reason: "c says no", Policy: "c"}},
		"a denial without a reason":        {[]gate.Policy{decides("mute", 0, event.Decision{})}, event.Decision{Reason: "Denied by policy mute. Continue without this call.", Policy: "mute"}},
		"an unknown verdict":               {[]gate.Policy{decides("odd", 0, event.Decision{Verdict: 9, Reason: "nine"})}, event.Decision{Reason: "nine", Policy: "odd"}},
		"a policy may name another":        {[]gate.Policy{decides("outer", 0, event.Decision{Verdict: event.Allow, Policy: "inner"})}, event.Decision{Verdict: event.Allow, Policy: "inner"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.CallID, c.want.Tool = "toolu_1", "Frob"
			if diff := cmp.Diff(c.want, decide(gate.ForClaude(c.policies...), "Frob")); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGate_FirstDenialByStageGivesTheReason(t *testing.T) {
	order := []gate.Policy{
		denies("limits", gate.StageLimits), denies("lists", gate.StageLists), denies("risk", gate.StageRisk),
		denies("capabilities", gate.StageCapabilities), denies("session", gate.StageSession), denies("custom", gate.StageCustom), denies("custom 2", gate.StageCustom),
	}
	for i := range order {
		rest := slices.Clone(order[i:])
		if want, got := rest[0].Name+" says no", decide(gate.ForClaude(rest...), "x").Reason; got != want {
			t.Errorf("in order from %d: reason %q, want %q", i, got, want)
		}
		if i == len(order)-1 {
			break
		}
		last := rest[len(rest)-2:] // of one stage: their order is theirs
		backwards := append(slices.Clone(last), rest[:len(rest)-2]...)
		slices.Reverse(backwards[2:])
		if want, got := rest[0].Name+" says no", decide(gate.ForClaude(backwards...), "x").Reason; got != want {
			t.Errorf("backwards from %d: reason %q, want %q", i, got, want)
		}
	}
}

func TestGate_PanickingPolicyDenies(t *testing.T) {
	boom := gate.Policy{Name: "boom", Stage: gate.StageCustom, Judge: func(*gate.Call, *gate.Facts) (event.Decision, bool) { panic("no fuse") }}
	got := decide(gate.ForClaude(allows("a"), boom), "Read")
	if want := (event.Decision{CallID: "toolu_1", Tool: "Read", Reason: "Policy boom failed: no fuse. Continue without this call.", Policy: "boom"}); !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

type brokenLookup struct{}

func (brokenLookup) Lookup(string) (*tool.Tool, bool) { panic("no fuse") }

func TestGate_PanickingLookupOrReasonDenies(t *testing.T) {
	for name, p := range map[string]gate.Policy{
		"lookup":   gate.Knows("ours", brokenLookup{}),
		"the rule": {Otherwise: &gate.Otherwise{Reason: func(string) string { panic("no fuse") }}},
	} {
		got := decide(gate.ForClaude(p), "Frob")
		if want := (event.Decision{CallID: "toolu_1", Tool: "Frob", Reason: "The gate failed: no fuse. Continue without this call.", Policy: "gate"}); !cmp.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// rewrites replaces one input by another.
func rewrites(name, from, to string, v event.Verdict) gate.Policy {
	return gate.Policy{Name: name, Judge: func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) {
		if string(c.Input) != from {
			return event.Decision{}, false
		}
		return event.Decision{Verdict: v, Reason: name, Input: json.RawMessage(to)}, true
	}}
}

func deniesInput(name, input string) gate.Policy {
	return gate.Policy{Name: name, Judge: func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) {
		return event.Decision{Reason: "not " + input}, string(c.Input) == input
	}}
}

func TestGate_RewrittenInputIsJudgedByAllPolicies(t *testing.T) {
	const disagree = "x is denied: the policies do not agree on its input. Continue without this call."
	for name, c := range map[string]struct {
		policies []gate.Policy
		want     event.Verdict
		reason   string
		input    string
	}{
		"it is passed on":                    {[]gate.Policy{rewrites("r", `1`, `2`, event.Allow)}, event.Allow, "r", `2`},
		"a later policy denies it":           {[]gate.Policy{rewrites("r", `1`, `2`, event.Allow), deniesInput("d", `2`)}, event.Deny, "not 2", ""},
		"an earlier policy denies it":        {[]gate.Policy{deniesInput("d", `2`), rewrites("r", `1`, `2`, event.Allow)}, event.Deny, "not 2", ""},
		"what it replaces may be forbidden":  {[]gate.Policy{rewrites("r", `1`, `2`, event.Allow), deniesInput("d", `1`)}, event.Allow, "r", `2`},
		"a question about it stays":          {[]gate.Policy{rewrites("r", `1`, `2`, event.Ask), allows("a")}, event.Ask, "r", `2`},
		"one policy works on another's":      {[]gate.Policy{rewrites("r", `1`, `2`, event.Allow), rewrites("s", `2`, `3`, event.Allow)}, event.Allow, "r", `3`},
		"in a circle":                        {[]gate.Policy{rewrites("r", `1`, `2`, event.Allow), rewrites("s", `2`, `1`, event.Allow), rewrites("t", `1`, `3`, event.Allow), rewrites("u", `3`, `1`, event.Allow)}, event.Deny, disagree, ""},
		"policies that do not agree":         {[]gate.Policy{rewrites("s", `2`, `1`, event.Allow), rewrites("r", `1`, `2`, event.Allow)}, event.Deny, disagree, ""},
		"the same bytes again are no change": {[]gate.Policy{rewrites("r", `1`, `1`, event.Allow)}, event.Allow, "r", ""},
		"a denial has no input":              {[]gate.Policy{decides("d", 0, event.Decision{Reason: "no", Input: json.RawMessage(`2`)})}, event.Deny, "no", ""},
		"a question about the new input":     {[]gate.Policy{asksInput("q", `2`), rewrites("r", `1`, `2`, event.Allow)}, event.Ask, "about 2", `2`},
		"a question about the old one stays": {[]gate.Policy{asksInput("q", `1`), rewrites("r", `1`, `2`, event.Allow)}, event.Ask, "about 1", `2`},
	} {
		t.Run(name, func(t *testing.T) {
			got := gate.ForClaude(c.policies...).Decide(event.ToolCall{Name: "x", Input: json.RawMessage(`1`)}, gate.Facts{})
			if got.Verdict != c.want || got.Reason != c.reason || string(got.Input) != c.input {
				t.Errorf("got %s %q with input %s, want %s %q with %s", got.Verdict, got.Reason, got.Input, c.want, c.reason, c.input)
			}
		})
	}
}

func asksInput(name, input string) gate.Policy {
	return gate.Policy{Name: name, Judge: func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) {
		return event.Decision{Verdict: event.Ask, Reason: "about " + input}, string(c.Input) == input
	}}
}

func TestGate_ParsesNamesOnce(t *testing.T) {
	ours := tool.Tools{declared(t, "write-file", tool.Mutates, tool.FileWrite), declared(t, "Bash", tool.ReadOnly), declared(t, "a__b")}
	other := tool.Tools{declared(t, "peek", tool.ReadOnly), declared(t, "write-file", tool.Dangerous, tool.NetworkAccess)}
	const all = tool.Mutates | tool.Dangerous
	for name, want := range map[string]gate.Call{
		"Read":                        {Origin: gate.Builtin, Tool: "Read", Risk: tool.ReadOnly},
		"Bash(git status)":            {Origin: gate.Registered, Server: "files", Tool: "Bash", Argument: "git status", Risk: all, Needs: tool.ShellExecute},
		" Write ":                     {Origin: gate.Builtin, Tool: "Write", Risk: tool.Mutates, Needs: tool.FileWrite},
		"Write(/src/**)":              {Origin: gate.Builtin, Tool: "Write", Argument: "/src/**", Risk: tool.Mutates, Needs: tool.FileWrite},
		"write":                       {Tool: "write"},
		"WriteConfig":                 {Tool: "WriteConfig"},
		"write-file":                  {Origin: gate.Registered, Tool: "write-file", Risk: all, Needs: tool.FileWrite | tool.NetworkAccess},
		"mcp__files__write-file":      {Origin: gate.Registered, Server: "files", Tool: "write-file", Risk: tool.Mutates, Needs: tool.FileWrite},
		"mcp__files__Bash":            {Origin: gate.Registered, Server: "files", Tool: "Bash", Risk: tool.ReadOnly},
		"mcp__files__a__b":            {Origin: gate.Registered, Server: "files", Tool: "a__b"},
		"mcp__files__gone":            {Origin: gate.Foreign, Server: "files", Tool: "gone"},
		"mcp__my__other_one__peek":    {Origin: gate.Registered, Server: "my__other_one", Tool: "peek", Risk: tool.ReadOnly},
		"mcp__my__other_one__peek(x)": {Origin: gate.Registered, Server: "my__other_one", Tool: "peek", Argument: "x", Risk: tool.ReadOnly},
		"mcp__theirs__write-file":     {Origin: gate.Foreign, Server: "theirs", Tool: "write-file"},
		"mcp__theirs__Read":           {Origin: gate.Foreign, Server: "theirs", Tool: "Read"},
		"mcp__files":                  {Origin: gate.Foreign, Server: "files"},
		"mcp__":                       {Origin: gate.Foreign},
		"(odd)":                       {Tool: "(odd)"},
		"":                            {},
	} {
		t.Run(name, func(t *testing.T) {
			var got gate.Call
			see := gate.Policy{Judge: func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) { got = *c; return event.Decision{}, false }}
			g := gate.ForClaude(see, gate.Knows("files", ours), gate.Knows("my__other.one", other), gate.Knows("my", tool.Tools{}))
			decide(g, name)
			want.ToolCall = event.ToolCall{ID: "toolu_1", Name: name}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(gate.Call{})); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"Bash(ls)", "mcp__files__save", "mcp__files__x__save(y)", "mcp__theirs__Write", " mcp__", "save", "()", "mcp__files__", "default:save"} {
		f.Add(name)
	}
	g := gate.ForClaude(gate.Knows("files", tool.Tools{declared(f, "save", tool.Mutates)}), gate.Policy{Name: "see", Judge: func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) {
		isMCP := strings.HasPrefix(strings.TrimSpace(c.Name), "mcp__")
		switch {
		case isMCP && c.Origin != gate.Foreign && (c.Origin != gate.Registered || c.Server != "files" || c.Tool != "save" && c.Tool != "default:save"):
			panic("passes for one of ours")
		case c.Origin == gate.Foreign && (c.Risk != 0 || c.Needs != 0 || !isMCP):
			panic("is foreign and known")
		case !isMCP && c.Server != "" && (c.Server != "files" || c.Origin != gate.Registered):
			panic("has a server without naming one or being of one")
		case isMCP && !strings.Contains(c.Name, c.Server), !strings.Contains(c.Name, c.Tool), !strings.Contains(c.Name, c.Argument):
			panic("is not made of its parts")
		}
		return event.Decision{Verdict: event.Allow}, true
	}})
	f.Fuzz(func(t *testing.T, name string) {
		if d := decide(g, name); d.Verdict != event.Allow {
			t.Errorf("%q %s", name, d.Reason)
		}
	})
}

func TestNew_NamesEveryInvalidPolicy(t *testing.T) {
	g, err := gate.New(
		gate.FromCapabilities(&gate.Permissions{Mode: "yolo"}),
		gate.FromRisk(gate.RiskOptions{Registry: tool.Tools{nil}}),
		gate.Knows("ours", nil),
		gate.Policy{Name: "odd", Otherwise: &gate.Otherwise{Verdict: 9}},
		allows("fine"),
	)
	if g != nil || err == nil {
		t.Fatalf("New gives %v, %v; want an error and no gate", g, err)
	}
	for _, want := range []string{`policy capabilities: invalid Mode "yolo"`, "policy risk: Invalid tool input: tool 0 is nil", "policy tools: Invalid input", "policy odd: Otherwise.Verdict is 9"} {
		if !strings.Contains(advice.Text(err), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(advice.Text(err), "fine") {
		t.Errorf("the error names a policy that is right:\n%v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Must does not panic")
		}
	}()
	gate.ForClaude(gate.Knows("ours", nil))
}

// policyGen draws policies that decide the same of every call, or nothing.
func policyGen() *rapid.Generator[gate.Policy] {
	return rapid.Custom(func(t *rapid.T) gate.Policy {
		p := gate.Policy{Name: rapid.StringMatching(`[a-z]{3}`).Draw(t, "name"), Stage: gate.Stage(rapid.IntRange(0, 5).Draw(t, "stage"))}
		if v := rapid.IntRange(-1, 2).Draw(t, "verdict"); v >= 0 {
			p.Judge = decides("", 0, event.Decision{Verdict: event.Verdict(v)}).Judge
		}
		if v := rapid.IntRange(-1, 2).Draw(t, "otherwise"); v >= 0 {
			p.Otherwise = &gate.Otherwise{Verdict: event.Verdict(v)}
		}
		if rapid.Bool().Draw(t, "rewrites") {
			from, to := rapid.IntRange(1, 3).Draw(t, "from"), rapid.IntRange(1, 3).Draw(t, "to")
			p.Judge = rewrites("", fmt.Sprint(from), fmt.Sprint(to), event.Verdict(rapid.IntRange(1, 2).Draw(t, "rewritten"))).Judge
		}
		return p
	})
}

func TestGate_AddingADenialNeverMakesACallPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies := rapid.SliceOfN(policyGen(), 0, 6).Draw(t, "policies")
		denial := deniesInput("denial", fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "denied")))
		denial.Stage = gate.Stage(rapid.IntRange(0, 5).Draw(t, "stage"))
		more := slices.Insert(slices.Clone(policies), rapid.IntRange(0, len(policies)).Draw(t, "place"), denial)

		call := event.ToolCall{Name: "x", Input: json.RawMessage(`1`)}
		before, after := gate.ForClaude(policies...).Decide(call, gate.Facts{}), gate.ForClaude(more...).Decide(call, gate.Facts{})
		if after.Verdict > before.Verdict {
			t.Errorf("%s became %s by a denial", before.Verdict, after.Verdict)
		}
	})
}

func TestGate_StrictestJudgementIsTheVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies := rapid.SliceOfN(policyGen().Filter(func(p gate.Policy) bool { return p.Judge == nil || opinion(p).Input == nil }), 0, 8).Draw(t, "policies")
		opinions, rules := []event.Verdict{}, []event.Verdict{}
		for _, p := range policies {
			if p.Judge != nil {
				opinions = append(opinions, opinion(p).Verdict)
			}
			if p.Otherwise != nil {
				rules = append(rules, p.Otherwise.Verdict)
			}
		}
		want := event.Deny
		switch {
		case len(opinions) > 0:
			want = slices.Min(opinions)
		case len(rules) > 0:
			want = slices.Min(rules)
		}
		if got := decide(gate.ForClaude(policies...), "x").Verdict; got != want {
			t.Errorf("opinions %v and rules %v give %s, want %s", opinions, rules, got, want)
		}
	})
}

// opinion is what a drawn policy decides about the inputs that it might rewrite.
func opinion(p gate.Policy) event.Decision {
	for _, input := range []string{`1`, `2`, `3`} {
		if d, ok := p.Judge(&gate.Call{ToolCall: event.ToolCall{Input: json.RawMessage(input)}}, &gate.Facts{}); ok {
			return d
		}
	}
	return event.Decision{}
}

func TestDefault_DecidesCallsThatNoPolicyKnows(t *testing.T) {
	for _, c := range []struct {
		name     string
		policies []gate.Policy
		want     event.Verdict
	}{
		{"alone", []gate.Policy{gate.Default(event.Allow)}, event.Allow},
		{"beside a limit that is not reached", []gate.Policy{gate.Limits(gate.LimitOptions{MaxCalls: 3}), gate.Default(event.Ask)}, event.Ask},
		{"beside a denial", []gate.Policy{gate.DenyTools("Read"), gate.Default(event.Allow)}, event.Deny},
		{"beside a stricter rule", []gate.Policy{gate.FromRisk(gate.RiskOptions{}), gate.Default(event.Allow)}, event.Deny},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := decide(gate.ForClaude(c.policies...), "Read"); d.Verdict != c.want {
				t.Errorf("got %s (%s), want %s", d.Verdict, d.Reason, c.want)
			}
		})
	}
}
