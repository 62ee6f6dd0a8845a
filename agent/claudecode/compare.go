// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"maps"
	"math"
	"slices"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
)

// UsageDiffers is the key in the metadata of the done event that has a [UsageDifference], if the
// CLI's count of the run and the gateway's do not agree. The usage of the event is the gateway's then.
const UsageDiffers = "usageDiffers"

// A UsageDifference has the two counts of a run that do not agree. In tokens: the CLI reports less than the answers that
// came to their end, as when a command in the cell called the model by itself; or more than all that has passed the gateway;
// or the agent went away from a call, whose cost only the gateway knows. Another answer that was cut may be in the CLI's
// count or not, and is not a difference. In dollars: the tokens agree, all models have a price, and the costs are more than
// one in a hundred apart. A run of which the CLI's own count is partial, or missing, is not compared.
type UsageDifference struct {
	// CLI is the count of the CLI.
	CLI Tokens `json:"cli"`
	// Gateway is all that the gateway has counted, and Whole the part of it in answers that came to their end.
	Gateway Tokens `json:"gateway"`
	Whole   Tokens `json:"whole"`
	// Aborted is the part of calls that the agent did not wait for.
	Aborted Tokens `json:"aborted,omitzero"`
	// CLIUSD and GatewayUSD are the costs. The gateway knows none of models without a price.
	CLIUSD     float64 `json:"cliUsd"`
	GatewayUSD float64 `json:"gatewayUsd"`
}

// meter makes the gateway's count the usage of the run. The CLI's own stays where it is the same, since it
// has more details. Whole is the part in answers that came to their end, aborted that in calls which the agent has
// left. If comparable is false, the CLI's count may include tokens of an earlier turn.
func (e *ending) meter(counted gateway.Usage, whole, aborted Tokens, comparable bool) {
	own, all := e.done.Usage, tokensOf(counted)
	complete := own.Tokens != nil && own.Tokens.Coverage == event.CoverageComplete
	var cli Tokens
	if own.Tokens != nil {
		cli = Tokens{own.Tokens.Totals.Input.Total, own.Tokens.Totals.Output.Total}
	}
	sameCost := len(counted.Unpriced) > 0 || math.Abs(own.TotalCostUSD()-counted.Total.USD) <= costTolerance*counted.Total.USD
	if complete && comparable {
		if cli == all && sameCost && aborted == (Tokens{}) {
			return
		}
		if cli == all || aborted != (Tokens{}) || !cli.within(whole, all) {
			e.describe(UsageDiffers, UsageDifference{
				CLI: cli, Gateway: all, Whole: whole, Aborted: aborted, CLIUSD: own.TotalCostUSD(), GatewayUSD: counted.Total.USD,
			})
		}
	}
	e.done.Usage.Tokens, e.done.Usage.Cost = nil, nil
	if counted.Total.Requests == 0 {
		return
	}
	coverage := event.CoveragePartial
	if complete {
		coverage = event.CoverageComplete
	}
	tokens, err := event.NewTokens(coverage, recordsOf(counted)...)
	if err != nil {
		return
	}
	e.done.Usage.Tokens, e.done.Usage.Cost = tokens, costOf(counted.Total.USD)
	if len(counted.Unpriced) > 0 && own.TotalCostUSD() > counted.Total.USD {
		e.done.Usage.Cost = own.Cost // the gateway does not know better
	}
}

// costTolerance is how far two costs of the same tokens may be apart: the lists of prices are two.
const costTolerance = 0.01

func recordsOf(counted gateway.Usage) []event.TokenRecord {
	var records []event.TokenRecord
	for _, name := range slices.Sorted(maps.Keys(counted.ByModel)) {
		n := counted.ByModel[name]
		written := n.CacheWrite5m + n.CacheWrite1h
		r := event.TokenRecord{Model: name, Requests: n.Requests, Cost: costOf(n.USD), Tokens: event.TokenCount{
			Input:  event.InputTokens{Total: n.AllInput(), Uncached: &n.Input, CacheRead: &n.CacheRead, CacheWrite: &written},
			Output: event.OutputTokens{Total: n.Output},
		}}
		if n.WebSearches > 0 {
			r.PricedUnits = []event.PricedUnit{{Name: "web_search_request", Quantity: n.WebSearches}}
		}
		records = append(records, r)
	}
	return records
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
