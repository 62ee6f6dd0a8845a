// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"maps"
	"math"
	"slices"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
)

// UsageDiffers is the key in the metadata of the done event under which a [UsageDifference] stands, if the
// CLI's count of the run and the gateway's do not agree. Neither is corrected.
const UsageDiffers = "usageDiffers"

// A UsageDifference tells the two counts of a run that do not agree: the CLI says less than the answers
// that came to their end, as when a command in the cell called the model by itself; or more than all that
// has passed the gateway; or the agent went away from a call, whose cost only the gateway knows. Another answer
// that was cut may be in the CLI's count or not, and is no difference. A run of which the CLI's own count is partial, or missing, is not compared.
type UsageDifference struct {
	// CLI is what the CLI says.
	CLI Tokens `json:"cli"`
	// Gateway is all that the gateway has counted, and Whole the part of it in answers that came to their
	// end.
	Gateway Tokens `json:"gateway"`
	Whole   Tokens `json:"whole"`
	// Aborted is the part of calls that the agent did not wait for.
	Aborted Tokens `json:"aborted,omitzero"`
}

// compare adds a difference between the counts, if there is one.
func (e *ending) compare(whole, aborted, counted Tokens) {
	said := e.done.Usage.Tokens
	if said == nil || said.Coverage != event.CoverageComplete {
		return
	}
	cli := Tokens{said.Totals.Input.Total, said.Totals.Output.Total}
	if aborted != (Tokens{}) || !cli.within(whole, counted) {
		e.describe(UsageDiffers, UsageDifference{CLI: cli, Gateway: counted, Whole: whole, Aborted: aborted})
	}
}

func (t Tokens) within(least, most Tokens) bool {
	return t.Input >= least.Input && t.Input <= most.Input && t.Output >= least.Output && t.Output <= most.Output
}

func tokensOf(u gateway.Usage) Tokens { return Tokens{u.Total.AllInput(), u.Total.Output} }

func (t Tokens) plus(o Tokens) Tokens { return Tokens{t.Input + o.Input, t.Output + o.Output} }

// since is what came to earlier tokens, never less than nothing.
func (t Tokens) since(before Tokens) Tokens {
	return Tokens{max(0, t.Input-before.Input), max(0, t.Output-before.Output)}
}

// usageSince is what the gateway has counted after an earlier count.
func usageSince(now, before gateway.Usage) gateway.Usage {
	return gateway.Usage{
		Total:   countSince(now.Total, before.Total),
		ByModel: countsSince(now.ByModel, before.ByModel), ByAgent: countsSince(now.ByAgent, before.ByAgent),
		Unpriced: slices.Clone(now.Unpriced), Unmetered: now.Unmetered - before.Unmetered,
		Estimated: now.Estimated - before.Estimated,
	}
}

func countsSince(now, before map[string]gateway.Count) map[string]gateway.Count {
	since := maps.Clone(now)
	for name, count := range now {
		if since[name] = countSince(count, before[name]); since[name] == (gateway.Count{}) {
			delete(since, name)
		}
	}
	return since
}

func countSince(now, before gateway.Count) gateway.Count {
	return gateway.Count{
		Requests: now.Requests - before.Requests,
		Tokens: gateway.Tokens{
			Input: now.Input - before.Input, CacheRead: now.CacheRead - before.CacheRead,
			CacheWrite5m: now.CacheWrite5m - before.CacheWrite5m, CacheWrite1h: now.CacheWrite1h - before.CacheWrite1h,
			Output: now.Output - before.Output, Thinking: now.Thinking - before.Thinking, WebSearches: now.WebSearches - before.WebSearches,
		},
		USD: math.Round((now.USD-before.USD)*1e9) / 1e9, // the gateway counts in billionths
	}
}
