// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// An engine decides about the calls of a run: what the gate leaves open is asked once.
func ExampleEngine() {
	careful := gate.Policy{Name: "careful", Judge: func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) {
		if c.Tool == "Bash" {
			return event.Decision{Verdict: event.Ask, Reason: "it is a shell"}, true
		}
		return event.Decision{Verdict: event.Allow}, true
	}}
	engine := gate.NewEngine(gate.Must(gate.KnowsAgent(catalogue.Tools()), careful), &gate.EngineOptions{
		Approver: gate.ApproverFunc(func(_ context.Context, q gate.Question) (gate.Answer, error) {
			fmt.Printf("May it run %s %s? (%s)\n", q.Call.Name, q.Call.Input, q.Reason)
			return gate.Answer{Reason: "Use Read instead."}, nil
		}),
	})
	shell := event.ToolCall{ID: "toolu_1", Name: "Bash", Input: json.RawMessage(`{"command":"cat x"}`)}
	for range 2 { // at the hook, and at the permission callback
		d := engine.Decide(context.Background(), shell)
		fmt.Println(d.Verdict, "-", d.Reason)
	}
	// Output:
	// May it run Bash {"command":"cat x"}? (it is a shell)
	// deny - Use Read instead.
	// deny - Use Read instead.
}
