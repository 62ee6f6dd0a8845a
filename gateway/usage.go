// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"maps"
	"slices"
	"sync"

	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safetext"
)

// MainAgent is the name in [Usage.ByAgent] of calls that name no agent: those of the main loop.
const MainAgent = "main"

// Tokens are counted as the API reports them. Input, CacheRead, CacheWrite5m and CacheWrite1h exclude
// each other; their sum is what the model read.
type Tokens struct {
	Input        int64 `json:"input"`
	CacheRead    int64 `json:"cacheRead"`
	CacheWrite5m int64 `json:"cacheWrite5m"` // kept for five minutes; also where the API does not report the time
	CacheWrite1h int64 `json:"cacheWrite1h"` // kept for an hour
	Output       int64 `json:"output"`
	// Thinking is the part of Output that was thought, where the API reports it.
	Thinking int64 `json:"thinking,omitzero"`
	// WebSearches are searches that the API made for the model. They are not tokens, but have a price.
	WebSearches int64 `json:"webSearches,omitzero"`
}

// String is both directions: "1,204 in, 96 out".
func (t Tokens) String() string {
	return safetext.Thousands(t.AllInput()) + " in, " + safetext.Thousands(t.Output) + " out"
}

// AllInput is what the model read, cached or not.
func (t Tokens) AllInput() int64 { return t.Input + t.CacheRead + t.CacheWrite5m + t.CacheWrite1h }

func (t Tokens) plus(o Tokens) Tokens {
	return Tokens{
		t.Input + o.Input, t.CacheRead + o.CacheRead, t.CacheWrite5m + o.CacheWrite5m, t.CacheWrite1h + o.CacheWrite1h,
		t.Output + o.Output, t.Thinking + o.Thinking, t.WebSearches + o.WebSearches,
	}
}

func (t Tokens) minus(o Tokens) Tokens {
	return t.plus(Tokens{
		-o.Input, -o.CacheRead, -o.CacheWrite5m, -o.CacheWrite1h, -o.Output, -o.Thinking, -o.WebSearches,
	})
}

// A Count is what calls have consumed.
type Count struct {
	// Requests are the calls that went out and whose answer has begun or failed.
	Requests int64 `json:"requests"`
	Tokens
	// USD is the cost by the price table, without the models that have no price.
	USD float64 `json:"usd"`
}

// Usage is what a run has consumed. Output is counted when the API reports it, which is at the end of an answer. An
// incomplete answer counts with its reports and an estimate of the rest; see [Usage.Estimated].
type Usage struct {
	Total Count `json:"total"`
	// ByModel has names as [CanonicalModel] gives them.
	ByModel map[string]Count `json:"byModel,omitempty"`
	// ByAgent has one entry for each subagent, as the agent names it, and for [MainAgent].
	ByAgent map[string]Count `json:"byAgent,omitempty"`
	// Unpriced are the models that answered and have no price: their tokens are counted, their cost is not.
	Unpriced []string `json:"unpriced,omitempty"`
	// Unmetered are the answers that reported no usage although they succeeded.
	Unmetered int64 `json:"unmetered,omitzero"`
	// Estimated are the calls with an incomplete answer: a part of their tokens is an estimate.
	Estimated int64 `json:"estimated,omitzero"`
}

// maxNames bounds the agents and the models that are counted separately, because the agent chooses the names.
const maxNames = 256

// otherName is the name for all beyond maxNames.
const otherName = "other"

// A tally is a Count whose money is exact.
type tally struct {
	requests int64
	tokens   Tokens
	cost     nanoUSD
}

func (t tally) plus(o tally) tally {
	return tally{t.requests + o.requests, t.tokens.plus(o.tokens), t.cost + o.cost}
}

func (t tally) minus(o tally) tally {
	return tally{t.requests - o.requests, t.tokens.minus(o.tokens), t.cost - o.cost}
}

func (t tally) count() Count { return Count{t.requests, t.tokens, t.cost.dollars()} }

func (t tally) guardUsage() guard.Usage {
	return guard.Usage{InputTokens: t.tokens.AllInput(), OutputTokens: t.tokens.Output, CostUSD: t.cost.dollars()}
}

type ledger struct {
	prices *Prices

	mu        sync.Mutex
	total     tally
	byModel   map[string]tally
	byAgent   map[string]tally
	unpriced  map[string]bool
	unmetered int64
	estimated int64
}

func (l *ledger) add(model, agent string, t tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total = l.total.plus(t)
	addTo(&l.byModel, model, t)
	addTo(&l.byAgent, agent, t)
	if _, priced := l.prices.Models[model]; !priced && t.tokens != (Tokens{}) && len(l.unpriced) < maxNames {
		if l.unpriced == nil {
			l.unpriced = map[string]bool{}
		}
		l.unpriced[model] = true
	}
}

func addTo(m *map[string]tally, name string, t tally) {
	if *m == nil {
		*m = map[string]tally{}
	}
	if _, known := (*m)[name]; !known && len(*m) >= maxNames {
		name = otherName
	}
	(*m)[name] = (*m)[name].plus(t)
}

func (l *ledger) missed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unmetered++
}

func (l *ledger) guessed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.estimated++
}

func (l *ledger) usage() Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Usage{
		Total: l.total.count(), ByModel: counts(l.byModel), ByAgent: counts(l.byAgent),
		Unpriced: slices.Sorted(maps.Keys(l.unpriced)), Unmetered: l.unmetered, Estimated: l.estimated,
	}
}

func counts(m map[string]tally) map[string]Count {
	out := make(map[string]Count, len(m))
	for name, t := range m {
		out[name] = t.count()
	}
	return out
}
