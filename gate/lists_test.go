// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// known makes the gate know a registry with these tools.
func known(key string, names ...string) Policy {
	var tools []*tool.Tool
	for _, name := range names {
		tools = append(tools, &tool.Tool{Name: name, Description: "A tool."})
	}
	return Knows(key, tool.MustRegistry(nil, tools...))
}

func TestAllowTools_Decide(t *testing.T) {
	const allow, deny = event.Allow, event.Deny
	cases := []struct {
		name  string
		list  []string
		calls map[string]event.Verdict
	}{
		{"nothing", []string{}, map[string]event.Verdict{"Read": deny, "find": deny, "mcp__ours__find": deny, "": deny}},
		{"a tool of the agent", []string{"Read"}, map[string]event.Verdict{
			"Read": allow, " Read ": allow, "Read(x)": allow, "read": deny, "Write": deny, "ReadX": deny,
			"mcp__other__Read": deny, "mcp__Read": deny, "mcp__ours__Read": deny,
		}},
		{"a tool of ours by its bare name", []string{" find "}, map[string]event.Verdict{
			"find": allow, "mcp__ours__find": allow, "mcp__other__find": deny, "mcp__ours__save": deny, "save": deny,
		}},
		{"a tool of ours by its full name", []string{"mcp__ours__find"}, map[string]event.Verdict{
			"find": allow, "mcp__ours__find": allow, "mcp__other__find": deny, "save": deny, "mcp__ours__find2": deny,
		}},
		{"a server of ours", []string{"mcp__ours"}, map[string]event.Verdict{
			"find": allow, "save": allow, "mcp__ours__find": allow, "mcp__ours__new": allow, "mcp__other__find": deny, "mcp__ours2__find": deny, "Read": deny,
		}},
		{"a foreign tool", []string{"mcp__other__find"}, map[string]event.Verdict{
			"find": deny, "mcp__ours__find": deny, "mcp__other__find": allow, "mcp__other__save": deny,
		}},
		{"a foreign server", []string{"mcp__other__*"}, map[string]event.Verdict{
			"mcp__other__find": allow, "mcp__other__x": allow, "mcp__others__x": deny, "mcp__ours__find": deny, "other": deny,
		}},
		{"a server with odd letters", []string{"mcp__my.server__x"}, map[string]event.Verdict{"mcp__my_server__x": allow, "mcp__my-server__x": deny}},
		{"with an argument", []string{"Bash(ls)", "Read"}, map[string]event.Verdict{"Bash(ls)": allow, "Bash(rm)": deny, "Bash": deny, "Read": allow}},
		{"every command", []string{"Bash(*)"}, map[string]event.Verdict{"Bash(ls > x)": allow, "Bash": allow}},
		{"what the CLI needs to use any tool", []string{"Read"}, map[string]event.Verdict{"ToolSearch": allow, "StructuredOutput": allow, "mcp__other__ToolSearch": deny}},
		{"the same with an empty list", []string{}, map[string]event.Verdict{"ToolSearch": allow, "Read": deny}},
		{"with an argument and without", []string{"Bash(ls)", "Bash"}, map[string]event.Verdict{"Bash(ls)": allow, "Bash(rm)": allow}},
	}
	for _, c := range cases {
		g := ForClaude(known("ours", "find", "save"), AllowTools(c.list...))
		for name, want := range c.calls {
			got := g.Decide(event.ToolCall{Name: name}, Facts{})
			if got.Verdict != want {
				t.Errorf("%s: %q: got %s (%s), want %s", c.name, name, got.Verdict, got.Reason, want)
			}
			if want == deny && !strings.Contains(got.Reason, name) {
				t.Errorf("%s: the reason %q does not name the tool %q", c.name, got.Reason, name)
			}
		}
	}
}

func TestAllowTools_NilListDoesNotDecide(t *testing.T) {
	var list []string
	g := ForClaude(AllowTools(list...), Policy{Otherwise: &Otherwise{Verdict: event.Allow}})
	if got := g.Decide(event.ToolCall{Name: "Read"}, Facts{}); got.Verdict != event.Allow {
		t.Errorf("got %s (%s), want allow", got.Verdict, got.Reason)
	}
}

func TestDenyToolsAndAskTools_Decide(t *testing.T) {
	list := []string{"Write", "save", "mcp__other", "mcp__ours__find"}
	hit := []string{"Write", "save", "mcp__ours__save", "mcp__other__x", "mcp__other__y__z", "find", "mcp__ours__find"}
	miss := []string{"Read", "mcp__third__Write", "mcp__third__save", "mcp__others__x", "mcp__third__find"}
	for _, c := range []struct {
		policy Policy
		want   event.Verdict
	}{{DenyTools(list...), event.Deny}, {AskTools(list...), event.Ask}} {
		g := ForClaude(known("ours", "find", "save"), c.policy, Policy{Otherwise: &Otherwise{Verdict: event.Allow}})
		for _, name := range hit {
			if got := g.Decide(event.ToolCall{Name: name}, Facts{}); got.Verdict != c.want || !strings.Contains(got.Reason, name) {
				t.Errorf("%s %s: got %s (%s), want %s", c.policy.Name, name, got.Verdict, got.Reason, c.want)
			}
		}
		for _, name := range miss {
			if got := g.Decide(event.ToolCall{Name: name}, Facts{}); got.Verdict != event.Allow {
				t.Errorf("%s %s: got %s (%s), want allow", c.policy.Name, name, got.Verdict, got.Reason)
			}
		}
	}
}

func TestDenyTools_OverridesAllowTools(t *testing.T) {
	g := ForClaude(AllowTools("Write", "Read"), DenyTools("Write"))
	if got := g.Decide(event.ToolCall{Name: "Write"}, Facts{}); got.Verdict != event.Deny || got.Policy != "deny-list" {
		t.Errorf("got %s by %s, want deny by deny-list", got.Verdict, got.Policy)
	}
}

// Where it is not clear which server is meant, a permission does not hold and a denial does.
func TestLists_AmbiguousServerIsDeniedButNotAllowed(t *testing.T) {
	two := []Policy{known("a", "find"), known("b", "find"), known("x__y", "z")}
	allow := ForClaude(append(two, AllowTools("mcp__a__find", "mcp__x"))...)
	deny := ForClaude(append(two, DenyTools("mcp__a__find", "mcp__x", "mcp__k__l"), Policy{Otherwise: &Otherwise{Verdict: event.Allow}})...)
	for name, want := range map[string][2]event.Verdict{
		"find":           {event.Deny, event.Deny},
		"mcp__a__find":   {event.Allow, event.Deny},
		"mcp__b__find":   {event.Deny, event.Allow},
		"mcp__x__y__z":   {event.Deny, event.Deny}, // of the server x__y, which is not x
		"mcp__k__l__m":   {event.Deny, event.Deny}, // of k or of k__l
		"mcp__x__other":  {event.Allow, event.Deny},
		"mcp__xx__other": {event.Deny, event.Allow},
	} {
		if got := allow.Decide(event.ToolCall{Name: name}, Facts{}); got.Verdict != want[0] {
			t.Errorf("allowing, %s: got %s, want %s", name, got.Verdict, want[0])
		}
		if got := deny.Decide(event.ToolCall{Name: name}, Facts{}); got.Verdict != want[1] {
			t.Errorf("denying, %s: got %s, want %s", name, got.Verdict, want[1])
		}
	}
}

// Earlier versions had our tools under another server. Rules about it still mean them, and a server of that name.
func TestLists_FormerServerNameMeansRegisteredTools(t *testing.T) {
	for _, c := range []struct {
		server, entry, call string
		want                bool
	}{
		{"drover", "mcp__wink__save", "mcp__drover__save", true},
		{"drover", "mcp__wink__save", "save", true},
		{"drover", "mcp__wink", "mcp__drover__save", true},
		{"drover", "mcp__wink__*", "mcp__drover__find", true},
		{"drover", "mcp__wink__save", "mcp__drover__find", false},
		{"drover", "mcp__wink__save", "mcp__wink__save", true},
		{"drover", "mcp__winks__save", "mcp__drover__save", false},
		{"drover", "mcp__wink__save", "mcp__other__save", false},
		{"desk", "mcp__wink__save", "mcp__desk__save", false},
		{"wink", "mcp__wink__save", "mcp__wink__save", true},
	} {
		all := Policy{Otherwise: &Otherwise{Verdict: event.Allow}}
		gates := map[string]struct {
			gate  *Gate
			facts Facts
			hit   event.Verdict
		}{
			"allow":          {gate: Must(known(c.server, "save", "find"), AllowTools(c.entry)), hit: event.Allow},
			"deny":           {gate: Must(known(c.server, "save", "find"), DenyTools(c.entry), all), hit: event.Deny},
			"require before": {gate: Must(known(c.server, "save", "find"), RequireBefore(map[string][]string{c.entry: {"x"}}), all), hit: event.Deny},
		}
		if !strings.HasSuffix(c.entry, "__*") && strings.Count(c.entry, "__") == 2 {
			gates["blocked"] = struct {
				gate  *Gate
				facts Facts
				hit   event.Verdict
			}{Must(known(c.server, "save", "find"), Blocked(), all), Facts{Blocked: map[string]bool{c.entry: true}}, event.Deny}
		}
		for name, g := range gates {
			got := g.gate.Decide(event.ToolCall{Name: c.call}, g.facts)
			if hit := got.Verdict == g.hit; hit != c.want {
				t.Errorf("%s of %s, call of %s under %s: got %s (%s), want a hit: %t", name, c.entry, c.call, c.server, got.Verdict, got.Reason, c.want)
			}
		}
	}
}

func TestLists_InvalidEntriesAreErrors(t *testing.T) {
	for _, entry := range []string{"", " ", "*", "Re*d", "mcp__", "mcp__*", "mcp__a*", "mcp__a__b*", "Write(", "Write()", "Write( )", "(x)", "Write x", "a:b", "Write(x", "Read)"} {
		for _, p := range []Policy{AllowTools(entry), DenyTools("Read", entry), AskTools(entry)} {
			_, err := New(p)
			if err == nil {
				t.Errorf("%s %q: got no error", p.Name, entry)
			} else if !strings.Contains(advice.Text(err), p.Name) {
				t.Errorf("%s %q: the error does not name the policy: %v", p.Name, entry, err)
			}
		}
	}
}

func TestCustom_Decide(t *testing.T) {
	g := ForClaude(Custom("office hours", func(c *Call, _ *Facts) (event.Decision, bool) {
		return event.Decision{Verdict: event.Ask, Reason: "It is late."}, c.Tool == "deploy"
	}), AllowTools("deploy", "Read"))
	if got := g.Decide(event.ToolCall{Name: "deploy"}, Facts{}); got.Verdict != event.Ask || got.Policy != "office hours" || got.Reason != "It is late." {
		t.Errorf("got %+v, want the question of the function", got)
	}
	if got := g.Decide(event.ToolCall{Name: "Read"}, Facts{}); got.Verdict != event.Allow {
		t.Errorf("got %s, want allow", got.Verdict)
	}
	if _, err := New(Custom("x", nil), Custom("", func(*Call, *Facts) (event.Decision, bool) { return event.Decision{}, false })); err == nil || strings.Count(advice.Text(err), "\n") != 1 {
		t.Errorf("got %v, want two errors", err)
	}
}
