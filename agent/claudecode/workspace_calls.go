// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/workspace"
)

// WorkspaceOptions configures [BindWorkspace]. Nil and the zero value are ready to use.
type WorkspaceOptions struct {
	// Emit and Within are those of [workspace.CallsOptions].
	Emit   func(event.Payload)
	Within context.Context
	// ReadOnly reports tools of MCP servers, by their full names, that change no files: their calls wait
	// for nobody. Nil means none.
	ReadOnly func(name string) bool
}

// A WorkspaceBinding makes the calls of one run of the CLI transactions of a workspace.
type WorkspaceBinding struct {
	w        *workspace.Workspace
	calls    *workspace.Calls
	readOnly func(name string) bool
}

// BindWorkspace makes every call of the CLI that may change files a transaction of the workspace: one that fails
// leaves the files as they were before it, and the model is told which were put back. To that end a call
// whose paths are not known, such as a command, is held until no other is at work, and nothing runs in
// the background. Bind it after everything else that has hooks: a call that those deny never begins.
//
// Calls that only have others made in their name, by subagents and skills, are no transactions; those that
// they make are. Tools that change nothing, by the catalogue, are left alone.
//
// Give each message of the run to [WorkspaceBinding.Saw], and call [WorkspaceBinding.End] at its end: a call that a
// rule of the CLI itself refuses would else keep the others waiting. An [Adapter] whose request has the workspace
// does all of it.
//
// Without checkpoints it binds nothing.
func BindWorkspace(o *claude.Options, w *workspace.Workspace, opts *WorkspaceOptions) (*WorkspaceBinding, error) {
	if opts == nil {
		opts = &WorkspaceOptions{}
	}
	b := &WorkspaceBinding{w: w, readOnly: opts.ReadOnly}
	if w.Tree() != nil {
		if err := o.RequireHooks(); err != nil {
			return nil, err
		}
		o.NoBackgroundTasks = true
		o.Hooks = append(b.begunAfter(o.Hooks),
			claude.On("", b.succeeded), claude.On("", b.failed), claude.On("", b.batchEnded))
		if ask := o.CanUseTool; ask != nil {
			o.CanUseTool = b.observed(ask)
		}
	}
	b.calls = workspace.NewCalls(w, &workspace.CallsOptions{Emit: opts.Emit, Within: opts.Within})
	return b, nil
}

// begunAfter are the hooks, each followed by the beginning of the transaction unless it denies the call.
// There is one more where none sees every call. In a hook with a timeout nothing waits for a turn, which
// can take longer.
func (b *WorkspaceBinding) begunAfter(hooks []claude.Hook) []claude.Hook {
	var all []claude.Hook
	seesAll := false
	for _, h := range hooks {
		if h.Event == claude.HookPreToolUse && h.Func != nil {
			seesAll = seesAll || h.Matcher == "" && h.Timeout == 0
			h.Func = b.followed(h.Func, h.Timeout == 0)
		}
		all = append(all, h)
	}
	if !seesAll {
		all = append(all, claude.Hook{Event: claude.HookPreToolUse, Func: b.followed(noOpinion, true)})
	}
	return all
}

func (b *WorkspaceBinding) followed(decide claude.HookFunc, waits bool) claude.HookFunc {
	return func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		call, ok := in.(*claude.PreToolUseInput)
		if !ok {
			return decide(ctx, in)
		}
		allowed := false // a hook that panics denies
		defer func() {
			if !allowed {
				b.calls.Deny(call.ToolUseID)
			}
		}()
		out, err := decide(ctx, in)
		if err != nil || claude.Denies(out) {
			return out, err
		}
		allowed = true
		var rewritten any
		if answer, ok := out.(*claude.PreToolUseOutput); ok && answer != nil {
			rewritten = answer.UpdatedInput
		}
		if !waits && rewritten == nil {
			return out, nil
		}
		if err := b.begin(ctx, call, rewritten); err != nil {
			return claude.DenyTool(notMade(err)), nil
		}
		return out, nil
	}
}

// notMade is what the model reads of a call that has no transaction.
func notMade(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return "the call was not made, because what it changes could not be put back: " + line
}

// begin begins the transaction of a call that may change files. Rewritten is what it is made with instead of its
// input, or nil.
func (b *WorkspaceBinding) begin(ctx context.Context, in *claude.PreToolUseInput, rewritten any) error {
	if rewritten != nil {
		other := *in
		other.ToolInput, _ = json.Marshal(rewritten) // what has no form is no input with a path
		in = &other
	}
	call, changes := b.w.CallOf(catalogue.Tools(), hookedCall(in), b.readOnly)
	if !changes {
		return nil
	}
	call.Rewritten = rewritten != nil
	return b.calls.Begin(ctx, call)
}

func (b *WorkspaceBinding) observed(ask claude.CanUseTool) claude.CanUseTool {
	return func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
		allowed := false // a callback that panics denies
		defer func() {
			if !allowed {
				b.calls.Deny(req.ToolUseID)
			}
		}()
		result, err := ask(ctx, req)
		if err != nil || !claude.Allows(result) {
			return result, err
		}
		if input := allowedInput(result, nil); input != nil {
			call := &claude.PreToolUseInput{ToolName: req.ToolName, ToolUseID: req.ToolUseID}
			if err := b.begin(ctx, call, input); err != nil {
				return claude.Deny{Message: notMade(err)}, nil
			}
		}
		allowed = true
		return result, nil
	}
}

func (b *WorkspaceBinding) succeeded(ctx context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
	if !interrupted(in.ToolResponse) {
		b.calls.Commit(in.ToolUseID)
		return nil, nil
	}
	return &claude.PostToolUseOutput{AdditionalContext: b.calls.Rollback(ctx, in.ToolUseID)}, nil
}

func (b *WorkspaceBinding) failed(ctx context.Context, in *claude.PostToolUseFailureInput) (*claude.PostToolUseFailureOutput, error) {
	return &claude.PostToolUseFailureOutput{AdditionalContext: b.calls.Rollback(ctx, in.ToolUseID)}, nil
}

// batchEnded ends the transactions of calls whose end no hook has reported: they were not made.
func (b *WorkspaceBinding) batchEnded(ctx context.Context, in *claude.PostToolBatchInput) (*claude.PostToolBatchOutput, error) {
	var texts []string
	for _, call := range in.ToolCalls {
		if text := b.calls.Settle(ctx, call.ToolUseID); text != "" {
			texts = append(texts, text)
		}
	}
	return &claude.PostToolBatchOutput{AdditionalContext: strings.Join(texts, "\n")}, nil
}

// Saw has the binding know of a message of the run. The end of a call that the CLI itself refused, or that was
// interrupted, is told by no hook.
func (b *WorkspaceBinding) Saw(m claude.Message) {
	said, ok := m.(*claude.UserMessage)
	if !ok {
		return
	}
	for _, block := range said.Content {
		switch result, ok := block.(*claude.ToolResultBlock); {
		case !ok:
		case result.IsError:
			b.calls.Rollback(context.Background(), result.ToolUseID)
		default:
			b.calls.Commit(result.ToolUseID)
		}
	}
}

// End rolls back the calls that have not ended. Call it when nothing of the run is left that could write.
func (b *WorkspaceBinding) End() { b.calls.End() }
