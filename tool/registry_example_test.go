// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

type article struct {
	Name string `json:"name" doc:"name of the article"`
}

func price(_ context.Context, a article) (string, error) { return a.Name + " costs 3.", nil }

func order(_ context.Context, a article) (string, error) { return a.Name + " is ordered.", nil }

// A registry runs calls, and tells what becomes of each.
func ExampleNewRegistry() {
	registry, err := tool.NewRegistry(&tool.Options{
		Emit: func(e event.Event) {
			if step, ok := e.Payload.(event.ToolStep); ok {
				fmt.Println(" ", step.Name, step.Step)
			}
		},
	}, tool.Must("price", "Tells what an article costs.", price, tool.ReadOnly))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []tool.Call{
		{Name: "price", Input: json.RawMessage(`{"name":"milk"}`)},
		{Name: "price", Input: json.RawMessage(`{"article":"milk"}`)},
		{Name: "prize"},
	} {
		r := registry.Execute(context.Background(), call)
		fmt.Println(r.Outcome, r.Render())
	}
	// Output:
	//   price validated
	//   price allowed
	//   price started
	//   price returned
	// success milk costs 3.
	//   price invalid
	// error Validation error: value does not match its schema: (root): property "name" is missing; /article: is not a known property. Correct the arguments and call the tool again.
	// error There is no tool "prize". The tools are: price.
}

// The key under which a server stands in the options is the one that the names of its tools carry.
// Give the same one to the policies of a gate.
func ExampleNewSDKServer() {
	registry := tool.MustRegistry(nil,
		tool.Must("price", "Tells what an article costs.", price, tool.ReadOnly, tool.WithAlwaysLoad()),
		tool.Must("order", "Orders an article.", order, tool.Mutates, tool.WithAlwaysLoad()))
	server, err := tool.NewSDKServer(registry, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	opts := &claude.Options{MCPServers: map[string]claude.MCPServer{"shop": server.Server()}}

	for key := range opts.MCPServers {
		for _, name := range server.ToolNames() {
			fmt.Println("mcp__" + key + "__" + name)
		}
	}
	fmt.Println("mutating:", server.MutatingToolNames())
	// Output:
	// mcp__shop__price
	// mcp__shop__order
	// mutating: [order]
}
