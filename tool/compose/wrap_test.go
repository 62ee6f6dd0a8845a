// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

func TestPreprocess_RewritesTheInput(t *testing.T) {
	words := schema.MustParse(`{"type":"object","properties":{"word":{"enum":["one","two"]}},"required":["word"]}`)
	p := compose.Preprocess(adder("add", 10), func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
		if strings.Contains(string(input), "two") {
			return nil, tool.Errorf(tool.CategoryConflict, "two is taken")
		}
		return json.RawMessage(`{"n":1}`), nil
	}, tool.WithInput(words))
	cases := []struct{ name, input, want string }{
		{"rewritten", `{"word":"one"}`, `{"n":11}`},
		{"refused by the function", `{"word":"two"}`, "two is taken"},
		{"refused by the schema", `{"word":"ten"}`, "Validation error"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if r := runComposed(p, c.input); !strings.Contains(r.Render(), c.want) {
				t.Errorf("result = %s, want %s", r.Render(), c.want)
			}
		})
	}
}

func TestPreprocess_ItsInputIsChecked(t *testing.T) {
	p := compose.Preprocess(adder("add", 10), func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"n":"x"}`), nil
	})
	if r := runComposed(p, `{"n":1}`); r.OK() || r.Err.Code != tool.CodeInvalidInput {
		t.Errorf("%s: %s, want invalid input", r.Outcome, r.Render())
	}
}

func TestPostprocess_RewritesResults(t *testing.T) {
	double := func(_ context.Context, r tool.Result) (tool.Result, error) {
		if n, ok := r.Value.(addend); ok {
			r.Value = map[string]int{"double": 2 * n.N}
			return r, nil
		}
		return tool.Text("repaired: " + r.Render()), nil
	}
	cases := []struct {
		name string
		part *tool.Tool
		want string
	}{
		{"a success", adder("add", 1), `{"double":4}`},
		{"a failure", failing("bad", errors.New("oh")), "repaired: Error: oh"},
		{"a denial", answering("no", tool.Result{Outcome: tool.Denied, Err: &tool.Error{Category: tool.CategoryPermission, Message: "no"}}), "no"},
		{"a need for approval", answering("ask", tool.Result{Outcome: tool.NeedsApproval, Action: &tool.Action{Message: "ask first"}}), "ask first"},
		{"a cancellation", failing("gone", context.Canceled), "Cancelled"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := compose.Postprocess(c.part, double)
			before, r := runComposed(c.part, `{"n":1}`), runComposed(p, `{"n":1}`)
			if got := r.Render(); got != c.want {
				t.Errorf("result = %s, want %s", got, c.want)
			}
			if before.Outcome != tool.Success && before.Outcome != tool.Failed && r.Outcome != before.Outcome {
				t.Errorf("outcome = %s, want %s as it was", r.Outcome, before.Outcome)
			}
			if r.OK() && r.Structured != nil && string(r.Structured) != c.want {
				t.Errorf("structured = %s, want %s", r.Structured, c.want)
			}
			if p.Output != nil {
				t.Errorf("output = %s, want no promise", p.Output)
			}
		})
	}
}

func TestPostprocess_CannotShowAHiddenValue(t *testing.T) {
	for name, part := range map[string]*tool.Tool{
		"by the tool":   adder("add", 1, tool.WithHiddenValue()),
		"by the result": answering("add", tool.Result{Value: addend{2}, HideValue: true}),
	} {
		t.Run(name, func(t *testing.T) {
			p := compose.Postprocess(part, func(_ context.Context, r tool.Result) (tool.Result, error) {
				return tool.Result{Value: r.Value, Structured: json.RawMessage(`{"n":2}`)}, nil
			})
			if r := runComposed(p, `{"n":1}`); !r.HideValue || r.Structured != nil || r.Render() != "" {
				t.Errorf("the model reads %q and %s, want nothing", r.Render(), r.Structured)
			}
		})
	}
}

func TestPostprocess_SkipsDryRuns(t *testing.T) {
	dry := tool.WithDryRun(func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Text("would add"), nil })
	p := compose.Postprocess(adder("add", 1, dry), func(context.Context, tool.Result) (tool.Result, error) { return tool.Text("done"), nil })
	r := p.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"n":1}`), DryRun: true})
	if got, want := r.Render(), "would add"; got != want {
		t.Errorf("result = %q, want %q", got, want)
	}
}

func TestWrap_DropsExamplesThatNoLongerFit(t *testing.T) {
	part := adder("add", 1, tool.WithExamples(tool.Example{Input: json.RawMessage(`{"n":1}`)}, tool.Example{Input: json.RawMessage(`{"n":5}`)}))
	small := schema.MustParse(`{"type":"object","properties":{"n":{"type":"integer","maximum":2}}}`)
	made := compose.Retry(part, compose.RetryOptions{}, tool.WithInput(small))
	if len(made.Examples) != 1 || len(part.Examples) != 2 || string(part.Examples[1].Input) != `{"n":5}` {
		t.Errorf("%d examples, %d of the part; want 1 and 2", len(made.Examples), len(part.Examples))
	}
}
