// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/recent"
	"github.com/drover-agents/drover/internal/uuid"
	"github.com/drover-agents/drover/tool"
)

// vouchers know which calls were allowed in this program. The CLI shares its cell with the commands that
// it runs, and such a command can speak in its name. A call of a tool that runs out here, in no cell, is
// therefore run because it was decided here, and not because the CLI says so.
type vouchers struct {
	host agent.Host
	dir  string

	mu    sync.Mutex
	calls recent.Map[string, voucher]
}

// A voucher is what is known of a call. The zero value is nothing.
type voucher int

const (
	vouchAllowed voucher = iota + 1 // once
	vouchUsed
	vouchOpposed // somebody denied it or wants to ask, whatever others say
)

// rememberedCalls is how many calls are known. One that was forgotten is decided when it comes.
const rememberedCalls = 4096

func newVouchers(host agent.Host, dir string) *vouchers {
	return &vouchers{host: host, dir: dir, calls: recent.Map[string, voucher]{Size: rememberedCalls}}
}

func voucherKey(id, name string, input json.RawMessage) string {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return strings.Join([]string{id, name, plainjson.Digest(input)}, "\x00")
}

// note remembers what was said of a call. An opposition is not set aside by another hook, which the CLI asks at
// the same time, but by whoever was asked then.
func (v *vouchers) note(is voucher, asked bool, id, name string, input any) {
	raw, err := json.Marshal(input)
	if err != nil || id == "" {
		return // it is decided when it comes
	}
	key := voucherKey(id, name, raw)
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, _ := v.calls.Get(key); asked || known != vouchOpposed {
		v.calls.Put(key, is)
	}
}

// use reports what is known of a call, which is then used up.
func (v *vouchers) use(key string) voucher {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, _ := v.calls.Get(key)
	v.calls.Put(key, vouchUsed)
	return known
}

// check is an error unless the call was allowed. One of which nothing is known is decided now; so is one
// that has run already, as the other call that it is.
func (v *vouchers) check(ctx context.Context, call event.ToolCall) error {
	switch known := v.use(voucherKey(call.ID, call.Name, call.Input)); {
	case known == vouchAllowed:
		return nil
	case known == vouchUsed, call.ID == "":
		call.ID = uuid.New()
	}
	call.Dir = v.dir
	d := v.host.Decide(ctx, call)
	if d.Verdict != event.Allow {
		return errors.New(cmp.Or(d.Reason, call.Name+" is not permitted."))
	}
	if d.Input != nil && plainjson.Digest(d.Input) != plainjson.Digest(call.Input) {
		return fmt.Errorf("%s is permitted with another input only", call.Name)
	}
	return nil
}

// observe listens to those who allow calls, and stands before the servers that run them.
func (v *vouchers) observe(o *claude.Options) {
	var hooks []claude.Hook
	for _, h := range o.Hooks {
		hooks = append(hooks, v.observed(h))
	}
	o.Hooks = hooks
	if ask := o.CanUseTool; ask != nil {
		o.CanUseTool = func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
			result, err := ask(ctx, req)
			if err == nil && claude.Allows(result) {
				v.note(vouchAllowed, true, req.ToolUseID, req.ToolName, allowedInput(result, req.Input))
			} else {
				v.note(vouchOpposed, true, req.ToolUseID, req.ToolName, req.Input)
			}
			return result, err
		}
	}
	interpose(o, v.guardHandle)
}

func allowedInput(result claude.PermissionResult, otherwise any) any {
	if allow, ok := allowed(result); ok && allow.UpdatedInput != nil {
		return allow.UpdatedInput
	}
	return otherwise
}

func (v *vouchers) observed(h claude.Hook) claude.Hook {
	inner := h.Func
	if h.Event != claude.HookPreToolUse || inner == nil {
		return h
	}
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		out, err := inner(ctx, in)
		call, isCall := in.(*claude.PreToolUseInput)
		answer, isAnswer := out.(*claude.PreToolUseOutput)
		isAnswer = isAnswer && answer != nil && !answer.Async
		switch {
		case !isCall:
		case err != nil || claude.Denies(out) || isAnswer && answer.PermissionDecision == claude.DecideAsk:
			v.note(vouchOpposed, false, call.ToolUseID, call.ToolName, call.ToolInput)
		case isAnswer && answer.PermissionDecision == claude.DecideAllow:
			var input any = call.ToolInput
			if answer.UpdatedInput != nil {
				input = answer.UpdatedInput
			}
			v.note(vouchAllowed, false, call.ToolUseID, call.ToolName, input)
		}
		return out, err
	}
	return h
}

type handleFunc = func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error)

// interpose stands before the servers that run tools in this program.
func interpose(o *claude.Options, before func(server string, next handleFunc) handleFunc) {
	servers := maps.Clone(o.MCPServers)
	for name, server := range servers {
		if own, ok := server.(*claude.MCPInProcess); ok {
			servers[name] = interposed(name, own, before)
		}
	}
	o.MCPServers = servers
}

func interposed(name string, s *claude.MCPInProcess, before func(server string, next handleFunc) handleFunc) *claude.MCPInProcess {
	own := &claude.MCPInProcess{Attach: s.Attach, Manifest: s.Manifest, Timeout: s.Timeout, Tools: s.Tools}
	if s.Handle != nil {
		own.Handle = before(name, s.Handle)
	}
	if s.Session != nil {
		own.Session = func(send func(context.Context, json.RawMessage) error) claude.MCPSession {
			session := s.Session(send)
			session.Handle = before(name, session.Handle)
			return session
		}
	}
	return own
}

func (v *vouchers) guardHandle(server string, next handleFunc) handleFunc {
	return func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error) {
		fields, err := plainFields(msg, "jsonrpc", "id", "method", "params", "result", "error")
		if err != nil {
			return nil, err
		}
		var method string
		_ = json.Unmarshal(fields["method"], &method) // what is no text is no call
		if method == "tools/call" {
			if fields["params"], err = v.checkParams(ctx, server, fields["params"]); err != nil {
				return refusedCall(fields["id"], err)
			}
		}
		if msg, err = json.Marshal(fields); err != nil {
			return nil, err
		}
		return next(ctx, msg)
	}
}

// checkParams checks a call, and returns its parameters as they were checked.
func (v *vouchers) checkParams(ctx context.Context, server string, params json.RawMessage) (json.RawMessage, error) {
	fields, err := plainFields(params, "name", "arguments", "_meta")
	if err != nil {
		return nil, err
	}
	var name string
	var meta map[string]json.RawMessage
	var id string
	if err := json.Unmarshal(fields["name"], &name); err != nil {
		return nil, fmt.Errorf("the name of the tool: %w", err)
	}
	_ = json.Unmarshal(fields["_meta"], &meta) // without an id the call is decided now
	_ = json.Unmarshal(meta[toolUseID], &id)
	call := event.ToolCall{ID: id, Name: tool.NewMCPName(server, name).String(), Input: fields["arguments"]}
	if err := v.check(ctx, call); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// toolUseID is the field of a call's _meta in which the CLI tells the id of the tool use.
const toolUseID = "claudecode/toolUseId"

// plainFields are the fields of an object. Those that some readers would take for a known one and others
// would not are an error: whoever reads the message later must not read another one.
func plainFields(object json.RawMessage, known ...string) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, fmt.Errorf("claudecode: a message to a tool: %w", err)
	}
	for name := range fields {
		for _, k := range known {
			if name != k && strings.EqualFold(name, k) {
				return nil, fmt.Errorf("claudecode: a message to a tool has the field %q, which is almost %q", name, k)
			}
		}
	}
	return fields, nil
}

// refusedCall is the answer to a call that does not run.
func refusedCall(id json.RawMessage, why error) (json.RawMessage, error) {
	return json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id,
		"result": map[string]any{"isError": true, "content": []any{map[string]string{"type": "text", "text": why.Error()}}},
	})
}
