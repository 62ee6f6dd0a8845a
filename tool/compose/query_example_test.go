// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"fmt"

	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

type lookFor struct {
	Path string `json:"path" doc:"file to read"`
}

func readText(context.Context, lookFor) (string, error) { return "text", nil }

func ExampleFind() {
	registry := tool.MustRegistry(nil,
		tool.Must("write-file", "Puts text into a file.", readText, tool.Mutates),
		tool.Must("read-file", "Gives the text of a file.", readText, tool.ReadOnly),
		tool.Must("list-users", "Lists the users.", func(context.Context, tool.None) ([]string, error) { return nil, nil }, tool.ReadOnly),
	)
	for _, t := range compose.Find(registry, compose.Query{Text: "file", NotRisk: tool.Mutates}) {
		fmt.Println(t.Name)
	}
	// Output: read-file
}

func ExampleReadTools() {
	registry := tool.MustRegistry(nil, tool.Must("read-file", "Gives the text of a file.", readText, tool.ReadOnly))
	text, err := registry.MarshalJSON()
	if err != nil {
		fmt.Println(err)
		return
	}
	tools, err := tool.ReadTools(text, func(id string) tool.Handler {
		original, ok := registry.Lookup(id)
		if !ok {
			return nil // declared, but not served
		}
		return original.Handler
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range compose.Summarise(tools) {
		fmt.Println(s.ID, s.Risk, s.SchemaKeys, s.Served)
	}
	// Output: default:read-file [readOnly] [path] true
}

func ExampleSearchTool() {
	registry := tool.MustRegistry(nil, tool.Must("read-file", "Gives the text of a file.", readText, tool.ReadOnly))
	search := compose.SearchTool(registry)
	result := search.Run(context.Background(), tool.Call{Input: []byte(`{"query":"text of a file"}`)})
	fmt.Println(result.Render())
	// Output: {"tools":[{"name":"read-file","id":"default:read-file","description":"Gives the text of a file.","risk":["readOnly"],"tags":["readonly"],"schemaKeys":["path"],"served":true}],"more":0}
}
