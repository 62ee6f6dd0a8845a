// SPDX-License-Identifier: Apache-2.0

package ident

import "strings"

// The names of the tools of an evaluation, as the model reads them, begin with ToolPrefix. In earlier versions they
// began with FormerToolPrefix, and what was written then still means them.
const (
	ToolPrefix       = "mcp__drover__"
	FormerToolPrefix = "mcp__wink__"
)

// PresentTool returns the present name of a tool: "mcp__drover__x" for "mcp__wink__x", and "mcp__drover" for "mcp__wink". Other
// names stay as they are.
func PresentTool(name string) string {
	if rest, ok := strings.CutPrefix(name, FormerToolPrefix); ok {
		return ToolPrefix + rest
	}
	if name == strings.TrimSuffix(FormerToolPrefix, "__") {
		return strings.TrimSuffix(ToolPrefix, "__")
	}
	return name
}
