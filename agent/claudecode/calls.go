// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

func newLedger(ctx context.Context, o *claude.Options, req agent.Request, h *hooked, emit func(event.Payload)) (l *agent.Ledger, end func()) {
	opts := agent.LedgerOptions{
		Host: req.Host, Dir: o.Dir, Catalogue: catalogue.Tools(), Logger: o.Logger,
		Workspace: req.Workspace, ReadOnly: toolsOf(req).readOnly, Within: ctx, Emit: emit,
	}
	if h != nil && h.Rewrite != nil {
		opts.Rewrite = h.rewrite
	}
	l = cmp.Or(req.Ledger, agent.NewLedger(nil))
	return l, l.Begin(opts)
}

// bindCalls brings every question of the CLI about a call, and every end of one, into the ledger. It comes after
// everything else that has hooks. The CLI asks all hooks at once: each is shown the input as the ledger has it, and
// the first that sees every call and has no timeout returns a new input to the CLI. If the ledger needs calls that no
// hook sees, a hook is added that decides nothing.
func bindCalls(o *claude.Options, req agent.Request, l *agent.Ledger) error {
	transacts := req.Workspace != nil && req.Workspace.Tree() != nil
	rewrites := req.Hooks != nil && req.Hooks.Rewrite != nil
	ours := req.Registry != nil && (req.Hooks != nil || req.Host != nil)
	matcher := ""
	if !transacts && !rewrites {
		matcher = toolsOf(req).prefix() + "__.*"
	}
	var hooks []claude.Hook
	returned := false
	add := func(h claude.Hook) {
		if h.Event == claude.HookPreToolUse && h.Func != nil {
			returns := !returned && (h.Matcher == "" || h.Matcher == "*" || h.Matcher == matcher) && h.Timeout == 0
			returned = returned || returns
			h.Func = askLedger(l, h, len(hooks), returns)
		}
		hooks = append(hooks, h)
	}
	for _, h := range o.Hooks {
		add(h)
	}
	if transacts || rewrites || ours {
		if err := o.RequireHooks(); err != nil {
			return err
		}
		if !returned {
			add(claude.Hook{Event: claude.HookPreToolUse, Matcher: matcher, Func: silentHook})
		}
		hooks = append(hooks, claude.On("", func(ctx context.Context, in *claude.PostToolBatchInput) (*claude.PostToolBatchOutput, error) {
			calls := make([]event.ToolCall, len(in.ToolCalls))
			for i, call := range in.ToolCalls {
				calls[i] = event.ToolCall{ID: event.CallID(call.ToolUseID), Name: call.ToolName, Input: call.ToolInput}
			}
			return &claude.PostToolBatchOutput{AdditionalContext: l.EndBatch(ctx, calls...)}, nil
		}))
	}
	if transacts {
		o.NoBackgroundTasks = true
		hooks = append(hooks,
			claude.On("", func(ctx context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
				return &claude.PostToolUseOutput{AdditionalContext: l.End(ctx, event.ToolCall{ID: event.CallID(in.ToolUseID), Name: in.ToolName, Input: in.ToolInput}, interrupted(in.ToolResponse))}, nil
			}),
			claude.On("", func(ctx context.Context, in *claude.PostToolUseFailureInput) (*claude.PostToolUseFailureOutput, error) {
				return &claude.PostToolUseFailureOutput{AdditionalContext: l.End(ctx, event.ToolCall{ID: event.CallID(in.ToolUseID), Name: in.ToolName, Input: in.ToolInput}, true)}, nil
			}))
	}
	o.Hooks = hooks
	if o.CanUseTool != nil {
		o.CanUseTool = askPermission(l, o.CanUseTool)
	}
	if req.Host == nil && !ours {
		return nil
	}
	servers := maps.Clone(o.MCPServers)
	for name, server := range servers {
		if own, ok := server.(*claude.MCPInProcess); ok {
			servers[name] = throughLedger(l, name, own)
		}
	}
	o.MCPServers = servers
	return nil
}

// endOfCalls passes results to the ledger: no hook reports the end of a call that the CLI refused or that was interrupted.
func endOfCalls(l *agent.Ledger, m claude.Message) {
	user, ok := m.(*claude.UserMessage)
	if !ok {
		return
	}
	for _, block := range user.Content {
		if result, ok := block.(*claude.ToolResultBlock); ok {
			l.Result(context.Background(), event.CallID(result.ToolUseID), result.IsError)
		}
	}
}

func silentHook(context.Context, claude.HookInput) (claude.HookOutput, error) { return nil, nil }

// askLedger is a hook whose question goes through the ledger.
func askLedger(l *agent.Ledger, h claude.Hook, number int, returns bool) claude.HookFunc {
	return func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		asked, ok := in.(*claude.PreToolUseInput)
		if !ok {
			return h.Func(ctx, in)
		}
		var out claude.HookOutput
		failed := false
		decision, err := l.Ask(ctx, agent.Question{
			ToolCall: hookedCall(asked), Asker: number, Waits: h.Timeout == 0,
			Decide: func(ctx context.Context, call event.ToolCall) (_ agent.CallDecision, err error) {
				shown := *asked
				shown.ToolInput = call.Input
				out, err = h.Func(ctx, &shown)
				failed = err != nil
				return decisionOf(out), err
			},
		})
		switch {
		case failed:
			return out, err
		case err != nil:
			return claude.DenyTool(denial(err)), nil
		case !decision.Silent && decision.Verdict == event.Deny && !claude.Denies(out):
			return claude.DenyTool(decision.Reason), nil
		case returns && decision.Input != nil:
			return withInput(out, decision.Input), nil
		}
		return out, nil
	}
}

func decisionOf(out claude.HookOutput) agent.CallDecision {
	answer, ok := out.(*claude.PreToolUseOutput)
	if !ok || answer == nil || answer.Async { // it leaves the call to others
		return agent.CallDecision{Silent: true}
	}
	decision := agent.CallDecision{Reason: answer.PermissionDecisionReason, Input: inputOf(answer.UpdatedInput)}
	switch {
	case claude.Denies(out):
	case answer.PermissionDecision == claude.DecideAllow:
		decision.Verdict = event.Allow
	case answer.PermissionDecision == claude.DecideAsk:
		decision.Verdict = event.Ask
	default:
		decision.Silent = true
	}
	return decision
}

// inputOf is the JSON of a new input, nil if there is no new input. A value without a JSON form is not an input.
func inputOf(updated any) json.RawMessage {
	if updated == nil {
		return nil
	}
	raw, err := plainjson.Marshal(updated)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// withInput is the answer of a hook with a new input, unless it denies the call or has one itself.
func withInput(out claude.HookOutput, input json.RawMessage) claude.HookOutput {
	answer, ok := out.(*claude.PreToolUseOutput)
	switch {
	case !ok || answer == nil || answer.Async:
		return claude.RewriteTool(input)
	case claude.Denies(out) || answer.UpdatedInput != nil:
		return out
	}
	own := *answer
	own.UpdatedInput = input
	return &own
}

// askPermission is a permission callback whose question goes through the ledger.
func askPermission(l *agent.Ledger, ask claude.CanUseTool) claude.CanUseTool {
	return func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
		var result claude.PermissionResult
		decision, err := l.AskPermission(ctx, agent.Question{
			ToolCall: askedCall(req),
			Decide: func(ctx context.Context, _ event.ToolCall) (_ agent.CallDecision, err error) {
				result, err = ask(ctx, req)
				allow, ok := allowed(result)
				if !ok {
					return agent.CallDecision{}, err
				}
				return agent.CallDecision{Verdict: event.Allow, Input: inputOf(allow.UpdatedInput)}, err
			},
		})
		if err == nil && decision.Verdict == event.Deny && claude.Allows(result) {
			return claude.Deny{Message: decision.Reason}, nil
		}
		return result, err
	}
}

type handleFunc = func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error)

func throughLedger(l *agent.Ledger, name string, s *claude.MCPInProcess) *claude.MCPInProcess {
	own := &claude.MCPInProcess{Attach: s.Attach, Manifest: s.Manifest, Timeout: s.Timeout, Tools: s.Tools}
	if s.Handle != nil {
		own.Handle = callLedger(l, name, s.Handle)
	}
	if s.Session != nil {
		own.Session = func(send func(context.Context, json.RawMessage) error) claude.MCPSession {
			session := s.Session(send)
			session.Handle = callLedger(l, name, session.Handle)
			return session
		}
	}
	return own
}

func callLedger(l *agent.Ledger, server string, next handleFunc) handleFunc {
	return func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error) {
		fields, err := plainFields(msg, "jsonrpc", "id", "method", "params", "result", "error")
		if err != nil {
			return nil, err
		}
		var method string
		_ = json.Unmarshal(fields["method"], &method) // another type is not a call
		if method == "tools/call" {
			if fields["params"], err = callParams(ctx, l, server, fields["params"]); err != nil {
				return refusedCall(fields["id"], err)
			}
		}
		if msg, err = plainjson.Marshal(fields); err != nil {
			return nil, err
		}
		return next(ctx, msg)
	}
}

// callParams are the parameters of a call as the ledger has taken them, with the id of the call.
func callParams(ctx context.Context, l *agent.Ledger, server string, params json.RawMessage) (json.RawMessage, error) {
	fields, err := plainFields(params, "name", "arguments", "_meta")
	if err != nil {
		return nil, err
	}
	var name string
	var id event.CallID
	var meta map[string]json.RawMessage
	if err := json.Unmarshal(fields["name"], &name); err != nil {
		return nil, unreadableCall(err)
	}
	_ = json.Unmarshal(fields["_meta"], &meta)
	_ = json.Unmarshal(meta[toolUseID], &id)
	call, err := l.Call(ctx, event.ToolCall{ID: id, Name: tool.NewMCPName(server, name).String(), Input: fields["arguments"]})
	if err != nil {
		return nil, err
	}
	if id == "" && call.ID != "" { // the CLI has not sent it
		set(&meta, toolUseID, encoded(call.ID))
		fields["_meta"] = encoded(meta)
	}
	return plainjson.Marshal(fields)
}

// encoded is the JSON of what was JSON before, or of a text.
func encoded(v any) json.RawMessage {
	raw, _ := plainjson.Marshal(v) // it cannot fail
	return raw
}

// toolUseID is the field of a call's _meta in which the CLI sends the id of the tool use.
const toolUseID = "claudecode/toolUseId"

// plainFields are an object's fields. A name that differs from a known one only in case is an error: readers must agree.
func plainFields(object json.RawMessage, known ...string) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, unreadableCall(err)
	}
	for name := range fields {
		for _, k := range known {
			if name != k && strings.EqualFold(name, k) {
				return nil, ambiguousField(name, k)
			}
		}
	}
	return fields, nil
}

func refusedCall(id json.RawMessage, why error) (json.RawMessage, error) {
	return json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id,
		"result": map[string]any{"isError": true, "content": []any{map[string]string{"type": "text", "text": advice.Text(why)}}},
	})
}
