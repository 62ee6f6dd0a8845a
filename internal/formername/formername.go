// SPDX-License-Identifier: Apache-2.0

// Package formername has the names that earlier versions gave to the tools of a program, so that what they wrote can
// still be read.
package formername

import "strings"

// ToolServers are the default names that the MCP server of a program's tools had. It is "drover" now.
var ToolServers = []string{"wink", "armorer-tools"}

// Tool returns the present name of a tool: "mcp__drover__x" for "mcp__wink__x". Other names stay as they are.
func Tool(name string) string {
	for _, server := range ToolServers {
		if rest, ok := strings.CutPrefix(name, Prefix(server)); ok {
			return Prefix("drover") + rest
		}
	}
	return name
}

// Prefix returns the beginning of the names of a server's tools.
func Prefix(server string) string { return "mcp__" + server + "__" }
