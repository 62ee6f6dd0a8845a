// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

func deciding(d event.Decision) tool.Decider {
	return tool.DeciderFunc(func(context.Context, event.ToolCall) event.Decision { return d })
}

// byInput denies inputs that are not {"a":1}.
var byInput = tool.DeciderFunc(func(_ context.Context, call event.ToolCall) event.Decision {
	if string(call.Input) != `{"a":1}` {
		return event.Decision{Reason: "Not with " + string(call.Input) + "."}
	}
	return event.Decision{Verdict: event.Allow}
})

func rawJSON(s string) json.RawMessage { return json.RawMessage(s) }

type contextKey struct{}

func TestHook_AnswersWithTheDecision(t *testing.T) {
	for _, tt := range []struct {
		name    string
		decider tool.Decider
		want    *claude.PreToolUseOutput // nil for an error, which denies
	}{
		{"allow", deciding(event.Decision{Verdict: event.Allow}), claude.AllowTool()},
		{
			"allow with another input", deciding(event.Decision{Verdict: event.Allow, Input: rawJSON(`{"b":2}`)}),
			&claude.PreToolUseOutput{PermissionDecision: claude.DecideAllow, UpdatedInput: rawJSON(`{"b":2}`)},
		},
		{"ask", deciding(event.Decision{Verdict: event.Ask, Reason: "why?"}), claude.AskTool("why?")},
		{"deny", deciding(event.Decision{Reason: "no"}), claude.DenyTool("no")},
		{"deny without a reason", deciding(event.Decision{Tool: "Bash"}), claude.DenyTool("Bash is not permitted. Continue without this call.")},
		{"an invalid verdict", deciding(event.Decision{Verdict: 9, Reason: "?", Input: rawJSON(`{}`)}), claude.DenyTool("?")},
		{"an input that is no object", deciding(event.Decision{Verdict: event.Allow, Input: rawJSON(`[]`)}), nil},
		{"an input that is no JSON", deciding(event.Decision{Verdict: event.Allow, Input: rawJSON(`{"a"`)}), nil},
		{"a panic", tool.DeciderFunc(func(context.Context, event.ToolCall) event.Decision { panic("oh") }), nil},
		{"no decider", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := claudecode.Hook(tt.decider)
			if h.Event != claude.HookPreToolUse || h.Matcher != "" || h.Timeout != 0 {
				t.Errorf("hook %+v, want one for all calls, without a limit", h)
			}
			out, err := h.Func(t.Context(), &claude.PreToolUseInput{ToolName: "Bash"})
			if tt.want == nil {
				if err == nil {
					t.Errorf("%+v, want an error", out)
				}
				return
			}
			if diff := cmp.Diff(tt.want, out); err != nil || diff != "" {
				t.Errorf("%v, answer (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDenyingHook_DoesNotAllow(t *testing.T) {
	for _, tt := range []struct {
		name     string
		decision event.Decision
		want     *claude.PreToolUseOutput
	}{
		{"allow", event.Decision{Verdict: event.Allow}, &claude.PreToolUseOutput{}},
		{"allow with another input", event.Decision{Verdict: event.Allow, Input: rawJSON(`{}`)}, claude.RewriteTool(rawJSON(`{}`))},
		{"allowed by an approver", event.Decision{Verdict: event.Allow, Asked: true}, claude.AllowTool()},
		{"allowed by an approver before", event.Decision{Verdict: event.Allow, Remembered: true}, claude.AllowTool()},
		{"ask", event.Decision{Verdict: event.Ask, Reason: "hm"}, claude.AskTool("hm")},
		{"deny", event.Decision{Reason: "no"}, claude.DenyTool("no")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := claudecode.DenyingHook(deciding(tt.decision)).Func(t.Context(), &claude.PreToolUseInput{ToolName: "Bash"})
			if diff := cmp.Diff(tt.want, out); err != nil || diff != "" {
				t.Errorf("%v, answer (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestHook_DeciderSeesTheWholeCall(t *testing.T) {
	var seen []event.ToolCall
	d := tool.DeciderFunc(func(ctx context.Context, call event.ToolCall) event.Decision {
		if ctx.Value(contextKey{}) != "here" {
			t.Error("the decider got another context")
		}
		seen = append(seen, call)
		return event.Decision{Verdict: event.Allow}
	})
	ctx := context.WithValue(t.Context(), contextKey{}, "here")
	in := &claude.PreToolUseInput{ToolName: "Bash", ToolUseID: "toolu_1", ToolInput: rawJSON(`{"a":1}`)}
	in.AgentID = "helper"
	if _, err := claudecode.Hook(d).Func(ctx, in); err != nil {
		t.Fatal(err)
	}
	req := &claude.PermissionRequest{ToolName: "Bash", ToolUseID: "toolu_1", Input: rawJSON(`{"a":1}`), AgentID: "helper", Description: "list"}
	if _, err := claudecode.Permission(d, nil)(ctx, req); err != nil {
		t.Fatal(err)
	}
	want := event.ToolCall{ID: "toolu_1", Name: "Bash", Input: rawJSON(`{"a":1}`), AgentID: "helper"}
	described := want
	described.Description = "list"
	if diff := cmp.Diff([]event.ToolCall{want, described}, seen); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestPermissionCallback_Decide(t *testing.T) {
	next := func(r claude.PermissionResult, err error) claude.CanUseTool {
		return func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) { return r, err }
	}
	yes, ask := event.Decision{Verdict: event.Allow}, event.Decision{Verdict: event.Ask, Reason: "hm"}
	bash := claude.PermissionRequest{ToolName: "Bash", Input: rawJSON(`{"a":1}`)}
	plan := claude.PermissionRequest{ToolName: "ExitPlanMode", Input: rawJSON(`{"a":1}`), RequiresUserInteraction: true}
	question := claude.PermissionRequest{ToolName: claude.AskUserQuestionTool, Input: rawJSON(`{"a":1}`)}
	echo := claude.Allow{UpdatedInput: rawJSON(`{"a":1}`)}
	for _, tt := range []struct {
		name    string
		decider tool.Decider
		next    claude.CanUseTool
		req     claude.PermissionRequest
		want    claude.PermissionResult // nil for an error, which denies
	}{
		{"allow gives the input back", deciding(yes), nil, bash, echo},
		{"allow with another input", deciding(event.Decision{Verdict: event.Allow, Input: rawJSON(`{"b":2}`)}), nil, bash, claude.Allow{UpdatedInput: rawJSON(`{"b":2}`)}},
		{"deny", deciding(event.Decision{Reason: "no"}), nil, bash, claude.Deny{Message: "no"}},
		{"deny beats the callback", deciding(event.Decision{Reason: "no"}), next(claude.Allow{}, nil), bash, claude.Deny{Message: "no"}},
		{"an invalid verdict", deciding(event.Decision{Verdict: 9, Reason: "?"}), next(claude.Allow{}, nil), bash, claude.Deny{Message: "?"}},
		{
			"ask without a callback", deciding(ask), nil, bash,
			claude.Deny{Message: "Bash needs approval (hm), but no permission callback is set. Continue without this call."},
		},
		{"ask with one", deciding(ask), next(claude.Allow{}, nil), bash, echo},
		{"allow, and the callback denies", deciding(yes), next(claude.Deny{Message: "mine"}, nil), bash, claude.Deny{Message: "mine"}},
		{"allow, and the callback fails", deciding(yes), next(nil, errors.New("oh")), bash, nil},
		{"the callback gives an input that is fine", byInput, next(&claude.Allow{UpdatedInput: map[string]int{"a": 1}}, nil), bash, echo},
		{"the callback gives one that is denied", byInput, next(claude.Allow{UpdatedInput: map[string]int{"a": 2}}, nil), bash, claude.Deny{Message: `Not with {"a":2}.`}},
		{"the callback gives one without JSON", byInput, next(claude.Allow{UpdatedInput: func() {}}, nil), bash, nil},
		{"a person is needed", deciding(yes), nil, plan, claude.Deny{Message: "ExitPlanMode needs an answer from a person, but no person is available. Continue without this call."}},
		{"a person is needed, and was asked", deciding(event.Decision{Verdict: event.Allow, Asked: true}), nil, plan, echo},
		{"a question of the model, unanswered", deciding(event.Decision{Verdict: event.Allow, Asked: true}), nil, question, claude.Deny{Message: "AskUserQuestion needs an answer from a person, but no person is available. Continue without this call."}},
		{"a question of the model, answered", byInput, next(claude.Allow{UpdatedInput: rawJSON(`{"a":1,"answers":{}}`)}, nil), question, claude.Allow{UpdatedInput: rawJSON(`{"a":1,"answers":{}}`)}},
		{"a panic", tool.DeciderFunc(func(context.Context, event.ToolCall) event.Decision { panic("oh") }), next(claude.Allow{}, nil), bash, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := claudecode.Permission(tt.decider, tt.next)(t.Context(), &tt.req)
			if tt.want == nil {
				if err == nil {
					t.Errorf("%+v, want an error", got)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v, result (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A hook that rewrites inputs cannot lead a call past the decider.
func TestHook_RewrittenInputIsDecided(t *testing.T) {
	failed := errors.New("oh")
	asking := deciding(event.Decision{Verdict: event.Ask, Reason: "hm"})
	rewriting := func(decision claude.ToolDecision, input any) *claude.PreToolUseOutput {
		return &claude.PreToolUseOutput{PermissionDecision: decision, UpdatedInput: input}
	}
	for _, tt := range []struct {
		name    string
		decider tool.Decider
		answer  *claude.PreToolUseOutput
		err     error
		want    *claude.PreToolUseOutput
	}{
		{"no opinion", byInput, nil, nil, nil},
		{"a decision alone", byInput, claude.AllowTool(), nil, claude.AllowTool()},
		{"a new input that is fine", byInput, rewriting("", map[string]int{"a": 1}), nil, rewriting("", rawJSON(`{"a":1}`))},
		{"a new input that is denied", byInput, rewriting(claude.DecideAllow, rawJSON(`{"a":2}`)), nil, claude.DenyTool(`Not with {"a":2}.`)},
		{"a new input to be asked about", asking, rewriting(claude.DecideAllow, rawJSON(`{}`)), nil, &claude.PreToolUseOutput{PermissionDecision: claude.DecideAsk, PermissionDecisionReason: "hm", UpdatedInput: rawJSON(`{}`)}},
		{"a denial stays one", asking, rewriting(claude.DecideDeny, rawJSON(`{}`)), nil, rewriting(claude.DecideDeny, rawJSON(`{}`))},
		{"a failure", byInput, nil, failed, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := claudecode.Judged(tt.decider, claude.On("Bash", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
				return tt.answer, tt.err
			}))
			out, err := h.Func(t.Context(), &claude.PreToolUseInput{ToolName: "Bash", ToolInput: rawJSON(`{"a":0}`)})
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			got, _ := out.(*claude.PreToolUseOutput)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPermissionHook_RewrittenInputIsDecided(t *testing.T) {
	for input, want := range map[string]claude.PermissionResult{
		`{"a":1}`: claude.Allow{UpdatedInput: rawJSON(`{"a":1}`)},
		`{"a":2}`: claude.Deny{Message: `Not with {"a":2}.`},
	} {
		h := claudecode.Judged(byInput, claude.On("", func(context.Context, *claude.PermissionRequestInput) (*claude.PermissionRequestOutput, error) {
			return &claude.PermissionRequestOutput{Answer: claude.Allow{UpdatedInput: rawJSON(input)}}, nil
		}))
		out, err := h.Func(t.Context(), &claude.PermissionRequestInput{ToolName: "Bash"})
		if diff := cmp.Diff(&claude.PermissionRequestOutput{Answer: want}, out); err != nil || diff != "" {
			t.Errorf("%s: %v, answer (-want +got):\n%s", input, err, diff)
		}
	}
}

func TestHook_OthersAreUnchanged(t *testing.T) {
	h := claudecode.Judged(byInput, claude.On("", func(context.Context, *claude.StopInput) (*claude.StopOutput, error) {
		return claude.BlockStop("go on"), nil
	}))
	if out, err := h.Func(t.Context(), &claude.StopInput{}); err != nil || !cmp.Equal(out, claude.HookOutput(claude.BlockStop("go on"))) {
		t.Errorf("%+v, %v; want what the hook answered", out, err)
	}
	if h := claudecode.Judged(byInput, claude.Hook{Event: claude.HookPreToolUse}); h.Func != nil {
		t.Error("a hook without a function got one, so that its absence is not noticed")
	}
}
