// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-agents/drover/tool"
)

func ExampleNew() {
	type Params struct {
		Text  string `json:"text" doc:"what to repeat" minLength:"1"`
		Times int    `json:"times,omitempty" doc:"how often; 2 if left out" minimum:"1" maximum:"5"`
	}
	repeat, err := tool.New("repeat", "Repeat a text.",
		func(_ context.Context, p Params) (string, error) {
			if p.Times == 0 {
				p.Times = 2
			}
			return strings.Repeat(p.Text, p.Times), nil
		}, tool.ReadOnly)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(repeat.Input)
	for _, input := range []string{`{"text":"ab"}`, `{"text":"ab","times":9,"case":"upper"}`} {
		r := repeat.Run(context.Background(), tool.Call{Input: json.RawMessage(input)})
		fmt.Println(r.Outcome, r.Render())
	}
	// Output:
	// {"type":"object","properties":{"text":{"type":"string","minLength":1,"description":"what to repeat"},"times":{"type":"integer","minimum":1,"maximum":5,"description":"how often; 2 if left out"}},"required":["text"],"additionalProperties":false}
	// success abab
	// error Validation error: value does not match its schema: /case: is not a known property; /times: must be at most 5. Correct the arguments and call the tool again.
}

func ExampleReply() {
	type Row struct {
		Name string `json:"name"`
	}
	// The program gets all rows; the model reads the message.
	load := tool.Must("load", "Load the table.", func(context.Context, tool.None) (tool.Reply[[]Row], error) {
		rows := []Row{{"a"}, {"b"}}
		return tool.Reply[[]Row]{Value: rows, Message: fmt.Sprintf("Loaded %d rows.", len(rows)), HideValue: true}, nil
	})
	r := load.Run(context.Background(), tool.Call{})
	fmt.Println(r.Render(), r.Value)
	// Output: Loaded 2 rows. [{a} {b}]
}

func ExampleErrorf() {
	fetch := tool.Must("fetch", "Fetch the report.", func(context.Context, tool.None) (string, error) {
		return "", tool.Errorf(tool.CategoryTransient, "The server is busy. Try again in a minute.")
	})
	r := fetch.Run(context.Background(), tool.Call{})
	fmt.Println(r.Render(), r.Err.Retryable)
	// Output: The server is busy. Try again in a minute. true
}
