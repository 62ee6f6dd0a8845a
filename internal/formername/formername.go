// SPDX-License-Identifier: Apache-2.0

// Package formername has the name that earlier versions gave to the tools of a program, so that what was written then
// still means them.
package formername

import "strings"

// Prefix began the names of the tools of an evaluation, as the model read them. They begin with Now.
const (
	Prefix = "mcp__wink__"
	Now    = "mcp__drover__"
)

// Tool returns the present name of a tool: "mcp__drover__x" for "mcp__wink__x", and "mcp__drover" for "mcp__wink". Other
// names stay as they are.
func Tool(name string) string {
	if rest, ok := strings.CutPrefix(name, Prefix); ok {
		return Now + rest
	}
	if name == strings.TrimSuffix(Prefix, "__") {
		return strings.TrimSuffix(Now, "__")
	}
	return name
}
