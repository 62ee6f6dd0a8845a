// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/recent"
)

// rewriting has the inputs of calls replaced before anybody else sees them. The CLI asks all hooks at once:
// each of them is shown the new input, and one of them tells it to the CLI.
type rewriting struct {
	hooked *hooked

	mu    sync.Mutex
	calls recent.Map[string, *rewritten]
}

// A rewritten is the new input of a call, which is made once however many hooks there are.
type rewritten struct {
	old    json.RawMessage
	result func() (json.RawMessage, error)
}

// rememberedInputs is how many calls are known whose hooks may not all have been asked.
const rememberedInputs = 256

func newRewriting(h *hooked) *rewriting {
	return &rewriting{hooked: h, calls: recent.Map[string, *rewritten]{Size: rememberedInputs}}
}

// observe stands before the hooks that are asked about calls. The first of them that sees every call and may
// take its time tells the CLI the new input; that of a host is always the first. If there is none, one is
// added, which decides nothing: what the rules of the CLI say about the new input holds.
func (w *rewriting) observe(o *claude.Options) {
	var all []claude.Hook
	told := false
	for _, h := range o.Hooks {
		if h.Event == claude.HookPreToolUse && h.Func != nil {
			tells := !told && (h.Matcher == "" || h.Matcher == "*") && h.Timeout == 0
			told = told || tells
			h.Func = w.before(h.Func, tells)
		}
		all = append(all, h)
	}
	if !told {
		all = append(all, claude.Hook{Event: claude.HookPreToolUse, Func: w.before(noOpinion, true)})
	}
	o.Hooks = all
}

func noOpinion(context.Context, claude.HookInput) (claude.HookOutput, error) { return nil, nil }

// before is a hook that is shown the new input.
func (w *rewriting) before(inner claude.HookFunc, tells bool) claude.HookFunc {
	return func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		call, ok := in.(*claude.PreToolUseInput)
		if !ok || call.ToolName == structuredTool {
			return inner(ctx, in)
		}
		input, err := w.of(ctx, call)
		if err != nil {
			return claude.DenyTool(denial(err)), nil
		}
		if input == nil {
			return inner(ctx, in)
		}
		shown := *call
		shown.ToolInput = input
		out, err := inner(ctx, &shown)
		if err != nil || !tells {
			return out, err
		}
		return telling(out, input), nil
	}
}

// denial is the reason of a denial, as the model reads it, of a call whose hook failed.
func denial(err error) string {
	switch {
	case errors.Is(err, guard.ErrDeadlineExceeded):
		return "Deadline exceeded"
	case errors.Is(err, guard.ErrBudgetExhausted):
		return "Budget exhausted"
	}
	return err.Error()
}

// telling is the answer of a hook with the new input, unless it denies the call or has another one.
func telling(out claude.HookOutput, input json.RawMessage) claude.HookOutput {
	answer, ok := out.(*claude.PreToolUseOutput)
	switch {
	case !ok || answer == nil || answer.Async: // it leaves the call to others
		return claude.RewriteTool(input)
	case claude.Denies(out) || answer.UpdatedInput != nil:
		return out
	}
	own := *answer
	own.UpdatedInput = input
	return &own
}

// of is the new input of a call, or nil if it stays as it is.
func (w *rewriting) of(ctx context.Context, call *claude.PreToolUseInput) (json.RawMessage, error) {
	rewrite := func() (json.RawMessage, error) { return w.rewrite(ctx, call) }
	if call.ToolUseID == "" {
		return rewrite()
	}
	w.mu.Lock()
	known, _ := w.calls.Get(call.ToolUseID)
	if known == nil || plainjson.Digest(known.old) != plainjson.Digest(call.ToolInput) {
		known = &rewritten{call.ToolInput, sync.OnceValues(rewrite)}
		w.calls.Put(call.ToolUseID, known)
	}
	w.mu.Unlock()
	return known.result()
}

// forget lets another call have the id: some services begin to count anew with each answer.
func (w *rewriting) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls.Put(id, nil)
}

func (w *rewriting) rewrite(ctx context.Context, in *claude.PreToolUseInput) (json.RawMessage, error) {
	call := event.ToolCall{ID: in.ToolUseID, Name: in.ToolName, Input: in.ToolInput, AgentID: in.AgentID, Dir: in.Cwd}
	return safely(w.hooked, "Rewrite", func() (json.RawMessage, error) {
		input, err := w.hooked.Rewrite(ctx, call)
		switch {
		case err != nil:
			return nil, err
		case input == nil || plainjson.Digest(input) == plainjson.Digest(in.ToolInput):
			return nil, nil
		case !plainjson.IsObject(input):
			return nil, fmt.Errorf("the new input of %s is not a JSON object", in.ToolName)
		}
		return input, nil
	})
}
