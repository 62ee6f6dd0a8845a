// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/compose"
)

func TestPipe_PassesEachValueToTheNext(t *testing.T) {
	p, err := compose.Pipe("sum", "Adds 11.", []*tool.Tool{adder("one", 1), adder("ten", 10)})
	p = sound(t, p, err)
	r := runComposed(p, `{"n":5}`)
	if got, want := r.Render(), `{"n":16}`; got != want {
		t.Errorf("result = %s, want %s", got, want)
	}
	if got, want := p.Input.String(), adder("one", 1).Input.String(); got != want {
		t.Errorf("input = %s, want %s", got, want)
	}
	if got, want := p.Output.String(), adder("ten", 1).Output.String(); got != want {
		t.Errorf("output = %s, want %s", got, want)
	}
}

func TestPipe_EndsAtTheFailedPart(t *testing.T) {
	ran := false
	last := tool.Must("last", "Must not run.", func(context.Context, addend) (addend, error) {
		ran = true
		return addend{}, nil
	})
	p, err := compose.Pipe("p", "A pipe.", []*tool.Tool{adder("one", 1), failing("bad", errors.New("no luck")), last})
	r := runComposed(sound(t, p, err), `{"n":5}`)
	if got, want := r.Render(), "Part bad: Error: no luck"; got != want {
		t.Errorf("result = %q, want %q", got, want)
	}
	if ran {
		t.Error("the part after the one that failed ran")
	}
}

type page struct {
	N int `json:"n"`
}

func (page) Render() string { return "a page" }

func TestPipe_AcceptsOnlyObjects(t *testing.T) {
	cases := []struct {
		name   string
		result tool.Result
		want   string
	}{
		{"a struct", tool.OK(addend{4}), `{"n":5}`},
		{"structured alone", tool.Result{Structured: []byte(`{"n":4}`)}, `{"n":5}`},
		{"a value that renders itself", tool.OK(page{4}), `{"n":5}`},
		{"an object that the next does not take", tool.OK(map[string]int{"m": 4}), "Part next: Validation error: it does not take the value of part first: "},
		{"a list", tool.OK([]int{4}), "Part first: its value is not a JSON object, which part next of p needs"},
		{"a text", tool.OK(`{"n":4}`), "Part first: its value is not a JSON object"},
		{"a message alone", tool.Text("4"), "Part first: its value is not a JSON object"},
		{"no JSON at all", tool.OK(func() {}), "Part first: its value is not a JSON object"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := compose.Pipe("p", "A pipe.", []*tool.Tool{answering("first", c.result), adder("next", 1)})
			r := runComposed(sound(t, p, err), `{"n":1}`)
			if got := r.Render(); !strings.Contains(got, c.want) {
				t.Errorf("result = %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestPipe_HiddenValueStaysHidden(t *testing.T) {
	secret := tool.Result{Value: addend{4}, HideValue: true, Message: "Found it."}
	p, err := compose.Pipe("p", "A pipe.", []*tool.Tool{answering("secret", secret), adder("next", 1)})
	r := runComposed(sound(t, p, err), `{"n":1}`)
	if !r.OK() || r.Value != (addend{5}) {
		t.Errorf("value = %v (%s), want it for programs", r.Value, r.Outcome)
	}
	if got := r.Render(); got != "" || r.Structured != nil {
		t.Errorf("the model reads %q and %s, want nothing", got, r.Structured)
	}
}

func TestPipe_RefusesInvalidParts(t *testing.T) {
	cases := []struct {
		name  string
		parts []*tool.Tool
		want  string
	}{
		{"none", nil, "it has no parts"},
		{"nil", []*tool.Tool{adder("a", 1), nil}, "parts[1] is nil"},
		{"a wrong declaration", []*tool.Tool{{Name: "a b", Description: "d"}}, "parts[0]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := compose.Pipe("p", "A pipe.", c.parts)
			if err == nil || !strings.Contains(advice.Text(err), c.want) {
				t.Errorf("error = %v, want %q in it", err, c.want)
			}
		})
	}
}
