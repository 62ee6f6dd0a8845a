// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-agents/drover/event"
)

// A Stage is the place of a policy in the order in which reasons win.
type Stage uint8

// The stages, in their order.
const (
	StageLimits Stage = iota
	StageLists
	StageRisk
	StageCapabilities
	StageSession
	StageCustom
)

// A Policy is one part of a gate. The functions of this package make the usual ones; [Custom] makes
// one of a function.
type Policy struct {
	// Name is how decisions name the policy.
	Name  string
	Stage Stage
	// Judge says what the policy thinks of a call, or false if nothing. It must be pure, and safe
	// for concurrent use. A decision that allows or asks may replace the input; all policies then
	// judge the new input. Nil abstains.
	Judge func(c Call, f Facts) (event.Decision, bool)

	// Tools are registries that the gate is to know, by the key of the MCP server that serves them.
	Tools map[string]Lookup
	// Otherwise is what the policy says of calls about which all policies abstain. The strictest
	// of those given holds; nil says nothing.
	Otherwise *Otherwise
	// Permissions are set by [FromCapabilities], for the agent's own permission mode.
	Permissions *Permissions
	// err is a mistake in the declaration, for New to report.
	err error
}

// Otherwise is the rule for calls that no policy knows.
type Otherwise struct {
	Verdict event.Verdict
	// Reason gives the text of a denial. Nil means "Tool not allowed: <name>".
	Reason func(name string) string
}

// A Gate decides about tool calls. It is immutable.
type Gate struct {
	policies  []Policy
	servers   []server
	keys      []string // of the servers, the longest first
	otherwise *Otherwise
}

type server struct {
	key    string
	lookup Lookup
}

// New makes a gate. A gate without policies denies every call. The error names every policy that is
// wrong.
func New(policies ...Policy) (*Gate, error) {
	g := &Gate{}
	var errs []error
	for _, p := range policies {
		if p.err != nil {
			errs = append(errs, fmt.Errorf("gate: policy %s: %w", p.Name, p.err))
		}
		g.know(p.Tools)
		if p.Otherwise != nil && (g.otherwise == nil || p.Otherwise.Verdict < g.otherwise.Verdict) {
			g.otherwise = p.Otherwise
		}
		g.policies = append(g.policies, p)
	}
	slices.SortStableFunc(g.policies, func(a, b Policy) int { return cmp.Compare(a.Stage, b.Stage) })
	slices.SortFunc(g.keys, func(a, b string) int { return len(b) - len(a) })
	return g, errors.Join(errs...)
}

// Must is [New] for gates written into a program; it panics on an error.
func Must(policies ...Policy) *Gate {
	g, err := New(policies...)
	if err != nil {
		panic(err)
	}
	return g
}

func (g *Gate) know(tools map[string]Lookup) {
	for key, lookup := range tools {
		key = serverKey(key)
		g.servers = append(g.servers, server{key, lookup})
		if key != "" && !slices.Contains(g.keys, key) {
			g.keys = append(g.keys, key)
		}
	}
}

// Decide makes the decision about a call.
func (g *Gate) Decide(call event.ToolCall, f Facts) event.Decision {
	c := g.canonical(call)
	d := g.judge(c, f)
	if d.Input != nil && d.Verdict != event.Deny {
		d = g.rejudge(c, f, d)
	}
	d.CallID, d.Tool = call.ID, call.Name
	return d
}

// rejudge lets all policies judge the input that one of them has written. The new input must stand:
// policies that go on rewriting cannot be satisfied.
func (g *Gate) rejudge(c Call, f Facts, first event.Decision) event.Decision {
	c.Input = first.Input
	second := g.judge(c, f)
	switch {
	case second.Verdict == event.Deny:
		return second
	case second.Input != nil && !bytes.Equal(second.Input, first.Input):
		return event.Decision{Policy: second.Policy, Reason: fmt.Sprintf("Policies %s and %s do not agree on the input of this call.", first.Policy, second.Policy)}
	}
	second.Input = first.Input
	return second
}

// judge asks the policies in order. It stops at the first denial.
func (g *Gate) judge(c Call, f Facts) event.Decision {
	var (
		best      event.Decision
		decided   bool
		rewritten json.RawMessage
	)
	for i := range g.policies {
		p := &g.policies[i]
		if p.Judge == nil {
			continue
		}
		d, ok := p.ask(c, f)
		if !ok {
			continue
		}
		d.Policy = cmp.Or(d.Policy, p.Name)
		if d.Verdict != event.Ask && d.Verdict != event.Allow {
			return event.Decision{Verdict: event.Deny, Reason: cmp.Or(d.Reason, "Denied by policy "+d.Policy+"."), Policy: d.Policy}
		}
		if d.Input != nil {
			c.Input, rewritten = d.Input, d.Input // later policies judge what would run
		}
		if !decided || d.Verdict < best.Verdict {
			best, decided = d, true
		}
	}
	if !decided {
		return g.unknown(c)
	}
	best.Input = rewritten
	return best
}

// ask makes a denial of a panic.
func (p *Policy) ask(c Call, f Facts) (d event.Decision, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			d, ok = event.Decision{Reason: fmt.Sprintf("Policy %s failed: %v", p.Name, r), Policy: p.Name}, true
		}
	}()
	return p.Judge(c, f)
}

func (g *Gate) unknown(c Call) event.Decision {
	o := g.otherwise
	if o == nil {
		o = &Otherwise{}
	}
	d := event.Decision{Verdict: o.Verdict, Policy: "otherwise"}
	if o.Verdict == event.Allow {
		return d
	}
	if o.Reason != nil {
		d.Reason = o.Reason(c.Name)
		return d
	}
	d.Reason = "Tool not allowed: " + c.Name
	return d
}
