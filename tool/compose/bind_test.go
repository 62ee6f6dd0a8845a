// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

type request struct {
	URL    string            `json:"url" doc:"where <to>"`
	Method string            `json:"method"`
	Header map[string]string `json:"header,omitempty"`
	Tries  int               `json:"tries,omitzero"`
}

func fetchTool(opts ...tool.Option) *tool.Tool {
	return tool.Must("fetch", "Fetches.", func(_ context.Context, p request) (request, error) { return p, nil }, opts...)
}

// openTool takes whatever it is given, and decodes it as Go does.
func openTool(text string) *tool.Tool {
	return &tool.Tool{
		Name: "open", Description: "Takes more than it says.", Input: schema.MustParse(text),
		Handler: func(_ context.Context, input json.RawMessage) (tool.Result, error) {
			var p struct{ A, B any }
			if err := json.Unmarshal(input, &p); err != nil {
				return tool.Result{}, err
			}
			return tool.OK(p), nil
		},
	}
}

func TestBind_ArgumentsAreFixedAndHidden(t *testing.T) {
	b, err := compose.Bind(fetchTool(), map[string]any{"method": "GET", "tries": 2}, tool.WithName("get", "Gets."))
	b = sound(t, b, err)
	want := `{"type":"object","properties":{"url":{"type":"string","description":"where <to>"},` +
		`"header":{"type":["object","null"],"additionalProperties":{"type":"string"}}},"required":["url"],"additionalProperties":false}`
	if got := b.Input.String(); got != want {
		t.Errorf("input = %s\nwant    %s", got, want)
	}
	if b.Name != "get" || b.Description != "Gets." {
		t.Errorf("it is %s: %s, want get: Gets.", b.Name, b.Description)
	}
	r := runComposed(b, `{"url":"x"}`)
	if got, want := r.Render(), `{"url":"x","method":"GET","tries":2}`; got != want {
		t.Errorf("the part got %s, want %s", got, want)
	}
}

func TestBind_ModelCannotGiveABoundArgument(t *testing.T) {
	text := `{"type":"object","properties":{"a":{},"b":{}}}`
	for _, input := range []string{`{"a":2}`, `{"A":2}`, `{"b":1,"a":null}`, `{"\u0061":2}`} {
		t.Run(input, func(t *testing.T) {
			b, err := compose.Bind(openTool(text), map[string]any{"a": 1})
			r := runComposed(sound(t, b, err), input)
			if r.Outcome != tool.Failed || r.Err.Code != tool.CodeInvalidInput || !strings.Contains(r.Render(), "is fixed; leave it out") {
				t.Errorf("%s: %s, want that it is fixed", r.Outcome, r.Render())
			}
		})
	}
	b, err := compose.Bind(fetchTool(), map[string]any{"method": "GET"})
	if r := runComposed(sound(t, b, err), `{"url":"x","method":"DELETE"}`); r.OK() || r.Err.Category != tool.CategoryValidation {
		t.Errorf("%s: %s, want a refusal", r.Outcome, r.Render())
	}
}

func TestBind_RulesAboutSeveralArgumentsApplyToTheWhole(t *testing.T) {
	text := `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["c"]}],"minProperties":2,"dependentRequired":{"a":["b"]}}`
	b, err := compose.Bind(openTool(text), map[string]any{"a": 1})
	b = sound(t, b, err)
	if r := runComposed(b, `{"b":2}`); r.Render() != `{"A":1,"B":2}` {
		t.Errorf("result = %s, want a success", r.Render())
	}
	if r := runComposed(b, `{"c":2}`); r.OK() || r.Err.Code != tool.CodeInvalidInput {
		t.Errorf("%s: %s, want the part to refuse what lacks b", r.Outcome, r.Render())
	}
}

func TestBind_DryRunHasTheArguments(t *testing.T) {
	dry := tool.WithDryRun(func(_ context.Context, input json.RawMessage) (tool.Result, error) {
		return tool.Text("would " + string(input)), nil
	})
	b, err := compose.Bind(fetchTool(dry), map[string]any{"method": "GET"})
	r := sound(t, b, err).Run(t.Context(), tool.Call{Input: json.RawMessage(`{"url":"x"}`), DryRun: true})
	if got, want := r.Render(), `would {"url":"x","method":"GET"}`; got != want || !r.DryRun {
		t.Errorf("result = %q, want %q", got, want)
	}
}

func TestBind_DropsExamplesOfThePart(t *testing.T) {
	b, err := compose.Bind(fetchTool(tool.WithExamples(tool.Example{Input: json.RawMessage(`{"url":"x","method":"GET"}`)})), map[string]any{"method": "GET"})
	if b = sound(t, b, err); len(b.Examples) != 0 {
		t.Errorf("examples = %v, want none", b.Examples)
	}
	lenient := openTool(`{"type":"object","properties":{"a":{}}}`)
	lenient.Examples = []tool.Example{{Input: json.RawMessage(`{"a":1}`)}}
	b, err = compose.Bind(lenient, map[string]any{"a": 1})
	if b = sound(t, b, err); len(b.Examples) != 0 {
		t.Errorf("examples of a schema that takes more than it says = %v, want none", b.Examples)
	}
}

type branch struct {
	Name string   `json:"name"`
	Subs []branch `json:"subs"`
}

func TestBind_RefusesInvalidArguments(t *testing.T) {
	untyped := openTool(`{"type":"object"}`)
	untyped.Input = nil
	cases := []struct {
		name   string
		part   *tool.Tool
		values map[string]any
		want   string
	}{
		{"unknown names", fetchTool(), map[string]any{"method": "GET", "verb": 1, "x": 2}, `no parameter is called "verb", "x"`},
		{"a wrong type", fetchTool(), map[string]any{"tries": "two"}, "/tries: must be an integer"},
		{"no JSON", fetchTool(), map[string]any{"tries": make(chan int)}, `value of "tries"`},
		{"no parameters", untyped, map[string]any{"a": 1}, "declares no parameters"},
		{"a map", openTool(`{"type":"object","additionalProperties":{"type":"string"}}`), map[string]any{"a": "x"}, `no parameter is called "a"`},
		{"parameters within themselves", tool.Must[branch, branch]("tree", "A tree.", nil), map[string]any{"name": "x"}, "refers to itself"},
		{"a reference to what is fixed", openTool(`{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`), map[string]any{"a": "x"}, "no schema at"},
		{"nil", nil, nil, "parts[0] is nil"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := compose.Bind(c.part, c.values); err == nil || !strings.Contains(advice.Text(err), c.want) {
				t.Errorf("error = %v, want %q in it", err, c.want)
			}
		})
	}
}
