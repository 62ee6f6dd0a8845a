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
	"github.com/drover-agents/drover/tool"
)

// A Stage is the position of a policy in the order in which reasons are chosen.
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

// A Policy is one part of a gate. The functions of this package make the usual ones; [Custom] makes one of a function.
type Policy struct {
	// Name is how decisions name the policy.
	Name  string
	Stage Stage
	// Judge returns the decision of the policy about a call, or false to abstain. It must be pure, and safe
	// for concurrent use; it must neither change nor keep what it is given. A decision that allows
	// or asks may replace the input; all policies then judge the new input. Nil abstains.
	Judge func(c *Call, f *Facts) (event.Decision, bool)
	// When reports whether the policy applies at the moment of a decision: Judge and Otherwise are skipped
	// while it returns false. It must be fast and safe for concurrent use; one that panics denies. Nil means
	// always. It is for policies that come during a run, with the tools that they are about.
	When func() bool

	// Tools are registries that the gate is to know, by the key of the MCP server that serves them.
	Tools map[string]Lookup
	// Catalogue has the agent's own tools, for the gate to know.
	Catalogue *tool.Catalogue
	// Otherwise is the rule for calls about which all policies abstain. The strictest applies; nil means no rule.
	Otherwise *Otherwise
	// Permissions are set by [FromCapabilities], for the agent's own permission mode.
	Permissions *Permissions
	// leaves is set by [LeaveToAgent].
	leaves bool
	// knownOnly denies calls of tools of the agent that are not in its catalogue, unless a policy allows them.
	knownOnly bool
	// compile makes Judge, where that takes the catalogue.
	compile func(*Gate) (judge func(*Call, *Facts) (event.Decision, bool), err error)
	// names are those of tools that the policy lists, some with arguments.
	names []string
	// formerServer is a further key of the server of Tools.
	formerServer string
	// err is a mistake in the declaration, for New to report.
	err error
}

// Otherwise is the rule for calls that no policy knows.
type Otherwise struct {
	Verdict event.Verdict
	// Reason gives the text of a denial or a question. Nil means "Tool not allowed: <name>" for denials.
	Reason func(name string) string
}

// A Gate decides about tool calls. It is immutable.
type Gate struct {
	policies []Policy
	servers  []server
	keys     []string // of the servers, the longest first
	agent    *tool.Catalogue
}

type server struct {
	key, former string
	lookup      Lookup
}

// New makes a gate. A gate without policies denies every call. The error names every policy that is wrong.
func New(policies ...Policy) (*Gate, error) {
	g := &Gate{}
	var errs []error
	for _, p := range policies {
		g.know(p.Tools, p.formerServer)
		if p.Catalogue != nil && g.agent != nil && p.Catalogue != g.agent {
			errs = append(errs, fmt.Errorf("gate: there are two catalogues, of %s and %s; make a gate for each agent", g.agent.Agent, p.Catalogue.Agent))
		}
		if p.Catalogue != nil {
			g.agent = p.Catalogue
		}
	}
	for _, p := range policies {
		err := p.check()
		if err == nil && p.compile != nil {
			p.Judge, err = p.compile(g)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("gate: policy %s: %w", p.Name, err))
		}
		g.policies = append(g.policies, p)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...) // a gate that lacks a policy would let too much pass
	}
	slices.SortStableFunc(g.policies, func(a, b Policy) int { return cmp.Compare(a.Stage, b.Stage) })
	slices.SortFunc(g.keys, func(a, b string) int { return len(b) - len(a) })
	return g, nil
}

// Must is [New] for gates written into a program; it panics on an error.
func Must(policies ...Policy) *Gate {
	g, err := New(policies...)
	if err != nil {
		panic(err)
	}
	return g
}

func (p *Policy) check() error {
	if p.err != nil {
		return p.err
	}
	if o := p.Otherwise; o != nil && o.Verdict > event.Allow {
		return fmt.Errorf("Otherwise.Verdict is %d; it is Deny, Ask or Allow", o.Verdict)
	}
	for _, tools := range p.Tools {
		if err := checkLookup(tools); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) holds() bool { return p.When == nil || p.When() }

// stricter returns the rule that allows less; nil is no rule.
func stricter(a, b *Otherwise) *Otherwise {
	if a == nil || b != nil && b.Verdict < a.Verdict {
		return b
	}
	return a
}

func (g *Gate) know(tools map[string]Lookup, former string) {
	for key, lookup := range tools {
		key = serverKey(key)
		g.servers = append(g.servers, server{key, former, lookup})
		if key != "" && !slices.Contains(g.keys, key) {
			g.keys = append(g.keys, key)
		}
	}
}

// Decide makes the decision about a call.
func (g *Gate) Decide(call event.ToolCall, f Facts) (d event.Decision) {
	defer func() {
		if r := recover(); r != nil { // of a Lookup or of an Otherwise; judge catches the policies
			d = event.Decision{Reason: fmt.Sprintf(gateFailed, r), Policy: "gate"}
		}
		d.CallID, d.Tool, d.Chain = call.ID, call.Name, nil
	}()
	c := g.canonical(call, "")
	return g.decide(&c, &f)
}

// decide judges a call whose tool is known. A call that names another tool is judged as both, and the stricter applies.
func (g *Gate) decide(c *Call, f *Facts) event.Decision {
	d := g.decideAs(c, f)
	if c.claimed == nil || d.Verdict == event.Deny {
		return d
	}
	claimed := *c.claimed
	claimed.Input, claimed.Again, claimed.chain = c.Input, c.Again, c.chain
	other := g.decideAs(&claimed, f)
	if other.Verdict != event.Deny && !bytes.Equal(d.Input, other.Input) {
		return c.decided(event.Decision{Policy: "gate", Reason: fmt.Sprintf(candidatesDisagree, c.Name)})
	}
	if other.Verdict < d.Verdict {
		return other
	}
	return d
}

func (g *Gate) decideAs(c *Call, f *Facts) event.Decision {
	j := judgements.Get().(*judgement)
	defer j.close()
	j.open(c, f)
	d, decided := g.judge(j)
	switch {
	case !decided && j.knownOnly && c.unknown() && c.agent == nil:
		return c.decided(event.Decision{Policy: NoPolicy, Reason: fmt.Sprintf(agentNotKnown, c.Name)})
	case !decided && j.knownOnly && c.unknown():
		return c.decided((&Otherwise{}).decide(&j.call))
	case !decided:
		return c.decided(j.otherwise.decide(&j.call))
	case d.Input != nil:
		return g.rejudge(j, d)
	}
	return d
}

// rejudge lets all policies judge the input that one of them has written. None may change it again:
// policies that go on rewriting cannot be satisfied. The stricter of both decisions holds.
func (g *Gate) rejudge(j *judgement, first event.Decision) event.Decision {
	j.call.rewrite(first.Input)
	j.call.second = true
	second, decided := g.judge(j)
	switch {
	case !decided:
		return first
	case second.Verdict == event.Deny:
		return second
	case second.Input != nil:
		return j.call.decided(event.Decision{Policy: "gate", Reason: fmt.Sprintf(inputsDisagree, j.call.Name)})
	case second.Verdict < first.Verdict:
		second.Input = first.Input
		return second
	}
	return first
}

// judge asks the policies in order. It stops at the first denial, and makes one of a panic. It reports false if all abstain,
// and the judgement then has the rule for that. The input of the decision is set if a policy rewrote it, and the call's
// input with it. When is called once for each policy, so that its Otherwise never counts without its Judge.
func (g *Gate) judge(j *judgement) (best event.Decision, decided bool) {
	var (
		c         = &j.call
		asked     *Policy
		rewritten json.RawMessage
	)
	j.otherwise, j.knownOnly = nil, false
	defer func() {
		if r := recover(); r != nil {
			best, decided = c.decided(event.Decision{Reason: fmt.Sprintf(policyFailed, asked.Name, r), Policy: asked.Name}), true
		}
	}()
	for i := range g.policies {
		asked = &g.policies[i]
		if !asked.holds() {
			continue
		}
		j.otherwise = stricter(j.otherwise, asked.Otherwise)
		j.knownOnly = j.knownOnly || asked.knownOnly
		if asked.Judge == nil {
			continue
		}
		d, ok := asked.Judge(c, &j.facts)
		if !ok {
			c.chain.abstained(c, asked.Name)
			continue
		}
		d.Policy = cmp.Or(d.Policy, asked.Name)
		if d.Verdict != event.Ask && d.Verdict != event.Allow {
			return c.decided(event.Decision{Verdict: event.Deny, Reason: cmp.Or(d.Reason, fmt.Sprintf(deniedBy, d.Policy)), Policy: d.Policy}), true
		}
		c.chain.add(c, &d)
		if d.Input != nil && !bytes.Equal(d.Input, c.Input) {
			c.rewrite(d.Input) // later policies judge what would run
			rewritten = d.Input
		}
		if !decided || d.Verdict < best.Verdict {
			best, decided = d, true
		}
	}
	best.Input = rewritten
	return best, decided
}

// unknown reports whether a call is of a tool of the agent whose effects are unknown.
func (c *Call) unknown() bool { return c.Origin == Unknown && c.runs == nil }

// howToAllow ends the reason of a denial of such a tool.
func (c *Call) howToAllow() string {
	if c.agent == nil || !c.unknown() {
		return ""
	}
	return fmt.Sprintf(toolNotKnown, c.agent.Agent)
}

// NoPolicy is the policy of decisions about which all policies abstain.
const NoPolicy = "otherwise"

// decide applies the rule; nil denies.
func (o *Otherwise) decide(c *Call) event.Decision {
	if o == nil {
		o = &Otherwise{}
	}
	d := event.Decision{Verdict: o.Verdict, Policy: NoPolicy}
	switch {
	case o.Verdict == event.Allow:
	case o.Reason != nil:
		d.Reason = o.Reason(c.Name)
	case o.Verdict == event.Ask:
		d.Reason = fmt.Sprintf(noPolicyKnows, c.Name)
	default:
		d.Reason = toolNotAllowed + c.Name + c.howToAllow()
	}
	return d
}
