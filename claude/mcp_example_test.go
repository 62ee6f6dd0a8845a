// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-agents/drover/claude"
)

func ExampleNewTool() {
	type args struct {
		City string `json:"city" doc:"name of a city"`
	}
	weather, err := claude.NewTool("weather", "Tell the weather.", func(_ context.Context, in args) (claude.ToolResult, error) {
		return claude.TextResult("sunny in " + in.City), nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	weather.Annotations.ReadOnly = true // calls may run side by side
	server, err := claude.NewToolServer("weather", "1.0.0", nil, weather)
	if err != nil {
		fmt.Println(err)
		return
	}
	// server.Server() goes into Options.MCPServers; here it is asked directly.
	reply, err := server.Server().Handle(context.Background(), json.RawMessage(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"weather","arguments":{"city":"Oslo"}}}`))
	fmt.Println(string(reply), err)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"sunny in Oslo"}]}} <nil>
}
