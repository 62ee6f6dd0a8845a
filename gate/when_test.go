// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"

	"github.com/drover-agents/drover/event"
)

// A policy that comes during a run judges from the moment on at which its time has come.
func TestWhen_PolicyAppliesFromItsMoment(t *testing.T) {
	later := func(p Policy, now *bool) Policy {
		p.When = func() bool { return *now }
		return p
	}
	for name, c := range map[string]struct {
		policy        func(now *bool) []Policy
		before, after event.Verdict
	}{
		"a denial":              {func(now *bool) []Policy { return []Policy{Default(event.Allow), later(DenyTools("x"), now)} }, event.Allow, event.Deny},
		"a permission":          {func(now *bool) []Policy { return []Policy{later(AllowTools("x"), now)} }, event.Deny, event.Allow},
		"a looser rule":         {func(now *bool) []Policy { return []Policy{later(Default(event.Allow), now)} }, event.Deny, event.Allow},
		"a stricter rule":       {func(now *bool) []Policy { return []Policy{Default(event.Allow), later(Default(event.Ask), now)} }, event.Allow, event.Ask},
		"a rule that is beaten": {func(now *bool) []Policy { return []Policy{Default(event.Deny), later(Default(event.Allow), now)} }, event.Deny, event.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			var now bool
			g := ForClaude(c.policy(&now)...)
			decide := func() event.Verdict { return g.Decide(event.ToolCall{Name: "x"}, Facts{}).Verdict }
			if got := decide(); got != c.before {
				t.Errorf("before its time: %v, want %v", got, c.before)
			}
			now = true
			if got := decide(); got != c.after {
				t.Errorf("after: %v, want %v", got, c.after)
			}
		})
	}
}

// A policy whose time comes in the middle of a decision must not allow by its rule what it denies by its
// judgement: it allows the call neither before nor after.
func TestWhen_PolicyThatStartsDuringADecisionIsAtomic(t *testing.T) {
	asked := 0
	p := DenyTools("x")
	p.Otherwise = &Otherwise{Verdict: event.Allow}
	p.When = func() bool { asked++; return asked > 1 }
	g := ForClaude(p)
	for i := range 2 {
		if got := g.Decide(event.ToolCall{Name: "x"}, Facts{}); got.Verdict != event.Deny {
			t.Errorf("decision %d: %+v, want a denial", i+1, got)
		}
	}
}

func TestWhen_PanicDenies(t *testing.T) {
	for name, p := range map[string]Policy{"judge": DenyTools("y"), "otherwise": Default(event.Allow)} {
		t.Run(name, func(t *testing.T) {
			p.When = func() bool { panic("oh") }
			if got := ForClaude(Default(event.Allow), p).Decide(event.ToolCall{Name: "x"}, Facts{}); got.Verdict != event.Deny {
				t.Errorf("got %+v, want a denial", got)
			}
		})
	}
}
