// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"fmt"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
)

func ExampleDecodeMessage() {
	line := []byte(`{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"go.mod"}}]}}`)
	m, err := claude.DecodeMessage(line)
	if err != nil {
		fmt.Println(err)
		return
	}
	switch m := m.(type) {
	case *claude.AssistantMessage:
		for _, block := range m.Content {
			switch block := block.(type) {
			case *claude.TextBlock:
				fmt.Println("says:", block.Text)
			case *claude.ToolUseBlock:
				fmt.Printf("calls %s with %s\n", block.Name, block.Input)
			}
		}
	case *claude.UnknownMessage:
		fmt.Printf("something new: %s\n", m.Raw())
	}
	// Output:
	// says: Let me look.
	// calls Read with {"file_path":"go.mod"}
}

func ExampleResultMessage_Err() {
	m, _ := claude.DecodeMessage([]byte(`{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"api_error_type":"overloaded_error","result":"API Error: 529 Overloaded"}`))
	fmt.Println(advice.Text(m.(*claude.ResultMessage).Err()))
	// Output:
	// claude: API Error: 529 Overloaded (overloaded_error)
	//   next: try again later
}

func ExampleCostTracker() {
	var costs claude.CostTracker
	for _, line := range []string{
		`{"type":"result","subtype":"success","total_cost_usd":0.25}`,
		`{"type":"result","subtype":"success","total_cost_usd":0.75}`,
		`{"type":"conversation_reset","trigger":"clear"}`,
		`{"type":"result","subtype":"success","total_cost_usd":0.125}`,
	} {
		m, _ := claude.DecodeMessage([]byte(line))
		if turn, ok := costs.Observe(m); ok {
			fmt.Printf("this turn $%.3f, together $%.3f\n", turn.CostUSD, costs.Sum().CostUSD)
		}
	}
	// Output:
	// this turn $0.250, together $0.250
	// this turn $0.500, together $0.750
	// this turn $0.125, together $0.875
}

func ExampleLine() {
	line, err := claude.ParseLine([]byte(`{"type":"system","subtype":"status","status":"requesting"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(line.Type(), line.Subtype())
	// Output: system status
}
