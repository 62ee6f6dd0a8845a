// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"slices"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// An AgentConfig is what an adapter needs to know of a gate to configure its agent. The engine decides about
// every call that the adapter asks it about, independent of this configuration.
type AgentConfig struct {
	// Permissions are those of [FromCapabilities], nil without that policy. Of several those in [ModeAuto] count,
	// which only the agent can enforce. Permissions with a When do not count: an agent's mode is set once.
	Permissions *Permissions
	// PermissionsOnly reports that no other policy decides anything: a permission mode of the agent can replace the gate.
	PermissionsOnly bool
	// LeavesToAgent reports that the gate has a [LeaveToAgent]: calls about which all policies abstain, those
	// with the policy [NoPolicy] in their decision, are left to a permission mode that the agent was given.
	LeavesToAgent bool
	// Catalogue is what the gate knows of the agent's own tools; nil if nothing.
	Catalogue *tool.Catalogue
	// Servers are the keys of the MCP servers whose tools the gate knows, as names of tools spell them.
	Servers []string
}

// AgentConfig returns what an adapter needs to know of the gate.
func (e *Engine) AgentConfig() AgentConfig {
	c := AgentConfig{Servers: slices.Clone(e.gate.keys), Catalogue: e.gate.agent}
	judges := 0
	for _, p := range e.gate.policies {
		if p.Judge != nil || p.Otherwise != nil {
			judges++
		}
		if p.Permissions != nil && p.When == nil && (c.Permissions == nil || c.Permissions.Mode != ModeAuto) {
			c.Permissions = new(*p.Permissions)
		}
		c.LeavesToAgent = c.LeavesToAgent || p.leaves
	}
	c.PermissionsOnly = c.Permissions != nil && judges == 1
	return c
}

// Deny records a denial that the adapter itself has made, as [Engine.Decide] records decisions, and returns it.
func (e *Engine) Deny(ctx context.Context, call event.ToolCall, reason string) event.Decision {
	d := event.Decision{CallID: call.ID, Tool: call.Name, Policy: policyEngine, Reason: reason}
	d.Chain = appendVerdict(nil, &d)
	return e.record(ctx, d)
}

// A CallContext is what an adapter knows about a question of its agent, beside the call itself.
type CallContext struct {
	// Server is the name of the tool's MCP server, if the agent reports it: in "mcp__a__b__c" it can be "a" or "a__b".
	Server string
	// Workspace is the folder that the agent was started in: see [Facts].
	Workspace string
	// Begins marks the first question about a call. A decision about an earlier call with the same id does not hold for it.
	Begins bool
}

var callContexts = tool.NewKey[CallContext]("call context")

// WithCallContext returns the context for a question to [Engine.Decide].
func WithCallContext(ctx context.Context, c CallContext) context.Context {
	return callContexts.With(ctx, c)
}

func callContextFrom(ctx context.Context) CallContext {
	c, _ := callContexts.From(ctx)
	return c
}
