// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"

	"github.com/drover-agents/drover/event"
)

// Custom makes a policy of a function, which returns its decision about a call, or false to abstain. It
// must be pure and safe for concurrent use. It is asked after all other policies.
func Custom(name string, judge func(c *Call, f *Facts) (event.Decision, bool)) Policy {
	p := Policy{Name: name, Stage: StageCustom, Judge: judge}
	switch {
	case name == "":
		p.Name, p.err = "custom", errors.New("the name is empty; decisions carry it")
	case judge == nil:
		p.err = errors.New("the function is nil")
	}
	return p
}

// Default decides about calls about which all other policies abstain. Without it they are denied,
// unless another policy has a rule for them; the strictest rule holds.
func Default(v event.Verdict) Policy {
	return Policy{Name: "default", Stage: StageCustom, Otherwise: &Otherwise{Verdict: v}}
}

// LeaveToAgent is Default(event.Allow) for an agent that may have a permission mode of its own: where the agent is given
// one, that decides about calls about which all policies abstain. Tools that the gate knows are allowed.
func LeaveToAgent() Policy {
	p := Policy{Name: "agent", Stage: StageCustom, Otherwise: &Otherwise{Verdict: event.Allow}, leaves: true}
	p.Judge = func(c *Call, _ *Facts) (event.Decision, bool) {
		return event.Decision{Verdict: event.Allow}, c.Origin == Registered
	}
	return p
}
