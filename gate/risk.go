// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/tool"
)

// RiskOptions configures [FromRisk]. The zero value allows every tool that it knows, and knows none.
type RiskOptions struct {
	// Registry holds the tools: a [tool.Registry] or [tool.Tools]. Nil means none.
	Registry Lookup
	// Server is the key of the MCP server that serves them, as names of tools carry it. Under
	// any other key they are tools of another server. Empty means [tool.DefaultServerName].
	Server string
	// ToolConfig is what the server was given to rename tools. Nil renames none.
	ToolConfig func(*tool.Tool) tool.Presentation

	// ReadOnly denies every tool that mutates.
	ReadOnly bool
	// DenyMutation denies them too, with a message that states how to allow them.
	DenyMutation bool
	// DenyDangerous denies dangerous tools.
	DenyDangerous bool
	// Strict makes ReadOnly deny dangerous tools, even those that do not mutate.
	Strict bool

	// AgentTools takes the risks of the agent's own tools from its catalogue; see [KnowsAgent]. Without it they
	// are not known, and so denied, unless Builtin has them.
	AgentTools bool
	// Builtin has the risks of tools that are in no registry. Its risks of a tool replace those of the catalogue.
	Builtin BuiltinLists
	// AllowUnknown allows tools that are neither in the registry nor in Builtin. A tool of the agent
	// that the catalogue knows is still denied for its risks.
	AllowUnknown bool
	// Messages replace the texts of denials.
	Messages Messages
}

// BuiltinLists have the risks of tools by name. A name in two lists has the risks of both.
type BuiltinLists struct {
	ReadOnly, Mutating, Dangerous []string
}

// Messages are the texts of denials. Empty and nil mean the usual ones.
type Messages struct {
	Mutating, Dangerous string
	// Unknown gets the name as the caller wrote it.
	Unknown func(toolName string) string
}

// FromRisk makes a policy of the risks of tools. It denies mutating and dangerous tools as the options set, allows the other
// tools that it knows, and has a rule for unknown tools: they are denied unless AllowUnknown is set, but for those without
// which the agent can use no tool and give no answer; see [tool.Native.Plumbing].
//
// The order is that of the options: a tool that is denied as mutating is not looked at as dangerous.
func FromRisk(o RiskOptions) Policy { return riskPolicy(o, true) }

// riskPolicy makes the policy, with the catalogue as a source of risks or without it.
func riskPolicy(o RiskOptions, catalogue bool) Policy {
	p := Policy{Name: "risk", Stage: StageRisk}
	for _, name := range slices.Concat(o.Builtin.ReadOnly, o.Builtin.Mutating, o.Builtin.Dangerous) {
		if strings.TrimSpace(name) == "" {
			p.err = errors.New("option Builtin has a tool without a name")
			return p
		}
	}
	if o.Registry != nil {
		if p.err = checkLookup(o.Registry); p.err != nil {
			return p
		}
		tools, err := rename(o.Registry, o.ToolConfig)
		if err != nil {
			p.err = err
			return p
		}
		p.Tools = map[string]Lookup{cmp.Or(o.Server, tool.DefaultServerName): tools}
		if o.Server == "" {
			p.formerServer = "armorer-tools" // the default of earlier versions
		}
	}
	p.Otherwise = &Otherwise{Reason: o.Messages.Unknown}
	if o.AllowUnknown {
		p.Otherwise = &Otherwise{Verdict: event.Allow}
	}
	p.Judge = newRiskRule(o, catalogue).judge
	return p
}

type riskRule struct {
	denyMutating, denyDangerous bool
	mutating, dangerous         string // messages
	builtin                     map[string]tool.Risk
	catalogue, agentTools       bool
}

func newRiskRule(o RiskOptions, catalogue bool) *riskRule {
	r := &riskRule{
		denyMutating:  o.ReadOnly || o.DenyMutation,
		denyDangerous: o.DenyDangerous || o.Strict && o.ReadOnly,
		mutating:      messageApply,
		dangerous:     messageDangerous,
		builtin:       o.Builtin.risks(),
		catalogue:     catalogue,
		agentTools:    o.AgentTools,
	}
	if o.ReadOnly {
		r.mutating = messageReadOnly
	}
	if r.denyMutating {
		r.dangerous = messageApply // --dangerous alone would not help
	}
	r.mutating, r.dangerous = cmp.Or(o.Messages.Mutating, r.mutating), cmp.Or(o.Messages.Dangerous, r.dangerous)
	return r
}

func (l BuiltinLists) risks() map[string]tool.Risk {
	risks := map[string]tool.Risk{}
	for _, list := range []struct {
		risk  tool.Risk
		names []string
	}{{tool.ReadOnly, l.ReadOnly}, {tool.Mutates, l.Mutating}, {tool.Dangerous, l.Dangerous}} {
		for _, name := range list.names {
			risks[name] = union(risks[name], list.risk)
		}
	}
	return risks
}

func (r *riskRule) judge(c *Call, _ *Facts) (event.Decision, bool) {
	risk, known := r.riskOf(c)
	switch {
	case r.denyMutating && risk.Has(tool.Mutates):
		return event.Decision{Reason: r.mutating}, true
	case r.denyDangerous && risk.Has(tool.Dangerous):
		return event.Decision{Reason: r.dangerous}, true
	}
	return event.Decision{Verdict: event.Allow}, known
}

// riskOf returns the risks of a tool, and whether it is declared. The catalogue only warns:
// that it knows a tool does not allow it, unless nothing works without it.
func (r *riskRule) riskOf(c *Call) (risk tool.Risk, known bool) {
	name := c.Tool
	if c.Server != "" {
		name = c.Name // the lists may name tools of other servers in full
	}
	listed, isListed := r.builtin[name]
	if len(r.builtin) > 0 && c.Origin == Registered && c.Server == tool.DefaultServerName {
		listed = union(listed, r.builtin[ident.FormerToolPrefix+c.Tool])
	}
	switch {
	case c.Origin == Registered:
		return union(c.Risk, listed), true
	case isListed && c.Origin != Builtin:
		return union(c.Risk, listed), true
	case isListed:
		return listed, true
	case r.catalogue:
		return c.Risk, c.isPlumbing() || r.agentTools && c.Origin == Builtin
	}
	return 0, false
}
