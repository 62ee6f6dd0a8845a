// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// What a rule denies to one tool no other tool of the agent does in its place.
func TestDenial_CoversAllToolsOfTheFamily(t *testing.T) {
	g := gate.ForClaude(
		gate.DenyTools("Edit(//secret/**)", "Read(//hidden/**)", "Bash(rm:*)"),
		gate.FromCapabilities(&gate.Permissions{Mode: gate.ModeBypass}))
	for _, tt := range []struct {
		tool, input string
		want        event.Verdict
	}{
		{"Write", `{"file_path":"/secret/x"}`, event.Deny},
		{"Create", `{"file_path":"/secret/x"}`, event.Deny},
		{"NotebookEditCell", `{"notebook_path":"/secret/x"}`, event.Deny},
		{"ReadNotebook", `{"notebook_path":"/hidden/x"}`, event.Deny},
		{"Monitor", `{"command":"rm -r /"}`, event.Deny},
		{"Monitor", `{"command":"tail -f log"}`, event.Allow},
		{"Monitor", `{"command":7}`, event.Deny},
		{"Monitor", `{"ws":{"url":"ws://localhost"}}`, event.Allow},
	} {
		d := g.Decide(event.ToolCall{Name: tt.tool, Input: json.RawMessage(tt.input)}, gate.Facts{Dir: "/work"})
		if d.Verdict != tt.want {
			t.Errorf("%s %s: %s, %q; want %s", tt.tool, tt.input, d.Verdict, d.Reason, tt.want)
		}
	}
}

// Read(...) allows the tools of the agent that read; a tool of ours may have the name of one and do
// something else.
func TestPermission_ForAFamilyDoesNotCoverRegisteredTools(t *testing.T) {
	ran := newTally()
	r := tool.MustRegistry(nil, counting("View", ran, tool.Mutates), counting("look", ran))
	g := gate.ForClaude(gate.Knows("desk", r), gate.AllowTools("Read(//work/**)", "Bash(ls)"))
	for _, tt := range []struct {
		tool, input string
		want        event.Verdict
	}{
		{"Read", `{"file_path":"/work/x"}`, event.Allow},
		{"LS", `{"path":"/work/x"}`, event.Allow},
		{"LS", `{"path":"/work/x","path":null}`, event.Deny}, // which is the working directory
		{"LS", `{"path":"/work/x","path":"/etc"}`, event.Deny},
		{"mcp__desk__View", `{"path":"/work/x"}`, event.Deny},
		{"Bash", `{"command":"ls"}`, event.Allow},
		{"Monitor", `{"command":"ls"}`, event.Deny},
	} {
		d := g.Decide(event.ToolCall{Name: tt.tool, Input: json.RawMessage(tt.input)}, gate.Facts{Dir: "/work"})
		if d.Verdict != tt.want {
			t.Errorf("%s %s: %s, %q; want %s", tt.tool, tt.input, d.Verdict, d.Reason, tt.want)
		}
	}
}
