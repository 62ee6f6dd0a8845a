// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/tool"
)

type addends struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

var sumTool = tool.Must("sum", "Adds two numbers.", func(_ context.Context, in addends) (float64, error) { return in.A + in.B, nil })

// A registry, a tool alone and a list are converted the same way.
func ExampleToSDKTools() {
	for _, from := range []tool.Set{tool.MustRegistry(nil, sumTool), sumTool, tool.Tools{sumTool}} {
		tools, err := claudecode.ToSDKTools(from, nil)
		if err != nil {
			panic(err)
		}
		result, err := tools[0].Handler(context.Background(), json.RawMessage(`{"a":1,"b":2}`))
		fmt.Println(tools[0].Name, result.Content, err)
	}
	// Output:
	// sum [3] <nil>
	// sum [3] <nil>
	// sum [3] <nil>
}

// The model can be given other names and descriptions, and results in another form.
func ExampleToSDKTools_configured() {
	tools, err := claudecode.ToSDKTools(tool.Tools{sumTool}, &claudecode.SDKToolOptions{
		ToolConfig: func(t *tool.Tool) tool.Presentation {
			return tool.Presentation{Name: "custom_" + t.Name, Description: "Enhanced: " + t.Description}
		},
		FormatResult: func(r tool.Result) claude.ToolResult {
			raw, _ := json.MarshalIndent(map[string]any{"result": r.Value}, "", "  ")
			return claude.TextResult(string(raw))
		},
	})
	if err != nil {
		panic(err)
	}
	result, err := tools[0].Handler(context.Background(), json.RawMessage(`{"a":1,"b":2}`))
	fmt.Println(tools[0].Name, "-", tools[0].Description)
	fmt.Println(result.Content, err)
	// Output:
	// custom_sum - Enhanced: Adds two numbers.
	// [{
	//   "result": 3
	// }] <nil>
}

type fileToWrite struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// A server knows which of its tools change something, and which are dangerous.
func ExampleSDKServer() {
	writeFile := tool.Must("write-file", "Writes a file.", func(_ context.Context, f fileToWrite) (string, error) {
		return fmt.Sprintf("%d bytes are in %s.", len(f.Content), f.Path), nil
	}, tool.Mutates, tool.FileWrite)
	server, err := claudecode.NewSDKServer(tool.MustRegistry(nil, writeFile), &claudecode.SDKServerOptions{Name: "my-tools", Version: "1.0.0"})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	fmt.Println("tools:", server.ToolNames())
	fmt.Println("mutating:", server.MutatingToolNames())
	fmt.Println("dangerous:", server.DangerousToolNames())
	// Output:
	// tools: [write-file]
	// mutating: [write-file]
	// dangerous: []
}

type article struct {
	Name string `json:"name" doc:"name of the article"`
}

func price(_ context.Context, a article) (string, error) { return a.Name + " costs 3.", nil }

func order(_ context.Context, a article) (string, error) { return a.Name + " is ordered.", nil }

// The key of a server in the options is the one that the names of its tools carry.
// Give the same one to the policies of a gate.
func ExampleNewSDKServer() {
	registry := tool.MustRegistry(nil,
		tool.Must("price", "Tells what an article costs.", price, tool.ReadOnly, tool.WithAlwaysLoad()),
		tool.Must("order", "Orders an article.", order, tool.Mutates, tool.WithAlwaysLoad()))
	server, err := claudecode.NewSDKServer(registry, nil)
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
