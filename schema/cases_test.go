// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/drover-agents/drover/schema"
)

// A cliCase is one schema that must become acceptable to the CLI. The table is used here for the
// rewriting itself and by any test that hands the result to the real program.
type cliCase struct {
	name   string
	schema *schema.Schema
	want   string // the rewritten schema; empty where only acceptance matters
	// wrapped says whether the root gets an object around it.
	wrapped bool
	// sample fits the schema.
	sample string
}

type severity string

func (severity) Enum() []string { return []string{"low", "high"} }

type finding struct {
	File     string    `json:"file" doc:"path from the root, with <angle> brackets"`
	Line     int32     `json:"line"`
	Severity severity  `json:"severity"`
	Tags     []string  `json:"tags"`
	Fix      *string   `json:"fix,omitempty"`
	Related  []finding `json:"related,omitempty"`
	Seen     time.Time `json:"seen"`
}

type report struct {
	Summary  string             `json:"summary"`
	Findings []finding          `json:"findings"`
	Scores   map[string]float64 `json:"scores,omitempty"`
	Extra    any                `json:"extra,omitempty"`
	Grid     [2][]uint8         `json:"grid"`
	Level    *severity          `json:"level"`
}

type tree struct {
	Name     string  `json:"name"`
	Children []*tree `json:"children"`
	Parent   *tree   `json:"parent,omitempty"`
}

func mustFor[T any](tb testing.TB) *schema.Schema {
	tb.Helper()
	s, err := schema.For[T]()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func cliCases(tb testing.TB) []cliCase {
	parsed := func(text string) *schema.Schema {
		tb.Helper()
		s, err := schema.Parse(json.RawMessage(text))
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
	return append(goTypeCases(tb), []cliCase{
		{
			name:   "dialect, id and unknown keywords go, values that look like them stay",
			schema: parsed(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:x","type":"object","x-foo":1,"properties":{"x-foo":{"type":"string","x-bar":{},"default":{"x-a":1},"examples":[{"$schema":"q"}]},"e":{"enum":[{"x-b":1}]},"c":{"const":{"$schema":1}}}}`),
			want:   `{"type":"object","properties":{"x-foo":{"type":"string","default":{"x-a":1},"examples":[{"$schema":"q"}]},"e":{"enum":[{"x-b":1}]},"c":{"const":{"$schema":1}}}}`,
			sample: `{"x-foo":"a"}`,
		},
		{
			name:   "string root is wrapped",
			schema: parsed(`{"type":"string","minLength":1}`),
			want:   `{"type":"object","properties":{"value":{"type":"string","minLength":1}},"required":["value"],"additionalProperties":false}`, wrapped: true,
			sample: `"a"`,
		},
		{
			name:   "references follow a wrapped root",
			schema: parsed(`{"type":"array","items":{"anyOf":[{"$ref":"#"},{"$ref":"#/$defs/leaf"}]},"$defs":{"leaf":{"type":"integer"}}}`),
			want:   `{"type":"object","properties":{"value":{"type":"array","items":{"anyOf":[{"$ref":"#/properties/value"},{"$ref":"#/properties/value/$defs/leaf"}]},"$defs":{"leaf":{"type":"integer"}}}},"required":["value"],"additionalProperties":false}`, wrapped: true,
			sample: `[1,[2]]`,
		},
		{
			name:   "alternatives at the top are wrapped although they are objects",
			schema: parsed(`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}`), wrapped: true,
			sample: `{"a":1}`,
		},
		{
			name:   "tuple",
			schema: parsed(`{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":2}}}`),
			want:   `{"type":"object","properties":{"p":{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false,"minItems":2}}}`,
			sample: `{"p":["a",1]}`,
		},
		{
			name:   "additionalItems without a tuple means nothing",
			schema: parsed(`{"type":"object","properties":{"p":{"type":"array","items":{"type":"string"},"additionalItems":false}}}`),
			want:   `{"type":"object","properties":{"p":{"type":"array","items":{"type":"string"}}}}`,
			sample: `{"p":["a"]}`,
		},
		{
			name:   "dependencies",
			schema: parsed(`{"type":"object","dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"minProperties":3},"c":{"required":["d"]}}}`),
			want:   `{"type":"object","dependencies":{"a":{"allOf":[{"required":["b"]},{"minProperties":3}]},"c":{"required":["d"]}}}`,
			sample: `{"a":1,"b":2,"z":3}`,
		},
		{
			name:   "conditions without a counterpart",
			schema: parsed(`{"type":"object","properties":{"a":{"if":{"type":"string"}},"b":{"then":{"type":"string"}},"c":{"if":{"type":"string"},"else":{"type":"null"}}}}`),
			want:   `{"type":"object","properties":{"a":{},"b":{},"c":{"if":{"type":"string"},"else":{"type":"null"}}}}`,
			sample: `{"c":null}`,
		},
		{
			name:   "a property that a pattern matches too",
			schema: parsed(`{"type":"object","properties":{"in":{"type":"object","properties":{"ab":{"minLength":2},"z":true},"patternProperties":{"^a":{"type":"string"}},"additionalProperties":false}}}`),
			want:   `{"type":"object","properties":{"in":{"type":"object","properties":{"z":true},"patternProperties":{"^a":{"type":"string"}},"additionalProperties":false,"allOf":[{"properties":{"ab":{"minLength":2}}}]}}}`,
			sample: `{"in":{"ab":"xx","z":1}}`,
		},
		{
			name:   "regular expressions",
			schema: parsed(`{"type":"object","properties":{"a":{"type":"string","pattern":"\\Aa\\-b\\_[]c\\-\\@]x{2,3}{}\\x{41}\\pL\\p{Greek}(?P<n>q)\\z"}}}`),
			want:   `{"type":"object","properties":{"a":{"type":"string","pattern":"^a-b_[\\]c\\-@]x{2,3}\\{\\}\\u{41}\\p{L}\\p{Script=Greek}(?<n>q)$"}}}`,
			sample: `{"a":"a-b_cxx{}Azαq"}`,
		},
		{
			name:   "object without a type",
			schema: parsed(`{"properties":{"a":true},"required":["a"]}`),
			want:   `{"type":"object","properties":{"a":true},"required":["a"]}`,
			sample: `{"a":0}`,
		},
		{name: "anything", schema: parsed(`{}`), wrapped: true, sample: `3`},
		{name: "true", schema: parsed(`true`), wrapped: true, sample: `null`},
		{name: "object or null", schema: parsed(`{"type":["object","null"]}`), wrapped: true, sample: `null`},
		{name: "contains", schema: parsed(`{"type":"object","properties":{"a":{"type":"array","contains":{"const":1},"minContains":1}}}`), sample: `{"a":[1]}`},
		{name: "contains none needed", schema: parsed(`{"type":"object","properties":{"a":{"type":"array","contains":{"const":1},"minContains":0}}}`), want: `{"type":"object","properties":{"a":{"type":"array"}}}`, sample: `{"a":[]}`},
		{name: "old definitions", schema: parsed(`{"type":"object","definitions":{"a b/c":{"type":"string","x":1}},"properties":{"a":{"$ref":"#/definitions/a%20b~1c","description":"d"}}}`), sample: `{"a":"x"}`},
		{name: "every simple keyword", schema: parsed(`{"title":"t","description":"d","$comment":"c","type":"object","minProperties":1,"maxProperties":9,"propertyNames":{"maxLength":3},"properties":{"n":{"type":"number","minimum":0,"maximum":9,"exclusiveMinimum":-1,"exclusiveMaximum":10,"multipleOf":0.5},"s":{"type":"string","minLength":1,"maxLength":5,"format":"date","contentEncoding":"base64","contentMediaType":"text/plain","deprecated":true,"readOnly":true,"writeOnly":false},"a":{"type":"array","uniqueItems":true,"minItems":0,"maxItems":3,"items":{"oneOf":[{"const":1},{"const":"b"}]}},"x":{"not":{"type":"null"}},"y":{"allOf":[{"type":"integer"}]}},"unevaluatedProperties":true}`), sample: `{"n":1.5,"s":"ab","a":[1,"b"],"x":0,"y":1}`},
	}...)
}

func goTypeCases(tb testing.TB) []cliCase {
	return []cliCase{
		{name: "report", schema: mustFor[report](tb), sample: `{"summary":"s","findings":[{"file":"f","line":3,"severity":"low","tags":[],"fix":null,"related":null,"seen":"2026-01-02T03:04:05Z"}],"grid":["",""],"level":null}`},
		{name: "tree", schema: mustFor[tree](tb), sample: `{"name":"a","children":[{"name":"b","children":[]}]}`},
		{name: "trees", schema: mustFor[[]tree](tb), wrapped: true, sample: `[{"name":"a","children":[]}]`},
		{name: "string", schema: mustFor[string](tb), wrapped: true, sample: `"x"`},
		{name: "enum", schema: mustFor[severity](tb), wrapped: true, sample: `"low"`},
		{name: "map", schema: mustFor[map[int]bool](tb), sample: `{"-3":true}`},
		{name: "empty struct", schema: mustFor[struct{}](tb), sample: `{}`},
		{name: "bool list", schema: mustFor[[]bool](tb), wrapped: true, sample: `[true]`},
		{name: "time", schema: mustFor[time.Time](tb), wrapped: true, sample: `"2026-01-02T03:04:05Z"`},
	}
}
