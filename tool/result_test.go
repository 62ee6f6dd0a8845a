// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

type loud string

func (l loud) Render() string { return "LOUD " + string(l) }

type explosive struct{ A int }

func (explosive) Render() string { panic("boom") }

type unwritable struct{ A int }

func (unwritable) MarshalJSON() ([]byte, error) { panic("boom") }

func TestResult_Render(t *testing.T) {
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	for _, tc := range []struct {
		name   string
		result tool.Result
		want   string
	}{
		{"a value that renders itself", tool.Result{Value: loud("x"), Message: "m"}, "LOUD x"},
		{"a pointer that renders itself", tool.OK(&rendered{3}), "N is 3"},
		{"a nil pointer that would", tool.Result{Value: (*rendered)(nil), Message: "m"}, "m"},
		{"one that renders itself to nothing", tool.Result{Value: renderedNothing{}, Message: "m"}, "m"},
		{"one that panics", tool.OK(explosive{}), "[unserializable]"},
		{"an object", tool.Result{Value: answer{Found: []string{"<a> & b"}}, Message: "m"}, `{"found":["<a> & b"],"score":0}`},
		{"a list", tool.OK([]int{1, 2}), "[1,2]"},
		{"an empty list", tool.OK([]int{}), "[]"},
		{"a number", tool.OK(1.5), "1.5"},
		{"false", tool.OK(false), "false"},
		{"a string as it is", tool.OK("a \"b\"\n"), "a \"b\"\n"},
		{"bytes as they are", tool.OK([]byte("raw")), "raw"},
		{"JSON as it is", tool.OK(json.RawMessage(`{ "a": 1 }`)), `{ "a": 1 }`},
		{"an empty string gives the message", tool.Result{Value: "", Message: "m"}, "m"},
		{"no value gives the message", tool.Text("m"), "m"},
		{"neither", tool.OK(nil), ""},
		{"a hidden value gives the message", tool.Result{Value: "secret", Message: "m", HideValue: true}, "m"},
		{"a hidden value without a message", tool.Result{Value: "secret", HideValue: true}, ""},
		{"no JSON form", tool.Result{Value: math.Inf(1), Message: "m"}, "[unserializable]"},
		{"a channel", tool.OK(make(chan int)), "[unserializable]"},
		{"a cycle", tool.OK(cyclic), "[unserializable]"},
		{"a value that panics when written", tool.OK(unwritable{}), "[unserializable]"},
		{"a failure", tool.Fail("no such file; list the directory first"), "no such file; list the directory first"},
		{"an error beats the value", tool.Result{Err: tool.Errorf(tool.CategoryConflict, "taken"), Value: "v", Message: "m"}, "taken"},
		{"an outcome beats the value", tool.Result{Outcome: tool.Denied, Value: "v", Message: "not you"}, "not you"},
		{"approval", tool.Result{Outcome: tool.NeedsApproval, Action: &tool.Action{Type: "approval", Message: "ask the owner"}}, "ask the owner"},
		{"an error beats the action", tool.Result{Outcome: tool.NeedsApproval, Err: &tool.Error{Message: "why"}, Action: &tool.Action{Message: "ask"}}, "why"},
		{"no reason at all", tool.Result{Outcome: tool.Cancelled}, `The call ended with "cancelled", without a reason. Continue without its result.`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.result.Render(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

type renderedNothing struct{}

func (renderedNothing) Render() string { return "" }

// The result of a typed handler, after the run.
func TestResult_OfATypedHandler(t *testing.T) {
	image := []tool.Image{{Data: []byte("png"), MIMEType: "image/png"}}
	for _, tc := range []struct {
		name string
		tool *tool.Tool
		want tool.Result
	}{
		{"an object is structured", returning(answer{Found: []string{"a"}}), tool.Result{Value: answer{Found: []string{"a"}}, Structured: json.RawMessage(`{"found":["a"],"score":0}`)}},
		{"a nil list is written as null, as promised", returning(answer{}), tool.Result{Value: answer{}, Structured: json.RawMessage(`{"found":null,"score":0}`)}},
		{"a pointer", returning(&answer{Score: 1}), tool.Result{Value: &answer{Score: 1}, Structured: json.RawMessage(`{"found":null,"score":1}`)}},
		{"a nil pointer", returning((*answer)(nil)), tool.Result{Value: (*answer)(nil)}},
		{"a string is not structured", returning("x"), tool.Result{Value: "x"}},
		{"a list is not structured", returning([]int{1}), tool.Result{Value: []int{1}}},
		{"what renders itself is not structured", returning(&rendered{1}), tool.Result{Value: &rendered{1}}},
		{"a map", returning(map[string]any{"a": "<b>"}), tool.Result{Value: map[string]any{"a": "<b>"}, Structured: json.RawMessage(`{"a":"<b>"}`)}},
		{"a reply", returning(tool.Reply[int]{Value: 7, Message: "m", Images: image}), tool.Result{Value: 7, Message: "m", Images: image}},
		{"a pointer to a reply", returning(&tool.Reply[int]{Value: 7}), tool.Result{Value: 7}},
		{"a nil reply", returning((*tool.Reply[int])(nil)), tool.Result{}},
		{"a reply that hides its value", returning(tool.Reply[answer]{Message: "m", HideValue: true}), tool.Result{Value: answer{}, Message: "m", HideValue: true}},
		{"a result", returning(tool.Result{Message: "m", Structured: json.RawMessage(`{"own":1}`)}), tool.Result{Message: "m", Structured: json.RawMessage(`{"own":1}`)}},
		{"a pointer to a result", returning(new(tool.Text("m"))), tool.Result{Message: "m"}},
		{"a nil result", returning((*tool.Result)(nil)), tool.Result{}},
		{"a tool that hides values", returning(answer{}, tool.WithHiddenValue()), tool.Result{Value: answer{}, HideValue: true}},
		{"a value without a JSON form", returning[any](math.NaN()), tool.Result{Value: "NaN"}},
		{"a value that panics when written", returning[any](unwritable{1}), tool.Result{Value: unwritable{1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.tool.Run(t.Context(), tool.Call{ID: "c"})
			want := tc.want
			want.Outcome, want.CallID, want.Tool = tool.Success, "c", "typed"
			got.Duration = 0
			if f, ok := got.Value.(float64); ok && math.IsNaN(f) {
				got.Value = "NaN"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// returning is a tool that answers with one value.
func returning[R any](value R, opts ...tool.Option) *tool.Tool {
	return tool.Must("typed", "d", func(context.Context, tool.None) (R, error) { return value, nil }, opts...)
}

func TestResult_OutputSchemaViolationIsAnError(t *testing.T) {
	for _, tc := range []struct {
		name string
		tool *tool.Tool
		want string
	}{
		{"a constraint", returning(answer{Score: -1}), "Error: the tool ran, but its result does not match its schema: value does not match its schema: /score: must be at least 0. Check what the tool did before you call it again."},
		{"structured by hand", &tool.Tool{
			Name: "x", Output: tool.Must[tool.None, answer]("x", "d", nil).Output,
			Handler: func(context.Context, json.RawMessage) (tool.Result, error) {
				return tool.Result{Message: "m", Structured: json.RawMessage(`{"score":1}`)}, nil
			},
		}, `Error: the tool ran, but its result does not match its schema: value does not match its schema: (root): property "found" is missing. Check what the tool did before you call it again.`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tc.tool.Run(t.Context(), tool.Call{})
			if r.Outcome != tool.Failed || r.Err.Code != tool.CodeInvalidOutput || r.Err.Category != tool.CategoryInternal || r.Structured != nil {
				t.Errorf("got %+v", r)
			}
			if diff := cmp.Diff(tc.want, r.Render()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResult_IsAnEvent(t *testing.T) {
	r := tool.Result{
		CallID: "c", Tool: "x", Outcome: tool.Failed, Duration: time.Second, InputDigest: "i", OutputDigest: "o",
		Err: &tool.Error{Code: "C", Category: tool.CategoryTransient, Message: "try \"later\"", Retryable: true},
	}
	want := event.ToolResult{
		ID: "c", Name: "x", Status: event.ToolError, Duration: time.Second, InputDigest: "i", OutputDigest: "o",
		Output:  json.RawMessage(`"try \"later\""`),
		Failure: &event.ToolFailure{Code: "C", Category: "transient", Message: "try \"later\"", Retryable: true},
	}
	if diff := cmp.Diff(want, r.Event()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ok := tool.OK(answer{Score: 1})
	if got := ok.Event(); got.Failure != nil || string(got.Output) != `"{\"found\":null,\"score\":1}"` {
		t.Errorf("got %s, %+v", got.Output, got.Failure)
	}
}
