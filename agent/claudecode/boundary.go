// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/tool"
)

// boundServers keeps to a list of tools what MCP servers of the base offer. A server that the list does
// not name is not there. Which tools the others have is known only later, and no option of the CLI takes
// away those that are not named: a hook denies them, in every mode.
func boundServers(o *claude.Options, names []string) error {
	list := serverTools(names)
	var named map[string]claude.MCPServer
	for name, server := range o.MCPServers {
		if list.hasServer(name) {
			set(&named, name, server)
		}
	}
	o.MCPServers = named
	if len(named) == 0 && o.MCPConfig == "" && len(o.Plugins) == 0 {
		return nil
	}
	if err := o.RequireHooks(); err != nil {
		return err
	}
	hook := claude.On("mcp__.*", func(_ context.Context, call *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		if list.has(call.ToolName) {
			return nil, nil
		}
		return claude.DenyTool(notListed(call.ToolName)), nil
	})
	o.Hooks = append([]claude.Hook{hook}, o.Hooks...)
	return nil
}

// serverTools is a list of tools, of which only those of MCP servers matter: "mcp__server__tool", or all
// of a server as "mcp__server" or "mcp__server__*".
type serverTools []string

// each calls f with the names without arguments until it returns true, and reports whether it did.
func (l serverTools) each(f func(name string) bool) bool {
	for _, name := range l {
		name, _, _ = strings.Cut(strings.TrimSpace(name), "(")
		if n, isMCP := tool.ParseMCPName(name); isMCP && f(tool.NewMCPName(n.Server, n.Tool).String()) {
			return true
		}
	}
	return false
}

func (l serverTools) has(full string) bool {
	return l.each(func(name string) bool { return full == name || strings.HasPrefix(full, name+"__") })
}

func (l serverTools) hasServer(key string) bool {
	server := tool.NewMCPName(key, "").String()
	return l.each(func(name string) bool { return name == server || strings.HasPrefix(name, server+"__") })
}
