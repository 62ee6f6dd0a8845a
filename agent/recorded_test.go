// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
)

// recorded are the events of a run as Claude Code makes them: it looks around, edits, tests, and has a
// subagent look at the result. The done event is left out.
var recorded = func() []event.Event {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var all []event.Event
	add := func(turn int, parent string, payload event.Payload) {
		at = at.Add(40 * time.Millisecond)
		all = append(all, event.Event{Time: at, SessionID: "session", Turn: turn, ParentToolUseID: event.CallID(parent), Payload: payload})
	}
	use := func(turn int, parent, id, name, input, output string) {
		add(turn, parent, event.ToolCall{ID: event.CallID(id), Name: name, Input: json.RawMessage(input)})
		add(turn, parent, event.ToolResult{ID: event.CallID(id), Name: name, Status: event.ToolSuccess, Output: json.RawMessage(output)})
	}
	add(0, "", event.Init{Model: "model", Dir: "/shop", Tools: []string{"Read", "Edit", "Bash", "Task"}})
	add(1, "", event.Thinking{Summary: "where is the price computed?"})
	add(1, "", event.TextDelta{Delta: "I look "})
	add(1, "", event.TextDelta{Delta: "around."})
	add(1, "", event.Text{Content: "I look around."})
	use(1, "", "u1", "Read", `{"file_path":"/shop/price.go"}`, `"package shop"`)
	use(1, "", "u2", "Read", `{"file_path":"/shop/price_test.go"}`, `"package shop"`)
	add(2, "", event.Error{Code: "overloaded", Message: "the model is busy", Recoverable: true})
	add(2, "", event.Text{Content: "The rounding is wrong."})
	use(2, "", "u3", "Edit", `{"file_path":"/shop/price.go"}`, `"edited"`)
	add(3, "", event.ToolCall{ID: "u4", Name: "Bash", Input: json.RawMessage(`{"command":"go test ./..."}`)})
	add(3, "", event.ToolProgress{ID: "u4", Progress: 1, Total: 2})
	add(3, "", event.ToolResult{ID: "u4", Name: "Bash", Status: event.ToolError, Output: json.RawMessage(`"FAIL"`)})
	add(4, "", event.ToolCall{ID: "u5", Name: "Task", Input: json.RawMessage(`{"prompt":"review"}`)})
	add(4, "u5", event.Text{Content: "I review."})
	use(4, "u5", "u6", "Read", `{"file_path":"/shop/price.go"}`, `"package shop"`)
	add(4, "", event.ToolResult{ID: "u5", Name: "Task", Status: event.ToolSuccess, Output: json.RawMessage(`"fine"`)})
	add(5, "", event.Extension{Kind: "claude:compacted", Data: json.RawMessage(`{"before":90000}`)})
	add(5, "", event.Text{Content: "It is done."})
	return all
}()

// recording has one step for each event, so that the adapter listens between them.
func recording() []agenttest.Step {
	var steps []agenttest.Step
	for _, e := range recorded {
		steps = append(steps, agenttest.EmitEvents(e))
	}
	return steps
}

// callsBefore counts the calls among the first n events of the recording.
func callsBefore(n int) int {
	calls := 0
	for _, e := range recorded[:n] {
		if _, isCall := e.Payload.(event.ToolCall); isCall {
			calls++
		}
	}
	return calls
}
