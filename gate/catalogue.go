// SPDX-License-Identifier: Apache-2.0

package gate

import "github.com/drover-agents/drover/tool"

// A NativeTool is what the catalogue knows of a tool of Claude Code.
type NativeTool struct {
	Name  string
	Risk  tool.Risk
	Needs tool.Capability
}

// Native looks a tool of Claude Code up, by today's name or an older one.
func Native(name string) (NativeTool, bool) {
	return NativeTool{}, false
}
