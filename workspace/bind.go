// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/recent"
	"github.com/drover-agents/drover/tool"
)

// BindOptions configures [Workspace.Bind]. Nil and the zero value are ready to use.
type BindOptions struct {
	// Emit is told of each rollback, as [Restored]. Nil means that nobody listens.
	Emit func(event.Payload)
	// ReadOnly reports tools of MCP servers, by their full names, that change no files: their calls wait
	// for nobody. Nil means none.
	ReadOnly func(name string) bool
	// Within is the context that the run is made in. In that of a [Tx], or of a tool's call that is one,
	// the calls of the run are part of it: without it they would wait for its end. Nil means none.
	Within context.Context
}

// A Binding makes the calls of one run transactions of a workspace.
type Binding struct {
	w        *Workspace
	emit     func(event.Payload)
	readOnly func(name string) bool
	outer    *Tx // nil if the run is part of no transaction
	calls    openCalls

	mu     sync.Mutex
	denied recent.Map[string, bool]
}

// rememberedDenials is how many denied calls are known. A denial comes within moments of its call.
const rememberedDenials = 256

// Bind makes every call of the CLI that may change files a transaction of the workspace: one that fails
// leaves the files as they were before it, and the model is told which were put back. To that end a call
// whose paths are not known, such as a command, is held until no other is at work, and nothing runs in
// the background. Bind it after everything else that has hooks: a call that those deny never begins.
//
// Calls that only have others made in their name, by subagents and skills, are no transactions; those that
// they make are. Tools that change nothing, by the catalogue of package gate, are left alone.
//
// Give each message of the run to [Binding.Saw], and call [Binding.End] at its end: a call that a rule of the
// CLI itself refuses would else keep the others waiting. An adapter to which the workspace is given does both.
//
// Without checkpoints it binds nothing.
func (w *Workspace) Bind(o *claude.Options, opts *BindOptions) (*Binding, error) {
	b := &Binding{w: w, denied: recent.Map[string, bool]{Size: rememberedDenials}}
	if opts != nil {
		b.emit, b.readOnly = opts.Emit, opts.ReadOnly
		if opts.Within != nil {
			b.outer, _ = txKey.From(opts.Within)
		}
	}
	if w.tree == nil {
		return b, nil
	}
	if err := o.RequireHooks(); err != nil {
		return nil, err
	}
	o.NoBackgroundTasks = true
	o.Hooks = append(b.begunAfter(o.Hooks),
		claude.On("", b.succeeded), claude.On("", b.failed), claude.On("", b.batchEnded))
	if ask := o.CanUseTool; ask != nil {
		o.CanUseTool = b.observed(ask)
	}
	w.txs.mu.Lock()
	defer w.txs.mu.Unlock()
	w.txs.bindings = append(w.txs.bindings, b)
	return b, nil
}

// Serves reports whether the binding does for a run in ctx: the calls of the one are part of a transaction if
// those of the other are.
func (b *Binding) Serves(ctx context.Context) bool {
	outer, _ := txKey.From(ctx)
	return outer == b.outer
}

// begunAfter are the hooks, each followed by the beginning of the transaction unless it denies the call.
// There is one more where none sees every call. In a hook with a timeout nothing waits for a turn, which
// can take longer.
func (b *Binding) begunAfter(hooks []claude.Hook) []claude.Hook {
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
		all = append(all, claude.Hook{Event: claude.HookPreToolUse, Func: b.followed(
			func(context.Context, claude.HookInput) (claude.HookOutput, error) { return nil, nil }, true,
		)})
	}
	return all
}

func (b *Binding) followed(decide claude.HookFunc, waits bool) claude.HookFunc {
	return func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		call, ok := in.(*claude.PreToolUseInput)
		if !ok {
			return decide(ctx, in)
		}
		allowed := false // a hook that panics denies
		defer func() {
			if !allowed {
				b.deny(call.ToolUseID)
			}
		}()
		out, err := decide(ctx, in)
		if err != nil || claude.Denies(out) {
			return out, err
		}
		allowed = true
		rewritten := rewrites(out)
		if !waits && rewritten == nil {
			return out, nil
		}
		if err := b.begin(ctx, call, rewritten); err != nil {
			return claude.DenyTool(notMade(err)), nil
		}
		return out, nil
	}
}

// rewrites is the input that a hook's answer puts in the place of the call's, or nil.
func rewrites(out claude.HookOutput) any {
	if answer, ok := out.(*claude.PreToolUseOutput); ok && answer != nil {
		return answer.UpdatedInput
	}
	return nil
}

// notMade is what the model reads of a call that has no transaction.
func notMade(err error) string {
	return "the call was not made, because what it changes could not be put back: " + firstLine(err)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

var errNoID = errors.New("the CLI gave it no id")

// begin begins the transaction of a call, unless another hook has denied it. Rewritten is what it is made
// with instead of its input, or nil.
func (b *Binding) begin(ctx context.Context, in *claude.PreToolUseInput, rewritten any) error {
	if rewritten != nil {
		other := *in
		other.ToolInput, _ = json.Marshal(rewritten) // what has no form is no input with a path
		in = &other
	}
	paths, changes := b.touches(in)
	switch {
	case !changes || b.isDenied(in.ToolUseID):
		return nil
	case in.ToolUseID == "": // of which nobody could tell the end
		return errNoID
	}
	err := b.calls.begin(ctx, b, Call{ID: in.ToolUseID, Tool: in.ToolName, Paths: paths}, rewritten != nil)
	if b.isDenied(in.ToolUseID) { // meanwhile
		b.drop(in.ToolUseID)
		return nil
	}
	return err
}

// caller are tools that have other calls made, which are transactions of their own. To wait for them while
// holding the workspace would be to wait for ever.
var caller = map[string]bool{"Agent": true, "Task": true, "Workflow": true, "Skill": true, "SlashCommand": true}

// touches are the paths that a call may change, nil for all, and whether it may change any at all.
func (b *Binding) touches(in *claude.PreToolUseInput) (paths []string, changes bool) {
	native, known := gate.Native(in.ToolName)
	switch {
	case caller[in.ToolName]:
		return nil, false
	case !known:
		return nil, b.readOnly == nil || !b.readOnly(in.ToolName)
	case native.Needs&(tool.FileWrite|tool.ShellExecute) == 0 && !native.Risk.Has(tool.Mutates):
		return nil, false
	case native.Needs != tool.FileWrite:
		return nil, true
	}
	var input struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	if err := json.Unmarshal(in.ToolInput, &input); err != nil || input.File == "" == (input.Notebook == "") {
		return nil, true
	}
	rel, inside, plain := b.w.relative(in.Cwd, cmp.Or(input.File, input.Notebook))
	switch {
	case !plain:
		return nil, true
	case !inside:
		return nil, false
	}
	return []string{rel}, true
}

func (b *Binding) isDenied(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	denied, _ := b.denied.Get(id)
	return denied
}

// forget lets another call have the id: some services begin to count anew with each answer.
func (b *Binding) forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied.Put(id, false)
}

// deny ends a transaction whose call is not made.
func (b *Binding) deny(id string) {
	b.mu.Lock()
	b.denied.Put(id, true)
	b.mu.Unlock()
	b.drop(id)
}

func (b *Binding) drop(id string) {
	if tx := b.calls.end(id); tx != nil {
		tx.Commit()
	}
}

func (b *Binding) observed(ask claude.CanUseTool) claude.CanUseTool {
	return func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
		allowed := false // a callback that panics denies
		defer func() {
			if !allowed {
				b.deny(req.ToolUseID)
			}
		}()
		result, err := ask(ctx, req)
		if err != nil || !claude.Allows(result) {
			return result, err
		}
		if input := rewritesAsked(result); input != nil {
			call := &claude.PreToolUseInput{ToolName: req.ToolName, ToolUseID: req.ToolUseID}
			if err := b.begin(ctx, call, input); err != nil {
				return claude.Deny{Message: notMade(err)}, nil
			}
		}
		allowed = true
		return result, nil
	}
}

// rewritesAsked is the input that a permission puts in the place of the one asked about, or nil.
func rewritesAsked(result claude.PermissionResult) any {
	switch r := result.(type) {
	case claude.Allow:
		return r.UpdatedInput
	case *claude.Allow:
		return r.UpdatedInput
	}
	return nil
}

func (b *Binding) succeeded(ctx context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
	var response struct {
		Interrupted bool `json:"interrupted"`
	}
	_ = json.Unmarshal(in.ToolResponse, &response) // few tools say so
	if !response.Interrupted {
		b.drop(in.ToolUseID)
		return nil, nil
	}
	if told := b.rollback(ctx, in.ToolUseID); told != "" {
		return &claude.PostToolUseOutput{AdditionalContext: told}, nil
	}
	return nil, nil
}

func (b *Binding) failed(ctx context.Context, in *claude.PostToolUseFailureInput) (*claude.PostToolUseFailureOutput, error) {
	if told := b.rollback(ctx, in.ToolUseID); told != "" {
		return &claude.PostToolUseFailureOutput{AdditionalContext: told}, nil
	}
	return nil, nil
}

// batchEnded ends the transactions of calls of which no hook has told the end: they were not made.
func (b *Binding) batchEnded(ctx context.Context, in *claude.PostToolBatchInput) (*claude.PostToolBatchOutput, error) {
	var told []string
	for _, call := range in.ToolCalls {
		if text := b.rollback(ctx, call.ToolUseID); text != "" {
			told = append(told, text)
		}
		b.forget(call.ToolUseID)
	}
	if len(told) == 0 {
		return nil, nil
	}
	return &claude.PostToolBatchOutput{AdditionalContext: strings.Join(told, "\n")}, nil
}

// Saw has the binding know of a message of the run. The end of a call that the CLI itself refused, or that was
// interrupted, is told by no hook.
func (b *Binding) Saw(m claude.Message) {
	said, ok := m.(*claude.UserMessage)
	if !ok {
		return
	}
	for _, block := range said.Content {
		switch result, ok := block.(*claude.ToolResultBlock); {
		case !ok:
		case result.IsError:
			b.rollback(context.Background(), result.ToolUseID)
		default:
			b.drop(result.ToolUseID)
		}
	}
}

// End rolls back the calls that did not come to their end. Call it when nothing of the run is left that
// could write.
func (b *Binding) End() {
	for _, id := range b.calls.close() {
		b.rollback(context.Background(), id)
	}
	b.w.txs.mu.Lock()
	defer b.w.txs.mu.Unlock()
	b.w.txs.bindings = slices.DeleteFunc(b.w.txs.bindings, func(other *Binding) bool { return other == b })
}

// shells are the tools that run commands, whose files can be kept.
var shells = map[string]bool{"Bash": true, "PowerShell": true}

// rollback rolls back a call that has failed, if its transaction is open, and returns what the model is to
// know. That the CLI no longer waits for the answer is no reason to leave files half restored.
func (b *Binding) rollback(ctx context.Context, id string) (told string) {
	tx := b.calls.end(id)
	if tx == nil {
		return ""
	}
	if b.w.opts.KeepFailedShell && shells[tx.call.Tool] {
		tx.Commit()
		return ""
	}
	return tx.undo(context.WithoutCancel(ctx))
}
