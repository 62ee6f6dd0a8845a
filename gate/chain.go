// SPDX-License-Identifier: Apache-2.0

package gate

import "github.com/drover-agents/drover/event"

// A chain collects the verdicts about one call, in the order in which they are given. A nil chain collects none.
type chain struct{ verdicts []event.PolicyVerdict }

// newChain makes a chain with room for each policy and for an approver or a rule for calls about which all abstain.
func newChain(policies int) *chain {
	return &chain{make([]event.PolicyVerdict, 0, policies+1)}
}

func (ch *chain) add(c *Call, d *event.Decision) {
	if ch != nil {
		ch.verdicts = appendVerdict(ch.verdicts, d)
		ch.mark(c)
	}
}

func (ch *chain) abstained(c *Call, policy string) {
	if ch != nil {
		ch.verdicts = append(ch.verdicts, event.PolicyVerdict{Policy: policy})
		ch.mark(c)
	}
}

// mark notes which input and which tool of the call the last verdict is about.
func (ch *chain) mark(c *Call) {
	last := &ch.verdicts[len(ch.verdicts)-1]
	last.Again, last.Tool = c.Again || c.second, c.as
}

func appendVerdict(to []event.PolicyVerdict, d *event.Decision) []event.PolicyVerdict {
	return append(to, event.PolicyVerdict{Policy: d.Policy, Verdict: new(d.Verdict), Reason: d.Reason})
}

// decided adds a decision to the chain of the call and returns it.
func (c *Call) decided(d event.Decision) event.Decision {
	c.chain.add(c, &d)
	return d
}
