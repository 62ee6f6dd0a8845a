// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

type finding struct {
	File string `json:"file" minLength:"1"`
	Line *int   `json:"line,omitempty"`
}

// parseAs makes a prompt of an output type and gives it an answer. It returns the schema as well.
func parseAs[Out any](t *testing.T, extraKeys bool, answer string) (out any, asked string, err error) {
	t.Helper()
	p, err := mustDefine[Out](t, Definition{ExtraKeys: extraKeys, Sections: []*Section{Markdown("a", "A", "x")}}).Bind()
	if err != nil {
		t.Fatal(err)
	}
	r := mustRender(t, p, nil)
	if (r.Output == nil) != (r.OutputSchema == nil) {
		t.Errorf("Output is %v, but OutputSchema is %s", r.Output, r.OutputSchema)
	}
	got, err := p.Parse(json.RawMessage(answer))
	return got, string(r.OutputSchema), err
}

func TestOutput_ParsesEveryShape(t *testing.T) {
	findingSchema := `{"type":"object","properties":{"file":{"type":"string","minLength":1},"line":{"type":["integer","null"]}},"required":["file"],"additionalProperties":false}`
	wrapped := func(inner string) string {
		return `{"type":"object","properties":{"value":` + inner + `},"required":["value"],"additionalProperties":false}`
	}
	for _, c := range []struct {
		name   string
		parse  func(answer string) (any, string, error)
		answer string
		want   any
		asked  string
	}{
		{"struct", func(a string) (any, string, error) { return parseAs[finding](t, false, a) }, `{"file":"a","line":3}`, finding{"a", new(3)}, findingSchema},
		{"pointer", func(a string) (any, string, error) { return parseAs[*finding](t, false, a) }, `{"file":"a"}`, &finding{File: "a"}, findingSchema},
		{"slice of structs", func(a string) (any, string, error) { return parseAs[[]finding](t, false, a) }, `{"value":[{"file":"a"},{"file":"b"}]}`, []finding{{File: "a"}, {File: "b"}}, ""},
		{"not wrapped after all", func(a string) (any, string, error) { return parseAs[[]finding](t, false, a) }, `[{"file":"a"}]`, []finding{{File: "a"}}, ""},
		{"number", func(a string) (any, string, error) { return parseAs[float64](t, false, a) }, `{"value":1.5}`, 1.5, ""},
		{"bool", func(a string) (any, string, error) { return parseAs[bool](t, false, a) }, `{"value":true}`, true, wrapped(`{"type":"boolean"}`)},
		{"string", func(a string) (any, string, error) { return parseAs[string](t, false, a) }, `{"value":"x"}`, "x", wrapped(`{"type":"string"}`)},
		{"map", func(a string) (any, string, error) { return parseAs[map[string]finding](t, false, a) }, `{"x":{"file":"a"}}`, map[string]finding{"x": {File: "a"}}, ""},
		{"plain text", func(a string) (any, string, error) { return parseAs[Text](t, false, a) }, `"hello"`, Text("hello"), ""},
		{"keys that are not known, where they may be", func(a string) (any, string, error) { return parseAs[finding](t, true, a) }, `{"file":"a","mood":"good"}`, finding{File: "a"}, strings.TrimSuffix(findingSchema, `,"additionalProperties":false}`) + "}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, asked, err := c.parse(c.answer)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.asked != "" && asked != c.asked {
				t.Errorf("asked for\n%s\nwant\n%s", asked, c.asked)
			}
			if (asked == "") != (c.name == "plain text") {
				t.Errorf("asked for %q", asked)
			}
		})
	}
}

// A type is the same to the model whether it answers with it or calls a tool with it.
func TestOutput_AnswersAndArgumentsHaveTheSameSchema(t *testing.T) {
	takes := tool.Must("take", "Takes it.", func(context.Context, finding) (string, error) { return "", nil })
	asked, err := json.Marshal(takes.Input)
	if err != nil {
		t.Fatal(err)
	}
	if _, answer, _ := parseAs[finding](t, false, `{"file":"a"}`); answer != string(asked) {
		t.Errorf("the answer is described as\n%s\nand arguments as\n%s", answer, asked)
	}
	for _, bad := range []string{`{}`, `{"file":""}`, `{"file":"a","mood":"good"}`, `{"file":"a","line":"x"}`} {
		_, _, wrong := parseAs[finding](t, false, bad)
		if r := takes.Run(t.Context(), tool.Call{ID: "1", Input: json.RawMessage(bad)}); r.OK() || wrong == nil {
			t.Errorf("%s is refused as arguments: %t, as an answer: %v", bad, !r.OK(), wrong)
		}
	}
}

func TestOutputError_HasTheInvalidAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		parse  func(answer string) (any, string, error)
		answer string
		want   string
	}{
		{"a missing property", func(a string) (any, string, error) { return parseAs[finding](t, false, a) }, `{"line":1}`, `(root): property "file" is missing`},
		{"a constraint", func(a string) (any, string, error) { return parseAs[finding](t, false, a) }, `{"file":""}`, `/file: `},
		{"a key that is not known", func(a string) (any, string, error) { return parseAs[finding](t, false, a) }, `{"file":"a","mood":"good"}`, `mood`},
		{"an element of a list", func(a string) (any, string, error) { return parseAs[[]finding](t, false, a) }, `{"value":[{"file":"a"},{"file":7}]}`, `/1/file: must be a string`},
		{"no JSON", func(a string) (any, string, error) { return parseAs[finding](t, false, a) }, `{`, `answer: {`},
		{"nothing", func(a string) (any, string, error) { return parseAs[finding](t, false, a) }, ` `, `there is no structured answer`},
		{"text that is null", func(a string) (any, string, error) { return parseAs[Text](t, false, a) }, ` null`, `is null`},
		{"text that is no string", func(a string) (any, string, error) { return parseAs[Text](t, false, a) }, `7`, `cannot unmarshal number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := c.parse(c.answer)
			bad, ok := errors.AsType[*OutputError](err)
			if !ok || !errors.Is(err, ErrOutput) {
				t.Fatalf("got %v, want an OutputError", err)
			}
			if string(bad.Raw) != c.answer || bad.Prompt != "demo:test" {
				t.Errorf("got the answer %s of %s", bad.Raw, bad.Prompt)
			}
			if !strings.Contains(advice.Text(err), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

func TestOutputError_TextIsBounded(t *testing.T) {
	long := `{"file":7,"line":"` + strings.Repeat("ä", 1000) + `"}`
	_, _, err := parseAs[finding](t, false, long)
	if _, ok := errors.AsType[*schema.ValidationError](err); !ok {
		t.Errorf("got %v, want a ValidationError inside", err)
	}
	if got := err.Error(); len(got) > 1200 || !strings.HasSuffix(got, "... (2020 bytes)") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}

// An answer whose form is known only when the program runs is described by a schema.
func TestOutput_SchemaDescribesAnAnswerWithoutAType(t *testing.T) {
	describe := func(text string) *schema.Schema {
		if text == "" {
			return nil
		}
		return schema.MustParse(text)
	}
	for name, c := range map[string]struct {
		schema, answer, want, wrong string
	}{
		"an object":                 {schema: `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, answer: `{"n":1,"more":true}`, want: `{"n":1,"more":true}`},
		"an object that is wrong":   {schema: `{"type":"object","required":["n"]}`, answer: `{}`, wrong: `property "n" is missing`},
		"a list, which is wrapped":  {schema: `{"type":"array","items":{"type":"string"}}`, answer: `{"value":["a"]}`, want: `["a"]`},
		"text":                      {answer: `"hello"`, want: `"hello"`},
		"text that is not there":    {answer: ``, wrong: "there is no structured answer"},
		"text that is another type": {answer: `null`, wrong: "null, not a string"},
	} {
		tmpl := mustDefine[JSON](t, Definition{Output: describe(c.schema), Sections: []*Section{Markdown("a", "A", "x")}})
		p, err := tmpl.Bind()
		if err != nil {
			t.Fatal(err)
		}
		if r := mustRender(t, p, nil); (r.OutputSchema == nil) != (c.schema == "") {
			t.Errorf("%s: the agent is asked for %s", name, r.OutputSchema)
		}
		got, err := p.Parse(json.RawMessage(c.answer))
		if c.wrong != "" {
			if !errors.Is(err, ErrOutput) || !strings.Contains(advice.Text(err), c.wrong) {
				t.Errorf("%s: error %v, want %q", name, err, c.wrong)
			}
			continue
		}
		if written, _ := json.Marshal(got); err != nil || got.String() != c.want || string(written) != c.want {
			t.Errorf("%s: got %s, %s, %v, want %s", name, got, written, err, c.want)
		}
	}
}

func TestDefinition_UnusedOutputSchemaIsRejected(t *testing.T) {
	sections := []*Section{Markdown("a", "A", "x")}
	object := schema.MustParse(`{"type":"object"}`)
	_, typed := Define[finding](Definition{Namespace: "n", Key: "k", Sections: sections, Output: object})
	_, extra := Define[JSON](Definition{Namespace: "n", Key: "k", Sections: sections, Output: object, ExtraKeys: true})
	for want, err := range map[string]error{"field Output is for prompts with the output type JSON": typed, "ExtraKeys is for answers that a Go type describes": extra} {
		if !errors.Is(err, ErrDefinition) || !strings.Contains(advice.Text(err), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
