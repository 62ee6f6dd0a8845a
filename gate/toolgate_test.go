// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

func fileTools(t testing.TB) *tool.Registry {
	t.Helper()
	return tool.MustRegistry(nil,
		declared(t, "read-file", tool.WithMetadata(map[string]any{"readOnly": true})),
		declared(t, "write-file", tool.WithMetadata(map[string]any{"mutates": true})),
		declared(t, "delete-file", tool.WithMetadata(map[string]any{"mutates": true, "dangerous": true})))
}

func toolGate(t testing.TB, o gate.ToolGateOptions) func(string) string {
	t.Helper()
	g, err := gate.NewToolGate(o)
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) string {
		text, err := json.Marshal(g(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

const (
	jsonAllow    = `{"behavior":"allow"}`
	jsonReadOnly = `{"behavior":"deny","message":"Read-only mode: mutating tools disabled."}`
)

func TestToolGate_WithoutDangerousTools(t *testing.T) {
	g := toolGate(t, gate.ToolGateOptions{Registry: fileTools(t), ReadOnly: false, AllowMutation: new(true), AllowDangerous: new(false)})
	for name, want := range map[string]string{
		"read-file":              jsonAllow,
		"write-file":             jsonAllow,
		"delete-file":            `{"behavior":"deny","message":"Use --dangerous to allow this tool."}`,
		"mcp__drover__read-file": jsonAllow,
		"mcp__other__read-file":  `{"behavior":"deny","message":"Tool not allowed: mcp__other__read-file"}`,
		"Write":                  `{"behavior":"deny","message":"Tool not allowed: Write"}`,
	} {
		if got := g(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestToolGate_BuiltinTools(t *testing.T) {
	g := toolGate(t, gate.ToolGateOptions{
		Registry: fileTools(t),
		ReadOnly: true,
		Builtin: gate.BuiltinLists{
			ReadOnly:  []string{"View", "GlobTool", "GrepTool", "LS"},
			Mutating:  []string{"Edit", "Replace", "Write", "Bash"},
			Dangerous: []string{"Bash"},
		},
	})
	for name, want := range map[string]string{
		"View": jsonAllow, "GlobTool": jsonAllow, "GrepTool": jsonAllow, "LS": jsonAllow,
		"Edit": jsonReadOnly, "Replace": jsonReadOnly, "Write": jsonReadOnly, "Bash": jsonReadOnly, "Bash(ls)": jsonReadOnly,
		"Read": `{"behavior":"deny","message":"Tool not allowed: Read"}`,
	} {
		if got := g(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A name in two lists has both risks: Bash is denied though the other risk is allowed.
func TestToolGate_JoinsTheListsOfAName(t *testing.T) {
	for want, o := range map[string]gate.ToolGateOptions{
		"Use --dangerous to allow this tool.":      {AllowDangerous: new(false)},
		"Use --apply to allow mutating tools.":     {AllowMutation: new(false), AllowDangerous: new(true)},
		"Read-only mode: mutating tools disabled.": {ReadOnly: true},
	} {
		o.Registry = tool.Tools{}
		o.Builtin = gate.BuiltinLists{ReadOnly: []string{"Bash"}, Mutating: []string{"Bash"}, Dangerous: []string{"Bash"}}
		if got, want := toolGate(t, o)("Bash"), fmt.Sprintf(`{"behavior":"deny","message":%q}`, want); got != want {
			t.Errorf("Bash: %s, want %s", got, want)
		}
	}
}

// What is left out means: not read-only, mutation unless read-only, danger, nothing unknown.
func TestToolGate_Defaults(t *testing.T) {
	settings := map[string]*bool{"nil": nil, "true": new(true), "false": new(false)}
	for _, ro := range []bool{false, true} {
		for am, allowMutation := range settings {
			for ad, allowDangerous := range settings {
				g := toolGate(t, gate.ToolGateOptions{Registry: riskTools(t)["options"], ReadOnly: ro, AllowMutation: allowMutation, AllowDangerous: allowDangerous})
				column := map[string]int{"nil": 0, "true": 0, "false": 2}[am]
				if ro {
					column = 4
				}
				if ad == "false" {
					column++
				}
				for kind, row := range riskMatrix {
					want := jsonAllow
					if row[column] != yes {
						want = fmt.Sprintf(`{"behavior":"deny","message":%q}`, row[column])
					}
					if got := g(kind); got != want {
						t.Errorf("readOnly %t, allowMutation %s, allowDangerous %s: %s is %s, want %s", ro, am, ad, kind, got, want)
					}
				}
			}
		}
	}
}

func TestToolGate_OtherOptions(t *testing.T) {
	g := toolGate(t, gate.ToolGateOptions{
		Registry: tool.Tools{declared(t, "sum"), declared(t, "write", tool.Mutates)}, Server: "math", ReadOnly: true,
		ToolConfig: func(t *tool.Tool) tool.Presentation { return tool.Presentation{Name: "custom_" + t.Name} },
		Messages:   gate.Messages{Mutating: "No.", Unknown: func(name string) string { return "No " + name + "." }},
	})
	for name, want := range map[string]string{
		"custom_sum": jsonAllow, "mcp__math__custom_sum": jsonAllow, "sum": `{"behavior":"deny","message":"No sum."}`,
		"custom_write": `{"behavior":"deny","message":"No."}`,
	} {
		if got := g(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	all := toolGate(t, gate.ToolGateOptions{Registry: tool.Tools{}, ReadOnly: true, AllowUnknown: true})
	if got := all("Write"); got != jsonAllow {
		t.Errorf("a tool that is in no list is %s under AllowUnknown", got)
	}
}

func TestToolGate_DeniesToolsOutsideItsLists(t *testing.T) {
	g := toolGate(t, gate.ToolGateOptions{Registry: fileTools(t)})
	for _, name := range []string{"Read", "ToolSearch", "StructuredOutput"} {
		if got, want := g(name), `{"behavior":"deny","message":"Tool not allowed: `+name+`"}`; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestToolGate_InvalidToolsAreErrors(t *testing.T) {
	var none *tool.Registry
	for name, c := range map[string]struct {
		registry gate.Lookup
		want     string
	}{
		"nothing":         {nil, "Invalid input: expected tool list or Registry"},
		"a nil registry":  {none, "Invalid input: expected tool list or Registry"},
		"a list with nil": {tool.Tools{declared(t, "sum"), nil}, "Invalid tool input"},
		"no name":         {tool.Tools{declared(t, "sum"), {Description: "d"}}, "Invalid tool input: tool 1 has no name"},
	} {
		if g, err := gate.NewToolGate(gate.ToolGateOptions{Registry: c.registry}); g != nil || err == nil || !strings.Contains(advice.Text(err), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	for _, lists := range []gate.BuiltinLists{{ReadOnly: []string{""}}, {Mutating: []string{"Write", " "}}, {Dangerous: []string{""}}} {
		if _, err := gate.New(gate.FromRisk(gate.RiskOptions{Builtin: lists})); err == nil || !strings.Contains(advice.Text(err), "without a name") {
			t.Errorf("%+v: error %v", lists, err)
		}
	}
}
