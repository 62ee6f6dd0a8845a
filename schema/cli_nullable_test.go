// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"testing"

	"github.com/drover-agents/drover/schema"
)

// A value that may be null is of two types, wherever it is; what null would have to meet too stays apart.
func TestForCLI_NullableAlternativesBecomeTwoTypes(t *testing.T) {
	const null = `{"type":"null"}`
	for name, x := range map[string]struct{ given, want string }{
		"property":      {`{"anyOf":[{"type":"string","minLength":2},` + null + `]}`, `{"type":["string","null"],"minLength":2}`},
		"null first":    {`{"anyOf":[` + null + `,{"type":"integer"}]}`, `{"type":["integer","null"]}`},
		"oneOf":         {`{"oneOf":[{"type":"integer"},` + null + `]}`, `{"type":["integer","null"]}`},
		"described":     {`{"description":"outer","anyOf":[{"type":"string","description":"inner"},` + null + `]}`, `{"description":"outer","type":["string","null"]}`},
		"items":         {`{"type":"array","items":{"anyOf":[{"type":"number"},` + null + `]}}`, `{"type":"array","items":{"type":["number","null"]}}`},
		"alternatives":  {`{"allOf":[{"anyOf":[{"type":"number"},` + null + `]}]}`, `{"allOf":[{"type":["number","null"]}]}`},
		"inner object":  {`{"anyOf":[{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},` + null + `]}}},` + null + `]}`, `{"type":["object","null"],"properties":{"x":{"type":["string","null"]}}}`},
		"enum":          {`{"anyOf":[{"type":"string","enum":["x"]},` + null + `]}`, ""},
		"reference":     {`{"anyOf":[{"$ref":"#/$defs/d"},` + null + `]}`, ""},
		"three":         {`{"anyOf":[{"type":"string"},{"type":"number"},` + null + `]}`, ""},
		"with a type":   {`{"type":"string","anyOf":[{"type":"string"},` + null + `]}`, ""},
		"no null":       {`{"anyOf":[{"type":"string"},{"type":"number"}]}`, ""},
		"null and null": {`{"anyOf":[` + null + `,` + null + `]}`, ""},
		"referred into": {`{"anyOf":[{"type":"string"},` + null + `],"not":{"$ref":"#/properties/p/anyOf/0"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			around := func(p string) string {
				return `{"type":"object","properties":{"p":` + p + `},"$defs":{"d":{"type":["number","null"]}}}`
			}
			given := schema.MustParse(`{"type":"object","properties":{"p":` + x.given + `},"$defs":{"d":{"anyOf":[{"type":"number"},` + null + `]}}}`)
			want := around(x.want)
			if x.want == "" {
				want = around(x.given)
			}
			if name == "referred into" {
				want = string(given.JSON())
			}
			got, wrapped, err := schema.ForCLI(given)
			if err != nil || wrapped || string(got) != want {
				t.Errorf("got\n%s\nwant\n%s, %v", got, want, err)
			}
		})
	}
}
