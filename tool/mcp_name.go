// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"strings"

	"github.com/drover-agents/drover/internal/ident"
)

// An MCPName names a tool of an MCP server, or all tools of the server where Tool is empty.
type MCPName struct{ Server, Tool string }

const mcpPrefix = "mcp__"

// NewMCPName spells the names of a server and of its tool as they stand in the names of tools: what is no letter,
// digit, "_" or "-" becomes "_".
func NewMCPName(server, tool string) MCPName { return MCPName{spelled(server), spelled(tool)} }

func spelled(name string) string {
	for i := range len(name) {
		if !isNameLetter(rune(name[i])) {
			return strings.Map(func(r rune) rune {
				if isNameLetter(r) {
					return r
				}
				return '_'
			}, name)
		}
	}
	return name
}

func isNameLetter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// ParseMCPName reads "mcp__server__tool", and "mcp__server" or "mcp__server__*" for all tools of a server. The server
// is spelled as [NewMCPName] does, the tool as it was. Of "mcp__a__b__c" both "a" and "a__b" can be the server: it is
// the first of the servers that fits, and otherwise "a".
func ParseMCPName(name string, servers ...string) (n MCPName, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(name), mcpPrefix)
	if !ok {
		return n, false
	}
	rest = strings.TrimSuffix(rest, "__*")
	for _, server := range servers {
		key := spelled(server)
		if len(rest) >= len(key) && spelled(rest[:len(key)]) == key && (len(rest) == len(key) || len(rest) > len(key)+2 && rest[len(key):len(key)+2] == "__") {
			return MCPName{key, strings.TrimPrefix(rest[len(key):], "__")}, true
		}
	}
	n.Server, n.Tool, _ = strings.Cut(rest, "__")
	n.Server = spelled(n.Server)
	return n, true
}

// String is "mcp__server__tool" or "mcp__server".
func (n MCPName) String() string {
	if n.Tool == "" {
		return mcpPrefix + n.Server
	}
	return mcpPrefix + n.Server + "__" + n.Tool
}

// ShortName is the name of a tool for people: "Bash"; "server: tool" of an MCP server. A tool of the program has the name that the
// program gave it, and is ours.
func ShortName(name string) (short string, ours bool) {
	name = ident.PresentTool(name)
	n, isMCP := ParseMCPName(name)
	switch {
	case !isMCP:
		return name, false
	case n.Server == DefaultServerName:
		return n.Tool, true
	case n.Server == "" || n.Tool == "":
		return n.Server + n.Tool, false
	}
	return n.Server + ": " + n.Tool, false
}
