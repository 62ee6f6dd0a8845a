// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// A knownServer is a server of the options that serves tools which the gate knows.
type knownServer struct {
	name      string // in full: tool names carry less of it
	inProcess bool
}

// knownServers finds the servers whose tools the gate knows, by the key that tool names carry. The
// CLI makes one key of names such as "my.desk" and "my_desk", and then calls either server; two
// servers of one key are refused if the gate knows one of them.
func (e *Engine) knownServers(o *claude.Options) (map[string]knownServer, error) {
	known := map[string]knownServer{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		key := serverKey(name)
		if !slices.Contains(e.gate.keys, key) {
			continue
		}
		if other, taken := known[key]; taken {
			errs = append(errs, &claude.OptionError{
				Option: fmt.Sprintf("MCPServers[%q]", name),
				Reason: fmt.Sprintf("in the names of tools it cannot be told from %q; rename one of them", other.name),
			})
		}
		_, inProcess := o.MCPServers[name].(*claude.MCPInProcess)
		known[key] = knownServer{name, inProcess}
	}
	return known, errors.Join(errs...)
}

// misnamed refuses servers of this process of which the gate knows no tool, if it knows only tools of
// servers that are not there: they are the same, under two names, and all their tools would be denied.
func (e *Engine) misnamed(o *claude.Options) error {
	var strange []string
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		if slices.Contains(e.gate.keys, serverKey(name)) {
			return nil
		}
		if _, inProcess := o.MCPServers[name].(*claude.MCPInProcess); inProcess {
			strange = append(strange, name)
		}
	}
	if len(strange) == 0 || len(e.gate.keys) == 0 {
		return nil
	}
	return &claude.OptionError{
		Option: fmt.Sprintf("MCPServers[%q]", strange[0]),
		Reason: fmt.Sprintf("the gate knows tools of the server %s, which is not here, and none of this one; give the policy this key, as Server", quoted(e.gate.keys)),
	}
}

// impostor reports whether a tool is served by another server than the one whose tools the gate
// knows under its name. An old CLI does not tell which server it is.
func (e *Engine) impostor(known map[string]knownServer, s claude.HookMCPServer) bool {
	if s.Name == "" {
		return false
	}
	key := serverKey(s.Name)
	k, ok := known[key]
	if !ok { // the program may add its server later; a file may not do it instead
		return slices.Contains(e.gate.keys, key) && slices.Contains(fileSources, s.Source)
	}
	return s.Name != k.name || k.inProcess && s.Source != "" && s.Source != inProcessSource
}

// fileSources are where servers come from that the program has not named, in the words of the CLI.
var fileSources = []string{"project", "user", "local", "plugin"}

// inProcessSource is where servers of the host program come from, in the words of the CLI.
const inProcessSource = "sdk"

// genuine makes the hook deny the tools of a server that passes for one of ours.
func (e *Engine) genuine(known map[string]knownServer, h claude.Hook) claude.Hook {
	decide := h.Func
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		call, ok := in.(*claude.PreToolUseInput)
		if !ok || !e.impostor(known, call.MCPServer) {
			return decide(ctx, in)
		}
		d := e.told(ctx, event.Decision{
			CallID: call.ToolUseID, Tool: call.ToolName, Policy: policyEngine,
			Reason: fmt.Sprintf("%s belongs to the MCP server %q (%s), which only has the name of a known one.",
				call.ToolName, call.MCPServer.Name, call.MCPServer.Source),
		})
		return claude.DenyTool(d.Reason), nil
	}
	return h
}

// namesServer lets the engine know to which server a tool belongs: its name may be that of a tool of
// another server too, as "mcp__a__b__c" is.
func namesServer(h claude.Hook) claude.Hook {
	inner := h.Func
	if inner == nil || h.Event != claude.HookPreToolUse {
		return h
	}
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		if call, ok := in.(*claude.PreToolUseInput); ok && call.MCPServer.Name != "" {
			ctx = servers.With(ctx, serverKey(call.MCPServer.Name))
		}
		return inner(ctx, in)
	}
	return h
}

// beginsCall lets the engine know that the CLI begins a call: it asks the hook once for each, and before
// anybody else asks.
func beginsCall(h claude.Hook) claude.Hook {
	inner := h.Func
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		return inner(beginnings.With(ctx, true), in)
	}
	return h
}

// beginnings marks questions with which a call begins.
var beginnings = tool.NewKey[bool]("beginning of a call")

// asksWithServer is namesServer for the permission callback, so that both places mean the same tool.
func asksWithServer(ask claude.CanUseTool) claude.CanUseTool {
	return func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
		if req.MCPServer != nil && req.MCPServer.Name != "" {
			ctx = servers.With(ctx, serverKey(req.MCPServer.Name))
		}
		return ask(ctx, req)
	}
}

// servers holds the key of the server that a call is for, where it is known.
var servers = tool.NewKey[string]("server of the call")

func serverFrom(ctx context.Context) string {
	key, _ := servers.From(ctx)
	return key
}
