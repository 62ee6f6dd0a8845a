// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"testing"
	"testing/synctest"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// A denied result of a call that was not reported does not make a retry safe.
func TestRetry_DenialOfACallThatWasNotReported(t *testing.T) {
	for name, own := range map[string]string{"changing": "act", "read-only": "look"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := func(r *agenttest.Run) {
					r.Request.Registry.Execute(r.Context, tool.Call{ID: "x", Name: own})
				}
				m := newMoody(fails(errBusyModel, "", uses("Bash"), runs,
					agenttest.Emit(event.ToolResult{ID: "x", Name: "unknown", Status: event.ToolDenied})), succeeds("fine"))
				opts := drover.Options{Retry: &drover.RetryPolicy{}, Settings: agent.Settings{Dir: t.TempDir()}, Session: session.New(nil)}
				_, err := drover.Evaluate(t.Context(), m, lookPrompt(t), &opts)
				if m.runs != 1 || err == nil {
					t.Fatalf("Bash has run, and it is tried again: %d attempts, %v", m.runs, err)
				}
			})
		})
	}
}

// The same for a call whose name in the stream is not that of its record.
func TestRetry_DenialUnderAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := func(r *agenttest.Run) {
			r.Request.Registry.Execute(r.Context, tool.Call{ID: "x", Name: "look"})
		}
		m := newMoody(fails(errBusyModel, "", uses("Bash"), runs,
			agenttest.Emit(event.ToolCall{ID: "x", Name: "mcp__drover__look"}, event.ToolResult{ID: "x", Name: "mcp__drover__look", Status: event.ToolDenied})), succeeds("fine"))
		opts := drover.Options{Retry: &drover.RetryPolicy{}, Settings: agent.Settings{Dir: t.TempDir()}, Session: session.New(nil)}
		_, err := drover.Evaluate(t.Context(), m, lookPrompt(t), &opts)
		if m.runs != 1 || err == nil {
			t.Fatalf("Bash has run, and it is tried again: %d attempts, %v", m.runs, err)
		}
	})
}
