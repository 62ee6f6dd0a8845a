// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// The facts about the file of the model's input do not hold for a file that another party
// has put in its place: the first is new, the second exists, and leads out of the project.
func TestEngine_RewrittenInputHasItsOwnFacts(t *testing.T) {
	const first, second = `{"file_path":"/work/new"}`, `{"file_path":"/work/old"}`
	look := func(_ context.Context, c gate.Call) gate.Facts {
		if strings.Contains(string(c.Input), "new") {
			return gate.Facts{Dir: "/work", Target: gate.Target{Path: "/work/new", Missing: true}}
		}
		return gate.Facts{Dir: "/work", Target: gate.Target{Path: "/etc/old"}}
	}
	rewriting := gate.Custom("rewriting", func(*gate.Call, *gate.Facts) (event.Decision, bool) {
		return event.Decision{Verdict: event.Allow, Input: json.RawMessage(second)}, true
	})
	unread, outside := gate.ReadBeforeWrite(gate.ReadBeforeWriteOptions{}), gate.Rules(gate.RuleOptions{Deny: []string{"Write(//etc/**)"}})
	for _, tt := range []struct {
		name     string
		policies []gate.Policy
		answer   gate.Answer
	}{
		{"a policy, and the file was not read", []gate.Policy{unread, rewriting}, gate.Answer{}},
		{"a policy, and the link leads to what is denied", []gate.Policy{outside, rewriting}, gate.Answer{}},
		{"the approver, and the file was not read", []gate.Policy{unread, gate.AskTools("Write")}, gate.Answer{Verdict: event.Allow, Input: json.RawMessage(second)}},
		{"the approver, and the link leads to what is denied", []gate.Policy{outside, gate.AskTools("Write")}, gate.Answer{Verdict: event.Allow, Input: json.RawMessage(second)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := gate.NewEngine(gate.ForClaude(tt.policies...), &gate.EngineOptions{Facts: look, Approver: answering(tt.answer)})
			d := e.Decide(t.Context(), event.ToolCall{ID: "1", Name: "Write", Input: json.RawMessage(first)})
			if d.Verdict != event.Deny || !strings.Contains(d.Reason, "old") {
				t.Errorf("got %s, %q; want a denial because of the second file", d.Verdict, d.Reason)
			}
		})
	}
}
