// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"math"

	"github.com/drover-agents/drover/advice"
)

// A nanoUSD is a billionth of a dollar, in which money is exact.
type nanoUSD int64

func (n nanoUSD) dollars() float64 { return float64(n) / 1e9 }

// A Price is what tokens of a model cost, in dollars for a million of them.
type Price struct {
	Input        float64 `json:"input"`
	Output       float64 `json:"output"`
	CacheRead    float64 `json:"cacheRead"`
	CacheWrite5m float64 `json:"cacheWrite5m"`
	CacheWrite1h float64 `json:"cacheWrite1h"`
	// WebSearch is in dollars for one search.
	WebSearch float64 `json:"webSearch"`
	// Long is the price of calls whose input is longer than this many tokens; nil without such a price.
	Long *LongPrice `json:"long,omitempty"`
	// Source names an entry of [Prices.Sources].
	Source string `json:"source"`
}

// A LongPrice is the price of a call with a long input.
type LongPrice struct {
	Above int64 `json:"above"` // input tokens, cached or not
	Price
}

// Prices is a price table.
type Prices struct {
	// Date is the day of the last check of the prices, as 2006-01-02.
	Date string `json:"date"`
	// Unit is the unit of the numbers, for readers of the file.
	Unit string `json:"unit"`
	// Sources are where prices come from.
	Sources map[string]string `json:"sources"`
	// Models has names as [Wire.CanonicalModel] gives them.
	Models map[string]Price `json:"models"`
}

// validate refuses what cannot be counted exactly.
func (p Price) validate() error {
	for _, dollars := range []float64{p.Input, p.Output, p.CacheRead, p.CacheWrite5m, p.CacheWrite1h} {
		if n := dollars * 1000; !(dollars >= 0) || math.Abs(n-math.Round(n)) > 1e-6 || n > 1e9 {
			return advice.Wrap(fmt.Errorf("%v dollars for a million tokens", dollars), "give a number with at most three decimals")
		}
	}
	if !(p.WebSearch >= 0 && p.WebSearch < 1e3) {
		return fmt.Errorf("%v dollars for a search", p.WebSearch)
	}
	if p.Long != nil {
		return p.Long.validate()
	}
	return nil
}

// CostUSD is what a call costs by this price.
func (p Price) CostUSD(t Tokens) float64 { return p.cost(t).dollars() }

func (p Price) cost(t Tokens) nanoUSD {
	if p.Long != nil && t.AllInput() > p.Long.Above {
		p = p.Long.Price
	}
	sum := nanoUSD(math.Round(p.WebSearch*1e9)) * nanoUSD(t.WebSearches)
	for _, part := range []struct {
		tokens  int64
		dollars float64
	}{
		{t.Input, p.Input},
		{t.CacheRead, p.CacheRead},
		{t.CacheWrite5m, p.CacheWrite5m},
		{t.CacheWrite1h, p.CacheWrite1h},
		{t.Output, p.Output},
	} {
		sum += nanoUSD(part.tokens) * nanoUSD(math.Round(part.dollars*1000))
	}
	return sum
}
