// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/schema"
)

func ExampleFor() {
	type Review struct {
		Summary string   `json:"summary" doc:"two sentences"`
		Issues  []string `json:"issues"`
		Grade   *int     `json:"grade"`
	}
	s, err := schema.For[Review]()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s)
	// Output:
	// {"type":"object","properties":{"summary":{"type":"string","description":"two sentences"},"issues":{"type":"array","items":{"type":"string"}},"grade":{"type":["integer","null"]}},"required":["summary","issues"],"additionalProperties":false}
}

func ExampleDecode() {
	s := schema.MustParse(`{"type":"array","items":{"type":"integer","minimum":0}}`)
	// The CLI returns an object; ForCLI wrapped the list into one.
	numbers, err := schema.Decode[[]int](s, json.RawMessage(`{"value":[1,2]}`))
	fmt.Println(numbers, err)

	_, err = schema.Decode[[]int](s, json.RawMessage(`{"value":[-1,"two"]}`))
	var wrong *schema.ValidationError
	if errors.As(err, &wrong) {
		for _, v := range wrong.Violations {
			fmt.Println(v)
		}
	}
	// Output:
	// [1 2] <nil>
	// /0: must be at least 0
	// /1: must be an integer, got a string
}
