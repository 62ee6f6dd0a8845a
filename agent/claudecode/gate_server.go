// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/tool"
)

// gatedServers are the servers whose tools the gate knows, by the key in tool names. One that the options lack has no name.
type gatedServers map[string]gatedServer

type gatedServer struct {
	name      string // in full: tool names carry less of it
	inProcess bool
}

func serverKey(name string) string { return tool.NewMCPName(name, "").Server }

// knownServers finds the servers whose tools the gate knows. The CLI makes one key of names such as "my.desk" and "my_desk",
// and then calls either server; two servers of one key are refused if the gate knows one of them.
func knownServers(o *claude.Options, keys []string) (gatedServers, error) {
	known := gatedServers{}
	for _, key := range keys {
		known[key] = gatedServer{}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		key := serverKey(name)
		other, ok := known[key]
		if !ok {
			continue
		}
		if other.name != "" {
			errs = append(errs, &claude.OptionError{
				Option: fmt.Sprintf("MCPServers[%q]", name),
				Reason: fmt.Sprintf("tool names do not distinguish it from %q; rename one of them", other.name),
			})
		}
		_, inProcess := o.MCPServers[name].(*claude.MCPInProcess)
		known[key] = gatedServer{name, inProcess}
	}
	return known, errors.Join(errs...)
}

// misnamed refuses servers of this process of which the gate knows no tool, if it knows only tools of
// servers that are not there: they are the same, under two names, and all their tools would be denied.
func misnamed(o *claude.Options, keys []string) error {
	var strange []string
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		if slices.Contains(keys, serverKey(name)) {
			return nil
		}
		if _, inProcess := o.MCPServers[name].(*claude.MCPInProcess); inProcess {
			strange = append(strange, name)
		}
	}
	if len(strange) == 0 || len(keys) == 0 {
		return nil
	}
	return &claude.OptionError{
		Option: fmt.Sprintf("MCPServers[%q]", strange[0]),
		Reason: fmt.Sprintf("the gate knows tools of the server %s, which is not here, and none of this one; give the policy this key, as Server", quoted(keys)),
	}
}

// impostor reports whether a tool is served by another server than the one whose tools the gate
// knows under its name. An old CLI does not name the server.
func (known gatedServers) impostor(s claude.HookMCPServer) bool {
	k, ok := known[serverKey(s.Name)]
	switch {
	case s.Name == "" || !ok:
		return false
	case k.name == "": // the program may add its server later; a file may not do it instead
		return slices.Contains(fileSources, s.Source)
	}
	return s.Name != k.name || k.inProcess && s.Source != "" && s.Source != inProcessSource
}

// fileSources are where servers come from that the program has not named, in the words of the CLI.
var fileSources = []string{"project", "user", "local", "plugin"}

// inProcessSource is where servers of the host program come from, in the words of the CLI.
const inProcessSource = "sdk"

// genuine makes the hook deny the tools of a server that passes for one of ours.
func (known gatedServers) genuine(g gated, h claude.Hook) claude.Hook {
	decide := h.Func
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		call, ok := in.(*claude.PreToolUseInput)
		if !ok || !known.impostor(call.MCPServer) {
			return decide(ctx, in)
		}
		d := g.Deny(ctx, hookedCall(call), impostorReason(call.ToolName, call.MCPServer))
		return claude.DenyTool(d.Reason), nil
	}
	return h
}
