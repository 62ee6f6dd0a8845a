// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

func ExamplePipe() {
	type Text struct {
		Text string `json:"text"`
	}
	trim := tool.Must("trim", "Trims a text.", func(_ context.Context, p Text) (Text, error) {
		return Text{strings.TrimSpace(p.Text)}, nil
	}, tool.ReadOnly)
	save := tool.Must("save", "Saves a text.", func(_ context.Context, p Text) (tool.Result, error) {
		return tool.Text(fmt.Sprintf("Saved %q.", p.Text)), nil
	}, tool.Mutates, tool.FileWrite)

	tidy, err := compose.Pipe("save-tidy", "Trims a text and saves it.", []*tool.Tool{trim, save})
	if err != nil {
		log.Fatal(err)
	}
	result := tidy.Run(context.Background(), tool.Call{Input: json.RawMessage(`{"text":"  hello "}`)})
	fmt.Println(result.Render())
	fmt.Println(tidy.Risks(), "and needs", tidy.Needs())
	// Output:
	// Saved "hello".
	// mutates and needs fileWrite
}

func ExampleBind() {
	type Request struct {
		Method string `json:"method"`
		Path   string `json:"path" doc:"what to ask for"`
	}
	request := tool.Must("request", "Sends a request.", func(_ context.Context, p Request) (string, error) {
		return p.Method + " " + p.Path, nil
	}, tool.NetworkAccess)

	get, err := compose.Bind(request, map[string]any{"method": "GET"}, tool.WithName("get", "Gets a page."))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(get.Input)
	result := get.Run(context.Background(), tool.Call{Input: json.RawMessage(`{"path":"/"}`)})
	fmt.Println(result.Render())
	// Output:
	// {"type":"object","properties":{"path":{"type":"string","description":"what to ask for"}},"required":["path"],"additionalProperties":false}
	// GET /
}
