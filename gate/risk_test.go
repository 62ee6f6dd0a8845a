// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// The verdicts and messages of the matrix.
const (
	yes       = ""
	readOnly  = "Read-only mode: mutating tools disabled."
	apply     = "Use --apply to allow mutating tools."
	dangerous = "Use --dangerous to allow this tool."
)

// riskMatrix has a row for each kind of tool and a column for each setting: everything; no danger; no
// mutation; neither; read-only; read-only and no danger.
var riskMatrix = map[string][6]string{
	"plain":     {yes, yes, yes, yes, yes, yes},
	"readonly":  {yes, yes, yes, yes, yes, yes},
	"mutating":  {yes, yes, apply, apply, readOnly, readOnly},
	"dangerous": {yes, dangerous, yes, apply, yes, apply},
	"both":      {yes, dangerous, apply, apply, readOnly, readOnly},
}

var riskColumns = [6]gate.RiskOptions{
	{},
	{DenyDangerous: true},
	{DenyMutation: true},
	{DenyMutation: true, DenyDangerous: true},
	{ReadOnly: true},
	{ReadOnly: true, DenyDangerous: true},
}

// riskTools declares a tool of each kind, in three ways.
func riskTools(t testing.TB) map[string]gate.Lookup {
	t.Helper()
	list := func(made map[string][]tool.Option) gate.Lookup {
		var tools []*tool.Tool
		for name, opts := range made {
			tools = append(tools, declared(t, name, opts...))
		}
		r, err := tool.NewRegistry(nil, tools...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	meta := func(keys ...string) []tool.Option {
		m := map[string]any{}
		for _, key := range keys {
			m[key] = true
		}
		return []tool.Option{tool.WithMetadata(m)}
	}
	return map[string]gate.Lookup{
		"options": list(map[string][]tool.Option{
			"plain": nil, "readonly": {tool.ReadOnly}, "mutating": {tool.Mutates}, "dangerous": {tool.Dangerous}, "both": {tool.Mutates, tool.Dangerous},
		}),
		"metadata": list(map[string][]tool.Option{
			"plain": nil, "readonly": meta("readOnly"), "mutating": meta("mutates"), "dangerous": meta("dangerous"), "both": meta("mutates", "dangerous", "readOnly"),
		}),
		"tags": list(map[string][]tool.Option{
			"plain": nil, "readonly": {tool.WithTags("readonly")}, "mutating": {tool.WithTags("mutating")},
			"dangerous": {tool.WithTags("dangerous")}, "both": {tool.WithTags("mutating", "dangerous")},
		}),
	}
}

func TestFromRisk_MatrixForToolsOfARegistry(t *testing.T) {
	for how, registry := range riskTools(t) {
		for column, opts := range riskColumns {
			opts.Registry, opts.Server = registry, "files"
			g := gate.ForClaude(gate.FromRisk(opts))
			for kind, want := range riskMatrix {
				for _, name := range []string{kind, "mcp__files__" + kind, kind + "(x)"} {
					checkRisk(t, g, how+" "+name, name, column, want[column])
				}
				for _, name := range []string{"mcp__theirs__" + kind, "mcp__" + kind} {
					checkRisk(t, g, how+" "+name, name, column, "Tool not allowed: "+name)
				}
			}
		}
	}
}

func checkRisk(t *testing.T, g *gate.Gate, about, name string, column int, want string) {
	t.Helper()
	d := decide(g, name)
	if d.Reason != want || (d.Verdict == event.Allow) != (want == yes) || d.Verdict == event.Ask {
		t.Errorf("%s in column %d: %s %q, want %q", about, column, d.Verdict, d.Reason, want)
	}
}

func TestFromRisk_MatrixForListsOfNames(t *testing.T) {
	lists := gate.BuiltinLists{
		ReadOnly:  []string{"readonly", "mutating", "both", "dangerous", "mcp__theirs__look"}, // counts only where no other list has the name
		Mutating:  []string{"mutating", "both"},
		Dangerous: []string{"dangerous", "both"},
	}
	for column, opts := range riskColumns {
		opts.Builtin = lists
		g := gate.ForClaude(gate.FromRisk(opts))
		for kind, want := range riskMatrix {
			if kind == "plain" {
				continue // a tool without a list is unknown
			}
			for _, name := range []string{kind, kind + "(ls)"} {
				checkRisk(t, g, name, name, column, want[column])
			}
			checkRisk(t, g, "foreign "+kind, "mcp__theirs__"+kind, column, "Tool not allowed: mcp__theirs__"+kind)
		}
		checkRisk(t, g, "a foreign tool in full", "mcp__theirs__look", column, yes)
		checkRisk(t, g, "unknown", "plain", column, "Tool not allowed: plain"+howToAllow)
	}
}

// howToAllow ends the denial of a tool of the agent that is not in its catalogue.
const howToAllow = ". Use another tool. The catalogue of claude-code does not have this one; to allow it, the caller names it in UnknownTools, and in Tools, in a rule or in RiskOptions.Builtin."

func TestFromRisk_BuiltinListsOverrideTheCatalogue(t *testing.T) {
	own := declared(t, "Write", tool.ReadOnly)
	for name, c := range map[string]struct {
		opts gate.RiskOptions
		tool string
		want string
	}{
		"a list makes Bash harmless":                      {gate.RiskOptions{ReadOnly: true, Builtin: gate.BuiltinLists{ReadOnly: []string{"Bash"}}}, "Bash(ls)", yes},
		"the catalogue does not allow":                    {gate.RiskOptions{}, "Read", "Tool not allowed: Read"},
		"the catalogue denies":                            {gate.RiskOptions{ReadOnly: true, AllowUnknown: true}, "Bash", readOnly},
		"the catalogue denies danger":                     {gate.RiskOptions{DenyDangerous: true, AllowUnknown: true}, "Bash(ls)", dangerous},
		"the unknown rule allows the rest":                {gate.RiskOptions{ReadOnly: true, AllowUnknown: true}, "Read", yes},
		"the unknown rule allows unknown tools":           {gate.RiskOptions{ReadOnly: true, AllowUnknown: true}, "Frob", yes},
		"the unknown rule allows foreign tools":           {gate.RiskOptions{ReadOnly: true, AllowUnknown: true}, "mcp__theirs__Write", yes},
		"what the CLI needs to use any tool is known":     {gate.RiskOptions{ReadOnly: true}, "ToolSearch", yes},
		"but not of another server":                       {gate.RiskOptions{}, "mcp__theirs__ToolSearch", "Tool not allowed: mcp__theirs__ToolSearch"},
		"a tool of ours with a native's name has both":    {gate.RiskOptions{ReadOnly: true, Registry: tool.Tools{own}}, "Write", readOnly},
		"in full it is ours alone":                        {gate.RiskOptions{ReadOnly: true, Registry: tool.Tools{own}}, "mcp__drover__Write", yes},
		"a tool of ours with a list's name has both":      {gate.RiskOptions{DenyDangerous: true, Registry: tool.Tools{declared(t, "x")}, Builtin: gate.BuiltinLists{Dangerous: []string{"x"}}}, "x", dangerous},
		"a strict read-only mode denies danger":           {gate.RiskOptions{ReadOnly: true, Strict: true, Builtin: gate.BuiltinLists{Dangerous: []string{"x"}}}, "x", apply},
		"strictness is about read-only mode alone":        {gate.RiskOptions{Strict: true, Builtin: gate.BuiltinLists{Dangerous: []string{"x"}}}, "x", yes},
		"a message about mutation of one's own":           {gate.RiskOptions{ReadOnly: true, Messages: gate.Messages{Mutating: "M", Dangerous: "D"}}, "Write", "M"},
		"a message about danger of one's own":             {gate.RiskOptions{ReadOnly: true, Strict: true, Builtin: gate.BuiltinLists{Dangerous: []string{"x"}}, Messages: gate.Messages{Mutating: "M", Dangerous: "D"}}, "x", "D"},
		"a message about unknown tools of one's own":      {gate.RiskOptions{Messages: gate.Messages{Unknown: func(name string) string { return "What is " + name + "?" }}}, "Frob(1)", "What is Frob(1)?"},
		"other letters are another name":                  {gate.RiskOptions{Builtin: gate.BuiltinLists{ReadOnly: []string{"Bash"}}}, "bash", "Tool not allowed: bash" + howToAllow},
		"of several tools with a name the last one holds": {gate.RiskOptions{ReadOnly: true, Registry: tool.Tools{declared(t, "x", tool.Mutates), declared(t, "x", tool.ReadOnly)}}, "x", yes},
	} {
		t.Run(name, func(t *testing.T) { checkRisk(t, gate.ForClaude(gate.FromRisk(c.opts)), name, c.tool, 0, c.want) })
	}
}

func TestFromRisk_SeesToolsRegisteredLater(t *testing.T) {
	registry := tool.MustRegistry(nil, declared(t, "early", tool.ReadOnly))
	plain := gate.Must(gate.FromRisk(gate.RiskOptions{Registry: registry, ReadOnly: true}))
	named := gate.Must(gate.FromRisk(gate.RiskOptions{Registry: registry, ReadOnly: true, ToolConfig: func(t *tool.Tool) tool.Presentation {
		if t.Name == "early" {
			return tool.Presentation{}
		}
		return tool.Presentation{Name: "custom_" + t.Name}
	}}))
	type row struct{ Plain, Named string }
	look := func() map[string]row {
		rows := map[string]row{}
		for _, name := range []string{"early", "late", "custom_late", "mcp__drover__custom_late"} {
			rows[name] = row{decide(plain, name).Reason, decide(named, name).Reason}
		}
		return rows
	}
	unknown := func(name string) string { return "Tool not allowed: " + name }
	const full = "mcp__drover__custom_late"
	before := map[string]row{
		"early": {yes, yes}, "late": {unknown("late"), unknown("late")},
		"custom_late": {unknown("custom_late"), unknown("custom_late")}, full: {unknown(full), unknown(full)},
	}
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if err := registry.Add(declared(t, "late", tool.Mutates)); err != nil {
		t.Fatal(err)
	}
	after := map[string]row{
		"early": {yes, yes}, "late": {readOnly, unknown("late")},
		"custom_late": {unknown("custom_late"), readOnly}, full: {unknown(full), readOnly},
	}
	if diff := cmp.Diff(after, look()); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	registry.Remove("late")
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
}

type bareLookup struct{}

func (bareLookup) Lookup(string) (*tool.Tool, bool) { return nil, false }

func TestFromRisk_ToolConfigNeedsAListOfTools(t *testing.T) {
	_, err := gate.New(gate.FromRisk(gate.RiskOptions{Registry: bareLookup{}, ToolConfig: func(*tool.Tool) tool.Presentation { return tool.Presentation{Name: "x"} }}))
	if err == nil || !strings.Contains(advice.Text(err), "ToolConfig") {
		t.Errorf("error %v, want one about ToolConfig", err)
	}
}

// In earlier versions the tools of an evaluation were those of the server wink, and the default of Server was armorer-tools.
func TestRisk_FormerNames(t *testing.T) {
	registry := tool.MustRegistry(nil, declared(t, "save", tool.Mutates), declared(t, "look", tool.ReadOnly))
	for _, c := range []struct {
		opts gate.RiskOptions
		call string
		want event.Verdict
	}{
		{gate.RiskOptions{}, "mcp__armorer-tools__save", event.Deny},
		{gate.RiskOptions{}, "mcp__armorer-tools__look", event.Allow},
		{gate.RiskOptions{}, "mcp__drover__save", event.Deny},
		{gate.RiskOptions{}, "save", event.Deny},
		{gate.RiskOptions{}, "look", event.Allow},
		{gate.RiskOptions{Server: "desk"}, "mcp__armorer-tools__save", event.Allow}, // of another server
		{gate.RiskOptions{Builtin: gate.BuiltinLists{Mutating: []string{"mcp__wink__look"}}}, "mcp__drover__look", event.Deny},
		{gate.RiskOptions{Builtin: gate.BuiltinLists{Mutating: []string{"mcp__wink__other"}}}, "mcp__drover__look", event.Allow},
	} {
		c.opts.Registry, c.opts.DenyMutation, c.opts.AllowUnknown = registry, true, true
		if got := gate.ForClaude(gate.FromRisk(c.opts)).Decide(event.ToolCall{Name: c.call}, gate.Facts{}); got.Verdict != c.want {
			t.Errorf("%s with %+v: got %s (%s), want %s", c.call, c.opts, got.Verdict, got.Reason, c.want)
		}
	}
}

func TestFromRisk_AllowDoesNotAllocate(t *testing.T) {
	g := gate.ForClaude(gate.FromRisk(gate.RiskOptions{Registry: tool.MustRegistry(nil, declared(t, "read-file", tool.ReadOnly)), ReadOnly: true, AgentTools: true}))
	for _, name := range []string{"read-file", "mcp__drover__read-file", "Read"} {
		call := event.ToolCall{ID: "toolu_1", Name: name}
		if got := testing.AllocsPerRun(100, func() { g.Decide(call, gate.Facts{}) }); got != 0 {
			t.Errorf("%s: %v allocations, want none", name, got)
		}
	}
}
