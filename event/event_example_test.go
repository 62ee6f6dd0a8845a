// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/schema"
)

// output is what a run wrote: one event per line.
const output = `{"type":"tool_use","agent":"claude-code","timestamp":1772600767890,"sessionId":"s1","runId":"r1","seq":1,"payload":{"toolUseId":"toolu_1","toolName":"Bash","input":{"command":"ls"}}}
{"type":"kimi:plan","agent":"kimi","timestamp":1772600767891,"sessionId":"s1","runId":"r1","seq":2,"payload":["first","then"]}
{"type":"done","agent":"claude-code","timestamp":1772600767892,"sessionId":"s1","runId":"r1","seq":3,"payload":{"status":"success","result":"3 files","usage":{"toolUses":1,"cost":{"usd":0.01,"source":"agent-estimate"}},"durationMs":2}}
`

func ExampleEvent_UnmarshalJSON() {
	lines := json.NewDecoder(strings.NewReader(output))
	for lines.More() {
		var e event.Event
		if err := lines.Decode(&e); err != nil {
			fmt.Println(err)
			return
		}
		switch p := e.Payload.(type) {
		case event.ToolCall:
			fmt.Println(e.Seq, "calls", p.Name, string(p.Input))
		case event.Done:
			fmt.Println(e.Seq, p.Status, p.Result)
			if p.Usage.Tokens == nil {
				fmt.Println("the agent reported no tokens")
			}
		} // all else is passed over
	}
	// Output:
	// 1 calls Bash {"command":"ls"}
	// 3 success 3 files
	// the agent reported no tokens
}

func ExampleSchema() {
	lines, err := schema.Parse(event.Schema())
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(output) {
		if err := lines.Validate(json.RawMessage(line)); err != nil {
			fmt.Println(err)
		}
	}
	broken := `{"type":"text","agent":"a","timestamp":0,"sessionId":"","payload":{"text":"hello"}}`
	fmt.Println(lines.Validate(json.RawMessage(broken)))
	// Output: value does not match its schema: /payload: property "content" is missing
}

func ExampleNewTokens() {
	record := func(model string, in, out int64) event.TokenRecord {
		return event.TokenRecord{Model: model, Tokens: event.TokenCount{Input: event.InputTokens{Total: in}, Output: event.OutputTokens{Total: out}}}
	}
	tokens, err := event.NewTokens(event.CoverageComplete, record("large", 1000, 200), record("small", 50, 5))
	fmt.Println(tokens.Totals.Input.Total, tokens.Totals.Output.Total, err)

	tokens, err = event.NewTokens(event.CoverageComplete, record("large", 1000, 200), record("small", -1, 5))
	fmt.Println(tokens == nil, err)
	// Output:
	// 1050 205 <nil>
	// true event: tokens: tokens.records[1].input.total is -1; it is between 0 and 2^53-1
}

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
