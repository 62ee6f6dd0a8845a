// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-agents/drover/event"
)

func Example() {
	e := event.New(event.ToolCall{ID: "toolu_1", Name: "Bash", Input: json.RawMessage(`{"command":"sort <names"}`)})
	e.Agent, e.SessionID, e.Time = "claude-code", "s1", time.UnixMilli(1772600767890)

	line, err := e.MarshalJSON()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(line))

	var again event.Event
	if err := json.Unmarshal(line, &again); err != nil {
		fmt.Println(err)
		return
	}
	if call, ok := again.Payload.(event.ToolCall); ok {
		fmt.Println(call.Name, string(call.Input))
	}
	// Output:
	// {"type":"tool_use","agent":"claude-code","timestamp":1772600767890,"sessionId":"s1","payload":{"toolUseId":"toolu_1","toolName":"Bash","input":{"command":"sort <names"}}}
	// Bash {"command":"sort <names"}
}

func ExampleExtension() {
	var e event.Event
	line := `{"type":"codex:file_change","agent":"codex","timestamp":0,"sessionId":"s1","payload":{"path":"a.go"}}`
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		fmt.Println(err)
		return
	}
	switch p := e.Payload.(type) {
	case event.ToolCall:
		fmt.Println("calls", p.Name)
	case event.Extension: // what this program does not know
		fmt.Println("passes over", p.Kind, string(p.Data))
	}
	// Output: passes over codex:file_change {"path":"a.go"}
}
