// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

type search struct {
	Path    string            `json:"path" doc:"where to look" minLength:"1"`
	Kind    string            `json:"kind,omitempty" enum:"file,dir"`
	Limit   int               `json:"limit,omitempty" minimum:"1" maximum:"100"`
	Since   *time.Time        `json:"since"`
	Globs   []string          `json:"globs,omitempty" maxItems:"2"`
	Labels  map[string]string `json:"labels,omitempty"`
	Filters []filter          `json:"filters,omitempty"`
}

// A filter contains itself.
type filter struct {
	Name string   `json:"name"`
	Any  []filter `json:"any,omitempty"`
}

func TestNew_InfersTheSchemaOfTheParameters(t *testing.T) {
	made := tool.Must("search", "d", func(context.Context, search) (string, error) { return "", nil })
	want := `{"type":"object","properties":{` +
		`"path":{"type":"string","minLength":1,"description":"where to look"},` +
		`"kind":{"type":"string","enum":["file","dir"]},` +
		`"limit":{"type":"integer","minimum":1,"maximum":100},` +
		`"since":{"type":["string","null"],"format":"date-time"},` +
		`"globs":{"type":["array","null"],"items":{"type":"string"},"maxItems":2},` +
		`"labels":{"type":["object","null"],"additionalProperties":{"type":"string"}},` +
		`"filters":{"type":["array","null"],"items":{"$ref":"#/$defs/filter"}}},` +
		`"required":["path"],"additionalProperties":false,` +
		`"$defs":{"filter":{"type":"object","properties":{"name":{"type":"string"},"any":{"type":["array","null"],"items":{"$ref":"#/$defs/filter"}}},"required":["name"],"additionalProperties":false}}}`
	if got := made.Input.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if none := tool.Must("none", "d", quiet).Input.String(); none != `{"type":"object","properties":{},"additionalProperties":false}` {
		t.Errorf("a tool without parameters: got %s, want an empty object", none)
	}
}

// The texts are what a model reads. A change of one is a change for all models.
func TestArguments_RefusalIsTextForTheModel(t *testing.T) {
	ran := 0
	made := tool.Must("search", "d", func(context.Context, search) (string, error) { ran++; return "found", nil })
	const prefix, suffix = "Validation error: value does not match its schema: ", ". Correct the arguments and call the tool again."
	for _, tc := range []struct{ name, input, want string }{
		{"fine", `{"path":"a"}`, ""},
		{"all of it", `{"path":"a","kind":"dir","limit":100,"since":"2026-01-02T03:04:05Z","globs":["*"],"labels":{"a":"b"},"filters":[{"name":"x","any":[{"name":"y"}]}]}`, ""},
		{"optional ones may be null", `{"path":"a","since":null,"globs":null,"labels":null,"filters":null}`, ""},
		{"nothing", ``, `(root): property "path" is missing`},
		{"no object", `["a"]`, "(root): must be an object, got an array"},
		{"null", `null`, "(root): must be an object, got null"},
		{"no JSON", `{"path":`, "(root): is not valid JSON: unexpected end of JSON input"},
		{"an unknown key", `{"path":"a","paht":"b"}`, "/paht: is not a known property"},
		{"another case", `{"path":"a","Path":"b"}`, "/Path: is not a known property"},
		{"a key twice", `{"path":"a","path":"b"}`, `(root): has the property "path" twice; write each property once`},
		{"a wrong type", `{"path":7}`, "/path: must be a string, got an integer"},
		{"null for a required one", `{"path":null}`, "/path: must be a string, got null"},
		{"too short", `{"path":""}`, "/path: must have at least 1 characters, has 0"},
		{"no such value", `{"path":"a","kind":"link"}`, `/kind: must be one of "file", "dir"`},
		{"out of bounds", `{"path":"a","limit":101}`, "/limit: must be at most 100"},
		{"a fraction", `{"path":"a","limit":1.5}`, "/limit: must be an integer, got a number"},
		{"a whole fraction", `{"path":"a","limit":2.0}`, "/limit: must be an integer in the range of int, written without a fraction or an exponent"},
		{"no time", `{"path":"a","since":"yesterday"}`, "/since: must be a time such as 2006-01-02T15:04:05Z"},
		{"deep inside", `{"path":"a","filters":[{"name":"x","any":[{"name":"y"},{"nam":"z"}]}]}`, `/filters/0/any/1: property "name" is missing; /filters/0/any/1/nam: is not a known property`},
		{"everything at once", `{"limit":0,"globs":["a","b","c"],"labels":{"x":1}}`, `(root): property "path" is missing; /globs: must have at most 2 elements, has 3; /labels/x: must be a string, got an integer; /limit: must be at least 1`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := ran
			r := made.Run(t.Context(), tool.Call{Input: json.RawMessage(tc.input)})
			if tc.want == "" {
				if !r.OK() || r.Render() != "found" || ran != before+1 {
					t.Errorf("got %q, want it to run", r.Render())
				}
				return
			}
			if diff := cmp.Diff(prefix+tc.want+suffix, r.Render()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r.Outcome != tool.Failed || r.Err.Code != tool.CodeInvalidInput || r.Err.Category != tool.CategoryValidation || r.Err.Retryable {
				t.Errorf("got %s, %+v, want a validation error", r.Outcome, r.Err)
			}
			if ran != before {
				t.Error("the handler ran")
			}
		})
	}
}

func TestArguments_ReachTheHandler(t *testing.T) {
	var got search
	made := tool.Must("search", "d", func(_ context.Context, p search) (tool.Result, error) { got = p; return tool.Text("ok"), nil })
	r := made.Run(t.Context(), tool.Call{Input: json.RawMessage(` {"path":"a/\u00e9","limit":3,"labels":{"k":"v"},"filters":[{"name":"x"}]} `)})
	want := search{Path: "a/é", Limit: 3, Labels: map[string]string{"k": "v"}, Filters: []filter{{Name: "x"}}}
	if diff := cmp.Diff(want, got); diff != "" || !r.OK() {
		t.Errorf("%s (-want +got):\n%s", r.Render(), diff)
	}
}

func TestNew_MapsCanBeParameters(t *testing.T) {
	made := tool.Must("m", "d", func(_ context.Context, p map[string]int) (int, error) { return p["a"] + p["b"], nil })
	for input, want := range map[string]string{`{"a":1,"b":2}`: "3", ``: "0", `{"a":"x"}`: "/a: must be an integer"} {
		if r := made.Run(t.Context(), tool.Call{Input: json.RawMessage(input)}); !strings.Contains(r.Render(), want) {
			t.Errorf("%s: got %q, want %q", input, r.Render(), want)
		}
	}
}

func TestNew_DeclaredToolIsNotServed(t *testing.T) {
	made := tool.Must[search, string]("search", "d", nil)
	if made.Served() || made.Input == nil {
		t.Errorf("got served %t with schema %s, want a declaration alone", made.Served(), made.Input)
	}
	r := made.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"path":"a"}`)})
	if r.Err == nil || r.Err.Code != tool.CodeNotServed || r.Render() != "Tool search has no handler. Use another tool." {
		t.Errorf("got %q, %+v", r.Render(), r.Err)
	}
}

func TestNew_RefusesInvalidDeclarations(t *testing.T) {
	type args struct {
		C chan int
	}
	for _, tc := range []struct {
		name string
		make func() (*tool.Tool, error)
		want string
	}{
		{"parameters without a JSON form", func() (*tool.Tool, error) { return tool.New[args, string]("x", "d", nil) }, `tool: "x": parameters: schema: not a usable schema: at tool_test.args.C`},
		{"a result without a JSON form", func() (*tool.Tool, error) { return tool.New[tool.None, args]("x", "d", nil) }, `tool: "x": result: schema: not a usable schema`},
		{"parameters that are a list", func() (*tool.Tool, error) { return tool.New[[]string, string]("x", "d", nil) }, `Input must have "type":"object"`},
		{"no description", func() (*tool.Tool, error) { return tool.New("x", "", quiet) }, "Description is empty"},
		{"an example that does not fit", func() (*tool.Tool, error) {
			return tool.New("x", "d", quiet, tool.WithExamples(tool.Example{Input: json.RawMessage(`{"a":1}`)}))
		}, "Examples[0].Input"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made, err := tc.make()
			if made != nil || err == nil || !strings.Contains(advice.Text(err), tc.want) {
				t.Errorf("got %v, %v, want no tool and %q", made, err, tc.want)
			}
		})
	}
	var at *schema.LocationError
	if _, err := tool.New[args, string]("x", "d", nil); !errors.As(err, &at) {
		t.Errorf("got %v, want the error of the schema wrapped", err)
	}
}

func TestMust_PanicsOnAnInvalidDeclaration(t *testing.T) {
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.Contains(advice.Text(err), "Name must be") {
			t.Errorf("got panic %v, want the error of New", err)
		}
	}()
	tool.Must("no name", "d", quiet)
}

type rendered struct{ N int }

func (r *rendered) Render() string { return fmt.Sprint("N is ", r.N) }

type answer struct {
	Found []string `json:"found"`
	Score float64  `json:"score" minimum:"0"`
}

func TestNew_InfersTheSchemaOfTheResult(t *testing.T) {
	const object = `{"type":"object","properties":{"found":{"type":["array","null"],"items":{"type":"string"}},"score":{"type":"number","minimum":0}},"required":["found","score"],"additionalProperties":false}`
	for _, tc := range []struct {
		name string
		make *tool.Tool
		want string // empty: none
	}{
		{"an object", tool.Must[tool.None, answer]("x", "d", nil), object},
		{"a pointer", tool.Must[tool.None, *answer]("x", "d", nil), object},
		{"a reply", tool.Must[tool.None, tool.Reply[answer]]("x", "d", nil), object},
		{"a pointer to a reply", tool.Must[tool.None, *tool.Reply[*answer]]("x", "d", nil), object},
		{"a map", tool.Must[tool.None, map[string]bool]("x", "d", nil), `{"type":"object","additionalProperties":{"type":"boolean"}}`},
		{"a string", tool.Must[tool.None, string]("x", "d", nil), ""},
		{"a list", tool.Must[tool.None, []answer]("x", "d", nil), ""},
		{"a reply with a string", tool.Must[tool.None, tool.Reply[string]]("x", "d", nil), ""},
		{"anything", tool.Must[tool.None, any]("x", "d", nil), ""},
		{"a reply with anything", tool.Must[tool.None, tool.Reply[any]]("x", "d", nil), ""},
		{"a result", tool.Must[tool.None, tool.Result]("x", "d", nil), ""},
		{"a pointer to a result", tool.Must[tool.None, *tool.Result]("x", "d", nil), ""},
		{"what renders itself", tool.Must[tool.None, *rendered]("x", "d", nil), ""},
		{"a hidden value", tool.Must[tool.None, answer]("x", "d", nil, tool.WithHiddenValue()), ""},
		{"a schema of its own", tool.Must[tool.None, any]("x", "d", nil, tool.WithOutput(schema.MustParse(`{"type":"object"}`))), `{"type":"object"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if tc.make.Output != nil {
				got = tc.make.Output.String()
			}
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// A schema that the caller gives does not weaken that of the Go type.
func TestArguments_MustFitTheGoTypeAndTheGivenSchema(t *testing.T) {
	ran := 0
	open := schema.MustParse(`{"type":"object","properties":{"path":{"type":"string","maxLength":3}}}`)
	made := tool.Must("search", "d", func(context.Context, search) (string, error) { ran++; return "found", nil }, tool.WithInput(open))
	for _, tc := range []struct{ input, want string }{
		{`{"path":"abc"}`, "found"},
		{`{"path":"abcd"}`, "/path: must have at most 3 characters"},
		{`{"path":"abc","PATH":"abcd"}`, "/PATH: is not a known property"},
		{`{}`, `property "path" is missing`},
	} {
		before := ran
		r := made.Run(t.Context(), tool.Call{Input: json.RawMessage(tc.input)})
		if !strings.Contains(r.Render(), tc.want) || (ran > before) != r.OK() {
			t.Errorf("%s: got %q, want %q", tc.input, r.Render(), tc.want)
		}
		if !r.OK() && r.Err.Code != tool.CodeInvalidInput {
			t.Errorf("%s: got code %s, want %s", tc.input, r.Err.Code, tool.CodeInvalidInput)
		}
	}
}

// BenchmarkNewTool compares the first tool of a type, whose schema must be made, with later ones.
func BenchmarkNewTool(b *testing.B) {
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			fresh := freshType(n)
			b.StartTimer()
			if _, err := schema.ForType(fresh); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("later", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tool.New("search", "d", func(context.Context, search) (string, error) { return "", nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// freshType is a type like search that nothing has seen yet.
func freshType(n int) reflect.Type {
	var fields []reflect.StructField
	for f := range reflect.TypeFor[search]().Fields() {
		fields = append(fields, f)
	}
	fields[0].Tag = reflect.StructTag(fmt.Sprintf(`json:"path" doc:"number %d of %s"`, n, time.Now()))
	return reflect.StructOf(fields)
}
