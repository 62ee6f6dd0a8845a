// SPDX-License-Identifier: Apache-2.0

package claude

import "maps"

// Totals is an amount of money and of tokens by model.
type Totals struct {
	CostUSD float64
	Models  map[string]ModelUsage
}

// A CostTracker computes amounts per turn from the running totals of results. Give it every
// message of one conversation, in order, or at least all of type [ResultMessage] and
// [ConversationReset]. The zero value is ready to use. It is not safe for use by several goroutines.
type CostTracker struct {
	// Before is the cost of the session before the first result that is observed. It is needed only
	// for a resumed session whose CLI continues a saved total and does not report the share of the
	// turn: 2.1.325 reports it, 2.1.197 starts again at zero.
	Before Totals

	started bool
	last    Totals // the running totals of the last result
	sum     Totals
}

// Observe returns what the turn cost if m is the result of one. Running totals that became smaller
// count from zero: CLIs before 2.1.325 restart them without a message.
func (t *CostTracker) Observe(m Message) (turn Totals, ok bool) {
	switch m := m.(type) {
	case *ConversationReset:
		t.started, t.last = true, Totals{}
	case *ResultMessage:
		return t.result(m), true
	}
	return Totals{}, false
}

// Sum returns everything that was observed, over all resets.
func (t *CostTracker) Sum() Totals { return Totals{t.sum.CostUSD, maps.Clone(t.sum.Models)} }

func (t *CostTracker) result(m *ResultMessage) Totals {
	if m.Failed() && m.TotalCostUSD == 0 && len(m.ModelUsage) == 0 {
		return Totals{} // a CLI that did not start knows no totals
	}
	now := Totals{m.TotalCostUSD, m.ModelUsage}
	if !t.started {
		t.started, t.last = true, t.Before
		if m.ModelUsageSinceLastResult != nil {
			t.last = now.sub(totalsOf(m.ModelUsageSinceLastResult))
		}
	}
	if now.below(t.last) {
		t.last = Totals{}
	}
	turn := now.sub(t.last)
	t.last = now
	t.sum = t.sum.add(turn)
	return turn
}

func totalsOf(models map[string]ModelUsage) Totals {
	t := Totals{Models: models}
	for _, u := range models {
		t.CostUSD += u.CostUSD
	}
	return t
}

// below reports whether a running total shrank.
func (t Totals) below(last Totals) bool {
	const rounding = 1e-9
	if t.CostUSD < last.CostUSD-rounding {
		return true
	}
	for name, u := range last.Models {
		now := t.Models[name]
		if now.InputTokens < u.InputTokens || now.OutputTokens < u.OutputTokens {
			return true
		}
	}
	return false
}

func (t Totals) sub(last Totals) Totals {
	out := Totals{CostUSD: t.CostUSD - last.CostUSD}
	for name, u := range t.Models {
		if diff := u.sub(last.Models[name]); diff.counts() {
			if out.Models == nil {
				out.Models = map[string]ModelUsage{}
			}
			out.Models[name] = diff
		}
	}
	return out
}

func (t Totals) add(u Totals) Totals {
	out := Totals{CostUSD: t.CostUSD + u.CostUSD, Models: map[string]ModelUsage{}}
	maps.Copy(out.Models, t.Models)
	for name, v := range u.Models {
		out.Models[name] = v.add(out.Models[name])
	}
	return out
}
