// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

type article struct {
	Name string `json:"name" doc:"name of the article"`
}

func price(_ context.Context, a article) (string, error) { return a.Name + " costs 3.", nil }

// A registry runs calls, and reports what becomes of each.
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
	// error There is no tool "prize". Call one of these: price.
}
