// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/tool"
)

// A gatekeeper is the engine as the agent's host, which also tells of its decisions.
type gatekeeper struct {
	*gate.Engine
	h *host
}

// TellTo implements [agent.Teller].
func (g *gatekeeper) TellTo(tell func(event.Event)) {
	g.h.lock.Lock()
	defer g.h.lock.Unlock()
	g.h.tell = tell
}

// newEngine makes the one place where calls are decided: the agent's hooks and our own registry ask it.
func (h *host) newEngine() (*gate.Engine, error) {
	g, err := gate.New(h.policies()...)
	if err != nil {
		return nil, err
	}
	return gate.NewEngine(g, &gate.EngineOptions{
		Facts: h.facts(), Approver: h.opts.Approver, Emit: h.decided, Logger: h.opts.Logger,
	}), nil
}

// policies are all that judge the calls of the evaluation. The gate orders them by stage: limits, lists,
// risk, capabilities, session, the others. What none of them has an opinion of is allowed, unless the agent
// was given a permission mode.
func (h *host) policies() []gate.Policy {
	all := []gate.Policy{gate.Limits(gate.LimitOptions{}), gate.Blocked(), gate.Knows(h.opts.ToolServer, h.registry), gate.KnowsAgent(h.adapter.Catalogue())}
	if h.opts.Tools != nil {
		all = append(all, gate.AllowTools(h.allowedTools()...))
	}
	if len(h.opts.DisallowedTools) > 0 {
		all = append(all, gate.DenyTools(h.opts.DisallowedTools...))
	}
	if h.opts.Permissions != nil {
		all = append(all, gate.FromCapabilities(h.opts.Permissions), gate.Default(event.Allow))
	} else {
		all = append(all, gate.LeaveToAgent())
	}
	return slices.Concat(all, h.live.Policies(), h.opts.Policies)
}

// allowedTools is the list of the options and, unless it names some of them or is empty, the tools of the
// prompt, which its text speaks of: also those of sections that are opened later. Skills need a tool too.
func (h *host) allowedTools() []string {
	list := slices.Clone(h.opts.Tools)
	ours := func(name string) bool {
		name, _, _ = strings.Cut(name, "(")
		_, found := h.registry.Lookup(name)
		_, served := h.opts.ownTool(ident.PresentTool(name))
		return found || served
	}
	if len(list) > 0 && !slices.ContainsFunc(list, ours) {
		list = append(list, tool.NewMCPName(h.opts.ToolServer, "").String())
	}
	if len(h.live.Rendered().Skills) > 0 {
		list = agent.WithSkillTool(list, h.adapter.Catalogue())
	}
	return list
}

// listedTools is the list as the agent gets it. Arguments are for the gate: no agent takes them for a
// boundary.
func (h *host) listedTools() []string {
	if h.opts.Tools == nil {
		return nil
	}
	names := []string{}
	for _, name := range h.allowedTools() {
		name, _, _ = strings.Cut(name, "(")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// facts is what is known about a call. Every call that the agent wants to make comes through here.
func (h *host) facts() func(context.Context, gate.Call) gate.Facts {
	known := guard.Facts(guard.FactsOptions{Session: h.opts.Session, Tracker: h.tracker, Deadline: h.deadline})
	return func(ctx context.Context, c gate.Call) gate.Facts {
		if _, inRegistry := tool.Candidate(ctx); !inRegistry {
			h.calls.Note(c.ToolCall)
		}
		return known(ctx, c)
	}
}

// decided records a decision or a question before anybody acts on it, and reports it. The engine denies a call
// whose decision cannot be recorded.
func (h *host) decided(e event.Event) error {
	h.beat()
	e.Agent, e.RunID = h.adapter.Agent(), h.runContext().RunID
	if d, ok := e.Payload.(event.Decision); ok {
		h.calls.Decided(d)
	}
	entry, err := h.opts.Session.Dispatch(context.Background(), e)
	if err != nil {
		h.lose(err)
		return err
	}
	e.Position.Entry = entry
	h.say(e)
	return nil
}
