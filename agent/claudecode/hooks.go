// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safelog"
)

// codeHook is the error of a hook of the host program that failed. The run goes on.
const codeHook = "HOOK_FAILED"

// How long the CLI waits for hooks that are only notified. Hooks that decide have no timeout: a call may wait for
// its turn, and the check of an answer may run a test.
const (
	callEndedTimeout = 30 * time.Second
	notifyTimeout    = 10 * time.Second
)

type hooked struct {
	agent.Hooks
	maxRefusals int
	wrapped     bool // the structured answer is inside of an object that the schema does not have
	emit        func(event.Payload)
	log         *slog.Logger

	mu       sync.Mutex
	refusals int  // of this prompt
	answered bool // this prompt
}

const defaultRefusals = 10

// bindHooks puts the hooks of a request into the options of its run, except Rewrite, which is the ledger's to call.
// It returns nil if the request has no hooks.
func bindHooks(o *claude.Options, req agent.Request, emit func(event.Payload)) (*hooked, error) {
	if req.Hooks == nil {
		return nil, nil
	}
	h := &hooked{
		Hooks: *req.Hooks, maxRefusals: cmp.Or(req.MaxRefusals, defaultRefusals), wrapped: wrapsOutput(o.OutputSchema),
		emit: emit, log: logger(o),
	}
	if h.maxRefusals < 0 {
		return nil, refusal("MaxRefusals", "%d is negative", h.maxRefusals)
	}
	if err := o.RequireHooks(); err != nil {
		return nil, err
	}
	o.Hooks = append(o.Hooks[:len(o.Hooks):len(o.Hooks)], h.own()...)
	h.raiseLimits(o)
	return h, nil
}

func (h *hooked) rewrite(ctx context.Context, call event.ToolCall) (json.RawMessage, error) {
	return safely(h, "Rewrite", func() (json.RawMessage, error) { return h.Rewrite(ctx, call) })
}

func logger(o *claude.Options) *slog.Logger { return safelog.Logger(o.Logger) }

// own are the hooks of the CLI that call those of the request.
func (h *hooked) own() []claude.Hook {
	var all []claude.Hook
	add := func(wanted bool, timeout time.Duration, hook claude.Hook) {
		if hook.Timeout = timeout; wanted {
			all = append(all, hook)
		}
	}
	judges := h.Answering != nil || h.Stopping != nil
	add(h.Submitted != nil || judges || h.BatchEnded != nil, notifyTimeout, claude.On("", h.submitted))
	add(h.Answering != nil, 0, claude.On(structuredTool, h.answering))
	add(judges || h.BatchEnded != nil, notifyTimeout, claude.On(structuredTool, h.accepted))
	add(h.Stopping != nil, 0, claude.On("", h.stopping))
	add(h.CallEnded != nil, callEndedTimeout, claude.On("", h.succeeded))
	add(h.CallEnded != nil, callEndedTimeout, claude.On("", h.failed))
	add(h.BatchEnded != nil, notifyTimeout, claude.On("", h.batchEnded))
	add(h.SubagentStarted != nil, notifyTimeout, claude.On("", h.subagentStarted))
	add(h.SubagentStopped != nil, notifyTimeout, claude.On("", h.subagentStopped))
	add(h.Compacting != nil, notifyTimeout, claude.On("", h.compacting))
	return all
}

// safely calls a hook of the host program and reports its error in the stream. A panic is an error too, and logged.
func safely[T any](h *hooked, name string, call func() (T, error)) (answer T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errPanicked
			h.log.Error("Hook error", "hook", name, "error", err, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		if err != nil {
			h.emit(event.Error{Code: codeHook, Message: "the hook " + name + " failed: " + err.Error(), Next: advice.Of(err), Recoverable: true, Cause: err})
		}
	}()
	return call()
}

var errPanicked = errors.New("a hook of the host program panicked")

func (h *hooked) submitted(ctx context.Context, in *claude.UserPromptSubmitInput) (*claude.UserPromptSubmitOutput, error) {
	h.mu.Lock()
	h.refusals, h.answered = 0, false
	h.mu.Unlock()
	if h.Submitted == nil {
		return nil, nil
	}
	more, _ := safely(h, "Submitted", func() (string, error) {
		return h.Submitted(ctx, agent.Submission{Prompt: in.Prompt, SessionID: in.SessionID, Dir: in.Cwd})
	})
	return &claude.UserPromptSubmitOutput{AdditionalContext: more}, nil
}

func (h *hooked) succeeded(ctx context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
	if in.ToolName == structuredTool {
		return nil, nil
	}
	end := agent.CallEnd{
		ToolCall: event.ToolCall{ID: event.CallID(in.ToolUseID), Name: in.ToolName, Input: in.ToolInput, AgentID: in.AgentID, Dir: in.Cwd},
		Status:   event.ToolSuccess, Output: in.ToolResponse, Duration: milliseconds(in.DurationMS),
	}
	if interrupted(in.ToolResponse) {
		end.Status = event.ToolCancelled
	}
	return &claude.PostToolUseOutput{AdditionalContext: h.callEnded(ctx, end)}, nil
}

// interrupted reports whether a result has the mark of a stopped tool. Few tools set it.
func interrupted(response json.RawMessage) bool {
	var r struct {
		Interrupted bool `json:"interrupted"`
	}
	return json.Unmarshal(response, &r) == nil && r.Interrupted
}

func (h *hooked) failed(ctx context.Context, in *claude.PostToolUseFailureInput) (*claude.PostToolUseFailureOutput, error) {
	if in.ToolName == structuredTool {
		return nil, nil
	}
	end := agent.CallEnd{
		ToolCall: event.ToolCall{ID: event.CallID(in.ToolUseID), Name: in.ToolName, Input: in.ToolInput, AgentID: in.AgentID, Dir: in.Cwd},
		Status:   event.ToolError, Error: in.Error, Duration: milliseconds(in.DurationMS),
	}
	if in.IsInterrupt {
		end.Status = event.ToolCancelled
	}
	return &claude.PostToolUseFailureOutput{AdditionalContext: h.callEnded(ctx, end)}, nil
}

func (h *hooked) callEnded(ctx context.Context, end agent.CallEnd) string {
	more, _ := safely(h, "CallEnded", func() (string, error) { return h.CallEnded(ctx, end) })
	return more
}

// CallsBatchEnded implements [agent.Batcher].
func (*Adapter) CallsBatchEnded() {}

func (h *hooked) batchEnded(ctx context.Context, _ *claude.PostToolBatchInput) (*claude.PostToolBatchOutput, error) {
	if !h.hasAnswered() {
		h.notify("BatchEnded", func() { h.BatchEnded(ctx) })
	}
	return nil, nil
}

// subagentStarted reports a subagent. Subagents that the CLI uses for itself have no type.
func (h *hooked) subagentStarted(ctx context.Context, in *claude.SubagentStartInput) (*claude.SubagentStartOutput, error) {
	if in.AgentType != "" {
		h.notify("SubagentStarted", func() { h.SubagentStarted(ctx, agent.Subagent{ID: in.AgentID, Type: in.AgentType}) })
	}
	return nil, nil
}

func (h *hooked) subagentStopped(ctx context.Context, in *claude.SubagentStopInput) (*claude.SubagentStopOutput, error) {
	if in.AgentType != "" {
		h.notify("SubagentStopped", func() {
			h.SubagentStopped(ctx, agent.Subagent{ID: in.AgentID, Type: in.AgentType, Text: in.LastAssistantMessage, Transcript: in.AgentTranscriptPath})
		})
	}
	return nil, nil
}

func (h *hooked) compacting(ctx context.Context, in *claude.PreCompactInput) (*claude.PreCompactOutput, error) {
	c := agent.Compaction{Trigger: in.Trigger}
	if in.CustomInstructions != nil {
		c.Instructions = strings.TrimSpace(*in.CustomInstructions)
	}
	h.notify("Compacting", func() { h.Compacting(ctx, c) })
	return nil, nil
}

func (h *hooked) notify(name string, hook func()) {
	_, _ = safely(h, name, func() (struct{}, error) {
		hook()
		return struct{}{}, nil
	})
}
