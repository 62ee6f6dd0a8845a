// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// Hook has d decide about every tool call of Claude Code, its own tools and those of MCP servers, in the main conversation
// and in subagents, before the call runs. It overrides the permission mode and the lists of allowed tools. The CLI waits for
// d as long as it takes; the context ends when the CLI withdraws the call.
//
// A call that d allows runs without a further question, and with Decision.Input where d set it. The
// model reads the reason of a denial. A call with the verdict ask goes to CanUseTool: see
// [Permission]. A d that panics, or replaces the input by a value that is not a JSON object, denies.
//
// The CLI asks all hooks at once, so d does not see the new input of another PreToolUse hook. Use [Judged] for such hooks.
func Hook(d tool.Decider) claude.Hook {
	return claude.On("", func(ctx context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		got, err := consult(ctx, d, hookedCall(in))
		if err != nil {
			return nil, err // the hook then denies, and the error is logged
		}
		return hookAnswer(got), nil
	})
}

// denyingHook is [Hook] for a CLI whose own rules count too: a call that d allows is left to the permission
// mode, the settings and CanUseTool, unless an approver was asked and allowed it.
func denyingHook(d tool.Decider) claude.Hook {
	return claude.On("", func(ctx context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		got, err := consult(ctx, d, hookedCall(in))
		if err != nil {
			return nil, err
		}
		out := hookAnswer(got)
		if out.PermissionDecision == claude.DecideAllow && !got.Asked && !got.Remembered {
			out.PermissionDecision = ""
		}
		return out, nil
	})
}

func hookedCall(in *claude.PreToolUseInput) event.ToolCall {
	return event.ToolCall{ID: event.CallID(in.ToolUseID), Name: in.ToolName, Input: in.ToolInput, AgentID: in.AgentID, Dir: in.Cwd}
}

func hookAnswer(d event.Decision) *claude.PreToolUseOutput {
	var out *claude.PreToolUseOutput
	switch d.Verdict {
	case event.Allow:
		out = claude.AllowTool()
	case event.Ask:
		out = claude.AskTool(d.Reason)
	default:
		return claude.DenyTool(denialText(d))
	}
	if d.Input != nil {
		out.UpdatedInput = d.Input
	}
	return out
}

// Judged makes a hook whose new inputs are decided by d like those of the model, where it rewrites
// the input of a call: a new input that d does not allow denies the call. That concerns PreToolUse
// and PermissionRequest; all other hooks are returned as they are.
func Judged(d tool.Decider, h claude.Hook) claude.Hook {
	inner := h.Func
	if inner == nil || h.Event != claude.HookPreToolUse && h.Event != claude.HookPermissionRequest {
		return h
	}
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		out, err := inner(ctx, in)
		if err != nil {
			return nil, err
		}
		switch in := in.(type) {
		case *claude.PreToolUseInput:
			if answer, ok := out.(*claude.PreToolUseOutput); ok && answer != nil && answer.UpdatedInput != nil && !answer.Async {
				return judgedAnswer(ctx, d, hookedCall(in), answer)
			}
		case *claude.PermissionRequestInput:
			if answer, ok := out.(*claude.PermissionRequestOutput); ok && answer != nil && !answer.Async {
				call := event.ToolCall{Name: in.ToolName, Input: in.ToolInput, AgentID: in.AgentID}
				answer.Answer, err = judgedResult(ctx, d, call, answer.Answer)
			}
		}
		return out, err
	}
	return h
}

func judgedAnswer(ctx context.Context, d tool.Decider, call event.ToolCall, answer *claude.PreToolUseOutput) (claude.HookOutput, error) {
	got, err := judgeInput(ctx, d, call, answer.UpdatedInput)
	if err != nil {
		return nil, err
	}
	answer.UpdatedInput = got.Input
	switch {
	case denies(got):
		return claude.DenyTool(denialText(got)), nil
	case got.Verdict == event.Ask && answer.PermissionDecision != claude.DecideDeny:
		answer.PermissionDecision, answer.PermissionDecisionReason = claude.DecideAsk, got.Reason
	}
	return answer, nil
}

// judgedResult is the result, its input judged by d, if it gives one. Answers to a question of the model are not a call.
func judgedResult(ctx context.Context, d tool.Decider, call event.ToolCall, result claude.PermissionResult) (claude.PermissionResult, error) {
	allow, ok := allowed(result)
	if !ok || allow.UpdatedInput == nil || call.Name == claude.AskUserQuestionTool {
		return result, nil
	}
	got, err := judgeInput(ctx, d, call, allow.UpdatedInput)
	if err != nil {
		return nil, err
	}
	if denies(got) { // not for ask: the callback was just asked
		return claude.Deny{Message: denialText(got)}, nil
	}
	allow.UpdatedInput = got.Input
	return allow, nil
}

// judgeInput has d decide about the call with a new input. Input of the decision is then what the call is to run with.
func judgeInput(ctx context.Context, d tool.Decider, call event.ToolCall, input any) (event.Decision, error) {
	var err error
	if call.Input, err = json.Marshal(input); err != nil {
		return event.Decision{}, fmt.Errorf("claudecode: the new input of %s: %w", call.Name, err)
	}
	got, err := consult(ctx, d, call)
	got.Input = inputOr(got.Input, call.Input)
	return got, err
}

func denies(d event.Decision) bool { return d.Verdict != event.Allow && d.Verdict != event.Ask }

// Permission has d answer the questions that the CLI asks by itself. Beside [Hook] they are few:
// the CLI asks although a hook allowed the call where a rule of its settings is ask, where a
// command is to leave the sandbox, and where a tool needs a person, such as AskUserQuestion.
//
// A call that d denies is denied with its reason. Where d allows, next answers if it is set, since the CLI
// requires an answer; its new input, if it gives one, is decided by d like any other, except the
// answers to AskUserQuestion. Without next the call is allowed, unless it needs a person and d asked
// none. Where the verdict is ask, next answers, and without it the call is denied.
func Permission(d tool.Decider, next claude.CanUseTool) claude.CanUseTool {
	return func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
		got, err := consult(ctx, d, askedCall(req))
		switch {
		case err != nil:
			return nil, err // denies, and is logged
		case denies(got):
			return claude.Deny{Message: denialText(got)}, nil
		case next != nil:
			return answerOf(ctx, d, next, req, got.Input)
		case got.Verdict == event.Ask:
			return claude.Deny{Message: unanswered(req, got.Reason)}, nil
		case needsPerson(req, got):
			return claude.Deny{Message: noPerson(req.ToolName)}, nil
		}
		return claude.Allow{UpdatedInput: inputOr(got.Input, req.Input)}, nil
	}
}

func askedCall(req *claude.PermissionRequest) event.ToolCall {
	return event.ToolCall{ID: event.CallID(req.ToolUseID), Name: req.ToolName, Input: req.Input, Description: req.Description, AgentID: req.AgentID}
}

// needsPerson reports whether the CLI waits for something that no rule can give. An
// approver of the call is a person; a question of the model needs answers too.
func needsPerson(req *claude.PermissionRequest, d event.Decision) bool {
	if req.ToolName == claude.AskUserQuestionTool {
		return d.Input == nil
	}
	return req.RequiresUserInteraction && !d.Asked
}

// answerOf is the answer of next. A permission without an input means the input that was asked about.
func answerOf(ctx context.Context, d tool.Decider, next claude.CanUseTool, req *claude.PermissionRequest, input json.RawMessage) (claude.PermissionResult, error) {
	asked := *req
	asked.Input = inputOr(input, req.Input)
	result, err := next(ctx, &asked)
	if err != nil {
		return nil, err
	}
	if allow, ok := allowed(result); ok && allow.UpdatedInput == nil {
		allow.UpdatedInput = asked.Input
		return allow, nil
	}
	return judgedResult(ctx, d, askedCall(req), result)
}

func allowed(result claude.PermissionResult) (claude.Allow, bool) {
	switch r := result.(type) {
	case claude.Allow:
		return r, true
	case *claude.Allow:
		if r != nil {
			return *r, true
		}
	}
	return claude.Allow{}, false
}

func inputOr(input, otherwise json.RawMessage) json.RawMessage {
	if input != nil {
		return input
	}
	return otherwise
}

var errNoObject = errors.New("the input that the decision gives is not a JSON object")

// consult asks a decider. An error or a panic is a denial.
func consult(ctx context.Context, d tool.Decider, call event.ToolCall) (got event.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			got, err = event.Decision{}, fmt.Errorf("claudecode: deciding about %s: panic: %v", call.Name, p)
		}
	}()
	got = d.Decide(ctx, call)
	if got.Input != nil && !plainjson.IsObject(got.Input) {
		return event.Decision{}, fmt.Errorf("claudecode: deciding about %s: %w", call.Name, errNoObject)
	}
	return got, nil
}
