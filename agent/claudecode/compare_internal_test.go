// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"testing"

	"github.com/drover-agents/drover/event"
)

func TestTheTwoCountsAreCompared(t *testing.T) {
	said := func(in, out int64, coverage event.Coverage) *event.Tokens {
		return &event.Tokens{Coverage: coverage, Totals: event.TokenCount{Input: event.InputTokens{Total: in}, Output: event.OutputTokens{Total: out}}}
	}
	for _, tc := range []struct {
		name           string
		said           *event.Tokens
		whole, counted Tokens
		differs        bool
		aborted        Tokens
	}{
		{"the same", said(10, 5, event.CoverageComplete), Tokens{10, 5}, Tokens{10, 5}, false, Tokens{}},
		{"a cut answer that the CLI counts", said(20, 6, event.CoverageComplete), Tokens{10, 5}, Tokens{20, 6}, false, Tokens{}},
		{"a cut answer that it does not", said(10, 5, event.CoverageComplete), Tokens{10, 5}, Tokens{20, 6}, false, Tokens{}},
		{"less input than was answered", said(9, 5, event.CoverageComplete), Tokens{10, 5}, Tokens{10, 5}, true, Tokens{}},
		{"less output", said(10, 4, event.CoverageComplete), Tokens{10, 5}, Tokens{10, 5}, true, Tokens{}},
		{"more than has passed", said(11, 5, event.CoverageComplete), Tokens{10, 5}, Tokens{10, 5}, true, Tokens{}},
		{"a part only", said(1, 1, event.CoveragePartial), Tokens{10, 5}, Tokens{10, 5}, false, Tokens{}},
		{"nothing", nil, Tokens{10, 5}, Tokens{10, 5}, false, Tokens{}},
		{"a call that the agent left", said(10, 5, event.CoverageComplete), Tokens{10, 5}, Tokens{20, 6}, true, Tokens{10, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &ending{done: event.Done{Usage: event.Usage{Tokens: tc.said}}}
			e.compare(tc.whole, tc.aborted, tc.counted)
			if got := e.last.Metadata[UsageDiffers] != nil; got != tc.differs {
				t.Errorf("got %s, want a difference: %t", e.last.Metadata[UsageDiffers], tc.differs)
			}
		})
	}
}
