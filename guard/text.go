// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"strings"

	"github.com/drover-agents/drover/internal/safetext"
)

// String lists the limits: "10,000 tokens, $0.50, until 2026-11-18T20:00:00Z".
func (b Budget) String() string {
	var limits []string
	for _, l := range []struct {
		n    int64
		unit string
	}{{b.MaxTotalTokens, "token"}, {b.MaxInputTokens, "input token"}, {b.MaxOutputTokens, "output token"}, {b.MaxRequests, "request"}} {
		if l.n != 0 {
			limits = append(limits, safetext.Plural(l.n, l.unit))
		}
	}
	if b.MaxCostUSD != 0 {
		limits = append(limits, fmt.Sprintf("$%.2f", b.MaxCostUSD))
	}
	if !b.Deadline.IsZero() {
		limits = append(limits, "until "+b.Deadline.String())
	}
	if len(limits) == 0 {
		return "no limit"
	}
	return strings.Join(limits, ", ")
}

// String is what was consumed: "1,204 tokens (1,100 in, 104 out), $0.0060, 2 requests".
func (u Usage) String() string {
	text := fmt.Sprintf("%s (%s in, %s out), $%.4f", safetext.Plural(u.TotalTokens(), "token"), safetext.Thousands(u.InputTokens), safetext.Thousands(u.OutputTokens), u.CostUSD)
	if u.Requests > 0 {
		text += ", " + safetext.Plural(u.Requests, "request")
	}
	return text
}

// String is "done", or "not done" and the feedback.
func (c Completion) String() string {
	text := "done"
	switch {
	case c.Skipped:
		text = "not checked"
	case !c.Done:
		text = "not done"
	}
	if feedback := c.Missing(); feedback != "" {
		text += ": " + feedback
	}
	return text
}

// Missing is the feedback as plain text, without the tags that mark it for the model.
func (c Completion) Missing() string {
	return strings.TrimSpace(strings.NewReplacer("<blocker>", "", "</blocker>", "").Replace(c.Feedback))
}
