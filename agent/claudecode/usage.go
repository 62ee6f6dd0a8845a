// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

// A usageMeter adds up what the results of a run report. The zero value is ready to use.
//
// Tokens come from the totals by model alone: they include subagents, which the usage of the main loop leaves out. The
// totals of a resumed session include what it had used before, from which [claude.CostTracker] takes the share of this run.
type usageMeter struct {
	totals claude.CostTracker // of tokens
	costs  claude.CostTracker // of money, which must not suffer from a malformed count

	broken  bool // an entry was malformed: no token count can be trusted
	counted bool // some result had totals by model
	priced  bool // some result had a cost

	noCache, noThinking, noCost bool // missing in some entry

	last claude.Totals // the running totals of the last result
}

func (u *usageMeter) next() usageMeter {
	return usageMeter{last: u.last, totals: claude.CostTracker{Before: claude.Totals{Models: u.last.Models}}, costs: claude.CostTracker{Before: claude.Totals{CostUSD: u.last.CostUSD}}}
}

// counters are the counts of a model by their names on the wire, in both spellings, and where they go.
var counters = []struct {
	name, snake string
	required    bool
	of          func(*claude.ModelUsage) *int
	absent      func(*usageMeter) *bool
}{
	{"inputTokens", "input_tokens", true, func(u *claude.ModelUsage) *int { return &u.InputTokens }, nil},
	{"outputTokens", "output_tokens", true, func(u *claude.ModelUsage) *int { return &u.OutputTokens }, nil},
	{"cacheReadInputTokens", "cache_read_input_tokens", false, func(u *claude.ModelUsage) *int { return &u.CacheReadInputTokens }, func(m *usageMeter) *bool { return &m.noCache }},
	{"cacheCreationInputTokens", "cache_creation_input_tokens", false, func(u *claude.ModelUsage) *int { return &u.CacheCreationInputTokens }, func(m *usageMeter) *bool { return &m.noCache }},
	{"thinkingTokens", "thinking_tokens", false, func(u *claude.ModelUsage) *int { return &u.ThinkingTokens }, func(m *usageMeter) *bool { return &m.noThinking }},
	{"webSearchRequests", "web_search_requests", false, func(u *claude.ModelUsage) *int { return &u.WebSearchRequests }, nil},
}

// observe takes the totals of a result. It reads the line itself, since the typed message has zero for what is malformed.
func (u *usageMeter) observe(raw json.RawMessage) {
	var line fields
	if json.Unmarshal(raw, &line) != nil {
		return
	}
	models, _ := u.models(line, "modelUsage", "model_usage")
	share, shareOK := u.models(line, "model_usage_since_last_result")
	u.counted = u.counted || models != nil
	u.totals.Observe(&claude.ResultMessage{ModelUsage: models, ModelUsageSinceLastResult: share})
	if models != nil {
		u.last.Models = models
	}

	cost, there, ok := number(line, "total_cost_usd", "totalCostUsd")
	if !there || !ok || !shareOK {
		return
	}
	u.priced, u.last.CostUSD = true, cost
	seen := &claude.ResultMessage{TotalCostUSD: cost}
	if share != nil {
		var all claude.ModelUsage
		for _, m := range share {
			all.CostUSD += m.CostUSD
		}
		seen.ModelUsageSinceLastResult = map[string]claude.ModelUsage{"": all}
	}
	u.costs.Observe(seen)
}

// reset records that the conversation starts again from scratch, and its totals with it.
func (u *usageMeter) reset(m *claude.ConversationReset) {
	u.totals.Observe(m)
	u.costs.Observe(m)
	u.last = claude.Totals{}
}

// models reads totals by model; nil if they are missing. It is false if they are malformed.
func (u *usageMeter) models(line fields, names ...string) (map[string]claude.ModelUsage, bool) {
	raw, there, ok := field(line, names...)
	if !there {
		return nil, true
	}
	var entries fields
	ok = ok && json.Unmarshal(raw, &entries) == nil
	models := make(map[string]claude.ModelUsage, len(entries))
	for name, entry := range entries {
		m, good := u.model(entry)
		models[name], ok = m, ok && good
	}
	u.broken = u.broken || !ok
	return models, ok
}

func (u *usageMeter) model(raw json.RawMessage) (m claude.ModelUsage, ok bool) {
	var entry fields
	if json.Unmarshal(raw, &entry) != nil || entry == nil {
		return m, false
	}
	for _, c := range counters {
		v, there, ok := number(entry, c.name, c.snake)
		if !ok || c.required && !there || v != math.Trunc(v) {
			return m, false
		}
		*c.of(&m) = int(v)
		if !there && c.absent != nil {
			*c.absent(u) = true
		}
	}
	cost, there, ok := number(entry, "costUSD", "cost_usd")
	u.noCost = u.noCost || !there
	m.CostUSD, m.Provider = cost, entry.text("provider")
	return m, ok && m.ThinkingTokens <= m.OutputTokens
}

// field is the value of the names, which must agree where several are there. Null counts as absent.
func field(line fields, names ...string) (raw json.RawMessage, there, ok bool) {
	ok = true
	for _, name := range names {
		v := line[name]
		if len(v) == 0 || string(v) == "null" {
			continue
		}
		ok = ok && (!there || string(v) == string(raw))
		raw, there = v, true
	}
	return raw, there, ok
}

// number is a field that must be a number from zero on, small enough to be exact.
func number(line fields, names ...string) (v float64, there, ok bool) {
	raw, there, ok := field(line, names...)
	if !there || !ok {
		return 0, there, ok
	}
	if json.Unmarshal(raw, &v) != nil || v < 0 || v > 1<<53 {
		return 0, true, false
	}
	return v, true, true
}

// report is what the run used. partial means that something may not have been counted; succeeded, that
// the last result was not that of a failure, which may report nothing because it does not know.
func (u *usageMeter) report(toolUses int, partial, succeeded bool) event.Usage {
	models, cost := u.totals.Sum().Models, u.costs.Sum().CostUSD
	usage := event.Usage{ToolUses: toolUses}
	nothing := cost == 0 && len(models) == 0
	if nothing && !succeeded {
		return usage
	}
	if u.priced {
		usage.Cost = costOf(cost)
	}
	if u.counted && !u.broken {
		usage.Tokens = u.tokens(models, partial)
	}
	return usage
}

// costOf rounds away what floating point left over when totals were taken from each other.
func costOf(usd float64) *event.Cost {
	const precision = 1e12
	return &event.Cost{USD: max(0, math.Round(usd*precision)/precision), Source: event.CostAgentEstimate}
}

// tokens are those of all models; nil if some of the totals have shrunk.
func (u *usageMeter) tokens(models map[string]claude.ModelUsage, partial bool) *event.Tokens {
	coverage := event.CoverageComplete
	if partial {
		coverage = event.CoveragePartial
	}
	if len(models) == 0 {
		return &event.Tokens{Coverage: coverage, Totals: u.count(claude.ModelUsage{})}
	}
	var records []event.TokenRecord
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		r := event.TokenRecord{Model: name, Provider: m.Provider, Tokens: u.count(m)}
		if !u.noCost {
			r.Cost = costOf(m.CostUSD)
		}
		if m.WebSearchRequests > 0 {
			r.PricedUnits = []event.PricedUnit{{Name: "web_search_request", Quantity: int64(m.WebSearchRequests)}}
		}
		records = append(records, r)
	}
	tokens, _ := event.NewTokens(coverage, records...)
	return tokens
}

// count divides the tokens as far as all entries have the parts.
func (u *usageMeter) count(m claude.ModelUsage) event.TokenCount {
	in, read, write := int64(m.InputTokens), int64(m.CacheReadInputTokens), int64(m.CacheCreationInputTokens)
	out, thinking := int64(m.OutputTokens), int64(m.ThinkingTokens)
	c := event.TokenCount{
		Input:  event.InputTokens{Total: in + read + write},
		Output: event.OutputTokens{Total: out},
	}
	if !u.noCache {
		c.Input.Uncached, c.Input.CacheRead, c.Input.CacheWrite = &in, &read, &write
	}
	if !u.noThinking {
		c.Output.Visible, c.Output.Reasoning = new(out-thinking), &thinking
	}
	return c
}
