// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// ToolGateOptions configures [NewToolGate].
type ToolGateOptions struct {
	// Registry holds the tools to gate: a [tool.Registry] or [tool.Tools]. It is required.
	Registry Lookup
	// Server is the key of the MCP server that serves them. Empty means [tool.DefaultServerName].
	Server string
	// ReadOnly denies all mutating tools and overrides AllowMutation.
	ReadOnly bool
	// AllowMutation allows mutating tools. Nil means the opposite of ReadOnly.
	AllowMutation *bool
	// AllowDangerous allows dangerous tools. Nil means true.
	AllowDangerous *bool
	// Builtin classifies tools that are not in the registry.
	Builtin BuiltinLists
	// AllowUnknown allows tools that are neither in the registry nor in Builtin.
	AllowUnknown bool
	// ToolConfig is what the server was given to rename tools. Nil renames none.
	ToolConfig func(*tool.Tool) tool.Presentation
	// Messages replace the texts of denials.
	Messages Messages
}

// A ToolGateDecision is the decision of a tool gate about a tool.
type ToolGateDecision struct {
	// Behavior is "allow" or "deny".
	Behavior string `json:"behavior"`
	// Message is why a tool is denied.
	Message string `json:"message,omitzero"`
}

// NewToolGate makes a function that decides by a tool's name whether the tool may be used. It is [FromRisk] alone, for
// programs that need no other policy and no knowledge of the call; it knows only the tools that the options name.
func NewToolGate(o ToolGateOptions) (func(toolName string) ToolGateDecision, error) {
	if err := checkLookup(o.Registry); err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	g, err := New(riskPolicy(RiskOptions{
		Registry: o.Registry, Server: o.Server, ToolConfig: o.ToolConfig,
		ReadOnly:      o.ReadOnly,
		DenyMutation:  o.AllowMutation != nil && !*o.AllowMutation,
		DenyDangerous: o.AllowDangerous != nil && !*o.AllowDangerous,
		Builtin:       o.Builtin, AllowUnknown: o.AllowUnknown, Messages: o.Messages,
	}, false))
	if err != nil {
		return nil, err
	}
	return func(name string) ToolGateDecision {
		d := g.Decide(event.ToolCall{Name: name}, Facts{})
		if d.Verdict == event.Allow {
			return ToolGateDecision{Behavior: "allow"}
		}
		return ToolGateDecision{Behavior: "deny", Message: d.Reason}
	}, nil
}
