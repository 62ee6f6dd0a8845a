// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// A Hook is a Go function that the CLI calls at a moment of the agent's life. [On] makes one from a typed function.
//
// Hooks run concurrently, also with each other on the same event. The context of a call ends when
// the CLI withdraws the call, which it does after Timeout.
//
// A callback that returns an error or panics never ends the run: the failure is logged, and the CLI gets the safe answer.
// That is a denial for PreToolUse, PermissionRequest and PreModelSwitch, and no decision for all other events. The text of
// the error stays in the log; the model reads only that the hook failed.
type Hook struct {
	// Event is the moment.
	Event HookEvent
	// Matcher selects among the calls of the event, mostly by tool name: an exact name, a list
	// ("Read|Write"), or a JavaScript regular expression. Empty means all. [HookEvent] lists what
	// it is compared with; events without a matcher refuse one.
	Matcher string
	// Timeout is how long the CLI waits. After it, PreToolUse fails closed: the tool does not run. Zero means no limit.
	Timeout time.Duration
	// OnFailure is what the CLI does with an answer it cannot use. Zero means the CLI's default, which is to go on.
	OnFailure HookFailure
	// Func is the callback. It gets the input type of Event and returns an output type of Event, or nil for no decision.
	Func HookFunc
}

// A HookFunc is the untyped form of a hook's callback.
type HookFunc func(ctx context.Context, in HookInput) (HookOutput, error)

// A HookFailure is what the CLI does when a hook's answer is unusable.
type HookFailure string

// Actions of the CLI after a failed hook.
const (
	// FailContinue takes the failed answer for no decision.
	FailContinue HookFailure = "continue"
	// FailBlock blocks the action. It needs a CLI that reports support for it.
	FailBlock HookFailure = "block"
)

// On makes a hook from a typed function. The event is the one of In; the compiler refuses an
// output of another event. Matcher is as in [Hook].
//
//	claude.On("Bash", func(ctx context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
//		return claude.DenyTool("no shell here"), nil
//	})
func On[In interface {
	HookInput
	takes(Out)
}, Out HookOutput](matcher string, fn func(context.Context, In) (Out, error)) Hook {
	var in In
	h := Hook{Event: in.hookEvent(), Matcher: matcher}
	if fn != nil {
		h.Func = func(ctx context.Context, in HookInput) (HookOutput, error) { return fn(ctx, in.(In)) }
	}
	return h
}

// decodeHookInput decodes data as the input of event. With a fieldError the input is usable but for the field that it names.
func decodeHookInput(event HookEvent, data []byte) (HookInput, error) {
	var in HookInput = new(UnknownHookInput)
	if info, ok := hookEvents[event]; ok {
		in = info.newInput()
	}
	err := decodeObject(data, in)
	in.common().Raw = data
	return in, err
}

// serve calls the hook and returns the JSON that answers the CLI. It never panics, and always
// returns a JSON object; failures become the safe answer. It keeps input.
func (h *Hook) serve(ctx context.Context, log *slog.Logger, input json.RawMessage) (answer json.RawMessage) {
	defer func() {
		if p := recover(); p != nil {
			log.ErrorContext(ctx, "hook panicked", "event", h.Event, "matcher", h.Matcher, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			answer = h.safeAnswer()
		}
	}()
	answer, err := h.call(ctx, log, input)
	if err != nil {
		log.ErrorContext(ctx, "hook failed", "event", h.Event, "matcher", h.Matcher, "error", err)
		return h.safeAnswer()
	}
	return answer
}

func (h *Hook) call(ctx context.Context, log *slog.Logger, input json.RawMessage) (json.RawMessage, error) {
	in, err := h.decode(ctx, log, input)
	if err != nil {
		return nil, err
	}
	out, err := h.Func(ctx, in)
	if err != nil {
		return nil, err
	}
	if !isNil(out) && out.hookEvent() != h.Event {
		return nil, fmt.Errorf("the callback answered with %T, which is not an output of %s", out, h.Event)
	}
	return encodeHookOutput(out)
}

var errIncomplete = errors.New("a field that the decision needs is missing")

// decode returns the callback's input. For events that decide about a call, an unreadable field is an
// error; other callbacks get the fields that could be read.
func (h *Hook) decode(ctx context.Context, log *slog.Logger, input json.RawMessage) (HookInput, error) {
	in, err := decodeHookInput(h.Event, input)
	info := hookEvents[h.Event]
	switch {
	case err == nil && in.common().Event != h.Event && in.common().Event != "":
		err = fmt.Errorf("it belongs to %s", in.common().Event)
	case err == nil && info != nil && info.complete != nil && !info.complete(in):
		err = errIncomplete
	case isFieldError(err) && (info == nil || info.denial == nil):
		log.WarnContext(ctx, "hook input has an unexpected field", "event", h.Event, "error", err)
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the input: %w", err)
	}
	return in, nil
}

// safeAnswer is the answer to the CLI when the callback failed.
func (h *Hook) safeAnswer() json.RawMessage {
	info := hookEvents[h.Event]
	if info == nil || info.denial == nil {
		return noDecision
	}
	reason := fmt.Sprintf(hookFailed, h.Event)
	if h.Matcher != "" {
		reason = fmt.Sprintf(matchedFailed, h.Event, h.Matcher)
	}
	answer, err := encodeHookOutput(info.denial(reason))
	if err != nil { // cannot happen: only strings are encoded
		panic(err)
	}
	return answer
}
