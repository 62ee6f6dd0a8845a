// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// The CLI knows only that a call failed. The stream has the status and the category that the registry gave.
func TestStream_CallsThatTheRegistryHoldsOrDenies(t *testing.T) {
	do := func(_ context.Context, _ tool.None) (string, error) {
		return "", tool.Errorf(tool.CategoryTransient, "busy")
	}
	registry := tool.MustRegistry(&tool.Options{Before: []tool.Before{func(_ context.Context, called *tool.Tool, _ tool.Call) (event.Decision, bool) {
		switch called.Name {
		case "held":
			return event.Decision{Verdict: event.Ask, Reason: "a person must agree"}, true
		case "denied":
			return event.Decision{Verdict: event.Deny, Reason: "not today"}, true
		}
		return event.Decision{}, false
	}}}, tool.Must("held", "d", do), tool.Must("denied", "d", do), tool.Must("busy", "d", do))
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("mcp__drover__held", nil), script.Call("mcp__drover__denied", nil), script.Call("mcp__drover__busy", nil), script.Text("Done.").Always())
	got := map[string]event.ToolFailure{}
	status := map[string]event.ToolStatus{}
	for e, err := range newAdapter(t, cli.Options(model)).Run(inTime(t), agent.Request{Prompt: "go", Settings: agent.Settings{Tools: []string{"held", "denied", "busy"}}, Registry: registry}) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := e.Payload.(event.ToolResult); ok && r.Failure != nil {
			got[r.Name], status[r.Name] = *r.Failure, r.Status
		}
	}
	want := map[string]event.ToolFailure{
		"mcp__drover__held":   {Code: tool.CodeNeedsApproval, Category: "permission", Message: "a person must agree"},
		"mcp__drover__denied": {Code: tool.CodeDenied, Category: "permission", Message: "not today"},
		"mcp__drover__busy":   {Code: tool.CodeFailed, Category: "transient", Message: "busy", Retryable: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	wantStatus := map[string]event.ToolStatus{"mcp__drover__held": event.ToolNeedsApproval, "mcp__drover__denied": event.ToolDenied, "mcp__drover__busy": event.ToolError}
	if diff := cmp.Diff(wantStatus, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
