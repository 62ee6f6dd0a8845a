// SPDX-License-Identifier: Apache-2.0

package event

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Usage is what a run consumed. Tokens and Cost are nil where they were not reported, which is not the same as zero.
type Usage struct {
	// ToolUses counts the distinct tool calls that were seen.
	ToolUses int     `json:"toolUses"`
	Tokens   *Tokens `json:"tokens,omitempty"`
	Cost     *Cost   `json:"cost,omitempty"`
}

// InputTokens returns all input tokens, zero where they are not known.
func (u Usage) InputTokens() int64 {
	if u.Tokens == nil {
		return 0
	}
	return u.Tokens.Totals.Input.Total
}

// OutputTokens returns all output tokens, zero where they are not known.
func (u Usage) OutputTokens() int64 {
	if u.Tokens == nil {
		return 0
	}
	return u.Tokens.Totals.Output.Total
}

// TotalCostUSD returns the cost, zero where it is not known.
func (u Usage) TotalCostUSD() float64 {
	if u.Cost == nil {
		return 0
	}
	return u.Cost.USD
}

// Plus is what two runs consumed together. A figure that only one of them reports is partial; a run that
// reports nothing at all consumed nothing. Shares of the same model become one.
func (u Usage) Plus(other Usage) Usage {
	sum := Usage{ToolUses: u.ToolUses + other.ToolUses, Cost: u.Cost.plus(other.Cost)}
	switch {
	case u.Tokens != nil && other.Tokens != nil:
		sum.Tokens = u.Tokens.plus(other.Tokens)
	case u.Tokens != nil:
		sum.Tokens = u.Tokens.beside(other)
	case other.Tokens != nil:
		sum.Tokens = other.Tokens.beside(u)
	}
	return sum
}

func (c *Cost) plus(other *Cost) *Cost {
	switch {
	case other == nil:
		return c
	case c == nil:
		return other
	}
	sum := &Cost{USD: c.USD + other.USD, Source: c.Source}
	if c.Source != other.Source {
		sum.Source = ""
	}
	return sum
}

// beside are the tokens of one run as those of two, of which the other reports no tokens.
func (t *Tokens) beside(other Usage) *Tokens {
	own := *t
	if other != (Usage{}) {
		own.Coverage = CoveragePartial
	}
	return &own
}

func (t *Tokens) plus(other *Tokens) *Tokens {
	sum := &Tokens{Coverage: t.Coverage, Totals: t.Totals.plus(other.Totals)}
	if other.Coverage != CoverageComplete {
		sum.Coverage = other.Coverage
	}
	if len(t.Records) == 0 || len(other.Records) == 0 {
		return sum // what there is does not divide the whole
	}
	sum.Records = slices.Clone(t.Records)
	for _, r := range other.Records {
		i := slices.IndexFunc(sum.Records, func(s TokenRecord) bool { return s.Model == r.Model && s.Provider == r.Provider })
		if i < 0 {
			sum.Records = append(sum.Records, r)
			continue
		}
		sum.Records[i] = sum.Records[i].plus(r)
	}
	return sum
}

func (r TokenRecord) plus(other TokenRecord) TokenRecord {
	r.Requests += other.Requests
	r.Tokens = r.Tokens.plus(other.Tokens)
	r.Cost = r.Cost.plus(other.Cost)
	r.PricedUnits = slices.Clone(r.PricedUnits)
	for _, unit := range other.PricedUnits {
		i := slices.IndexFunc(r.PricedUnits, func(u PricedUnit) bool { return u.Name == unit.Name })
		if i < 0 {
			r.PricedUnits = append(r.PricedUnits, unit)
			continue
		}
		r.PricedUnits[i].Quantity += unit.Quantity
	}
	return r
}

func (c TokenCount) plus(other TokenCount) TokenCount {
	both := []TokenRecord{{Tokens: c}, {Tokens: other}}
	sums := make([]*int64, len(counts))
	for i, count := range counts {
		sums[i] = sumOf(both, count.of)
	}
	return newTokenCount(sums)
}

// newTokenCount has the figures in the order of counts.
func newTokenCount(sums []*int64) TokenCount {
	return TokenCount{InputTokens{*sums[0], sums[1], sums[2], sums[3]}, OutputTokens{*sums[4], sums[5], sums[6]}}
}

// A Coverage is whether a count is of the whole run.
type Coverage string

// How much of a run a count covers.
const (
	CoverageComplete Coverage = "complete"
	// CoveragePartial: some of the run is not in it.
	CoveragePartial Coverage = "partial"
)

// Tokens are the tokens of a run. Records, where there are any, divide Totals without a rest: those
// that do not are left out, all of them. [NewTokens] makes totals of records.
type Tokens struct {
	Coverage Coverage      `json:"coverage"`
	Totals   TokenCount    `json:"totals"`
	Records  []TokenRecord `json:"records,omitempty"`
}

// A TokenCount counts both directions.
type TokenCount struct {
	Input  InputTokens  `json:"input"`
	Output OutputTokens `json:"output"`
}

// InputTokens count what the model read. The parts are nil where they are not known; if all are known they sum to Total.
type InputTokens struct {
	Total      int64  `json:"total"`
	Uncached   *int64 `json:"uncached,omitempty"`
	CacheRead  *int64 `json:"cacheRead,omitempty"`
	CacheWrite *int64 `json:"cacheWrite,omitempty"`
}

// OutputTokens count what the model wrote, in the same way.
type OutputTokens struct {
	Total     int64  `json:"total"`
	Visible   *int64 `json:"visible,omitempty"`
	Reasoning *int64 `json:"reasoning,omitempty"`
}

// A TokenRecord is the share of one model.
type TokenRecord struct {
	// Model and Provider are in the agent's own words; Requests is the number of model calls. All are empty if not reported.
	Model       string       `json:"model,omitzero"`
	Provider    string       `json:"provider,omitzero"`
	Requests    int64        `json:"requests,omitzero"`
	Tokens      TokenCount   `json:"tokens"`
	Cost        *Cost        `json:"cost,omitempty"`
	PricedUnits []PricedUnit `json:"pricedUnits,omitempty"`
}

// A PricedUnit is something other than tokens that costs money: "web_search_request".
type PricedUnit struct {
	Name     string `json:"name"`
	Quantity int64  `json:"quantity"`
}

// A CostSource names who computed a cost.
type CostSource string

// Who computed a cost.
const (
	// CostAgentEstimate: the agent, from a list of prices. Claude Code's costs are such.
	CostAgentEstimate CostSource = "agent-estimate"
	// CostProviderReported: the provider that sends the bill.
	CostProviderReported CostSource = "provider-reported"
	CostAccountEstimate  CostSource = "account-estimate"
)

// Cost is an amount of US dollars, as computed elsewhere.
type Cost struct {
	USD    float64    `json:"usd"`
	Source CostSource `json:"source,omitzero"`
}

// NewTokens adds up records. A part is known in the totals if it is known in every record. It gives an
// error, and no tokens, if there are no records, or if anything in them is wrong as [Usage.Validate]
// sees it: a report with one wrong figure is no report.
func NewTokens(coverage Coverage, records ...TokenRecord) (*Tokens, error) {
	if len(records) == 0 {
		return nil, errors.New("event: no records; unreported tokens are not zero")
	}
	sums := make([]*int64, len(counts))
	for i, c := range counts {
		sums[i] = sumOf(records, c.of)
	}
	t := &Tokens{coverage, newTokenCount(sums), records}
	if errs := t.problems(); len(errs) > 0 {
		return nil, fmt.Errorf("event: tokens: %w", errors.Join(errs...))
	}
	return t, nil
}

// sumOf adds one figure of all records; nil if one lacks it. problems finds sums that overflow: it takes the records away.
func sumOf(records []TokenRecord, of func(*TokenCount) *int64) *int64 {
	sum := new(int64)
	for i := range records {
		n := of(&records[i].Tokens)
		if n == nil {
			return nil
		}
		*sum += *n
	}
	return sum
}

// Validate reports what is wrong with the figures: negative ones, integers that not every language
// reads exactly, parts that do not sum to their total, records that do not sum to the totals, words
// for unknown coverage and source. An unreported figure is not wrong.
func (u Usage) Validate() error {
	var errs []error
	if err := countProblem("toolUses", int64(u.ToolUses)); err != nil {
		errs = append(errs, err)
	}
	if u.Tokens != nil {
		errs = append(errs, u.Tokens.problems()...)
	}
	if err := u.Cost.problem("cost"); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("event: usage: %w", errors.Join(errs...))
}

func (t *Tokens) problems() []error {
	var errs []error
	if t.Coverage != CoverageComplete && t.Coverage != CoveragePartial {
		errs = append(errs, fmt.Errorf("tokens.coverage is %q; it is complete or partial", t.Coverage))
	}
	errs = append(errs, t.Totals.problems("tokens.totals")...)
	for i, r := range t.Records {
		errs = append(errs, r.problems(fmt.Sprintf("tokens.records[%d]", i))...)
	}
	if len(errs) > 0 || len(t.Records) == 0 {
		return errs // figures that are wrong one by one need not be added
	}
	for _, c := range counts {
		total := c.of(&t.Totals)
		if total == nil {
			continue
		}
		parts := make([]*int64, len(t.Records))
		for i := range t.Records {
			parts[i] = c.of(&t.Records[i].Tokens)
		}
		errs = append(errs, sumProblems("tokens.records: "+c.name, *total, parts...)...)
	}
	return errs
}

// counts are all figures of a TokenCount, in the order of its fields; those that are not known are nil.
var counts = []struct {
	name string
	of   func(*TokenCount) *int64
}{
	{"input.total", func(c *TokenCount) *int64 { return &c.Input.Total }},
	{"input.uncached", func(c *TokenCount) *int64 { return c.Input.Uncached }},
	{"input.cacheRead", func(c *TokenCount) *int64 { return c.Input.CacheRead }},
	{"input.cacheWrite", func(c *TokenCount) *int64 { return c.Input.CacheWrite }},
	{"output.total", func(c *TokenCount) *int64 { return &c.Output.Total }},
	{"output.visible", func(c *TokenCount) *int64 { return c.Output.Visible }},
	{"output.reasoning", func(c *TokenCount) *int64 { return c.Output.Reasoning }},
}

func (r *TokenRecord) problems(path string) []error {
	errs := r.Tokens.problems(path)
	if err := countProblem(path+".requests", r.Requests); err != nil {
		errs = append(errs, err)
	}
	for i, u := range r.PricedUnits {
		if err := countProblem(fmt.Sprintf("%s.pricedUnits[%d]", path, i), u.Quantity); err != nil {
			errs = append(errs, err)
		}
	}
	if err := r.Cost.problem(path + ".cost"); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func (c TokenCount) problems(path string) []error {
	return append(
		sumProblems(path+".input", c.Input.Total, c.Input.Uncached, c.Input.CacheRead, c.Input.CacheWrite),
		sumProblems(path+".output", c.Output.Total, c.Output.Visible, c.Output.Reasoning)...)
}

// sumProblems checks that no count is negative, that the known parts fit into the total, and that they are all of it if all
// are known. It takes the parts away from the total, which cannot overflow where a sum could.
func sumProblems(path string, total int64, parts ...*int64) []error {
	if err := countProblem(path+".total", total); err != nil {
		return []error{err}
	}
	rest, known := total, 0
	for _, part := range parts {
		switch {
		case part == nil:
			continue
		case *part < 0:
			return []error{fmt.Errorf("%s has a part of %d", path, *part)}
		case *part > rest:
			return []error{fmt.Errorf("%s has parts that sum to more than the total %d", path, total)}
		}
		rest -= *part
		known++
	}
	if known == len(parts) && rest != 0 {
		return []error{fmt.Errorf("%s has parts that sum to %d, not to the total %d", path, total-rest, total)}
	}
	return nil
}

// maxCount is the largest integer that programs in every language read exactly.
const maxCount = 1<<53 - 1

func countProblem(path string, n int64) error {
	if n < 0 || n > maxCount {
		return fmt.Errorf("%s is %d; it is between 0 and 2^53-1", path, n)
	}
	return nil
}

func (c *Cost) problem(path string) error {
	switch {
	case c == nil:
		return nil
	case c.USD < 0 || math.IsNaN(c.USD) || math.IsInf(c.USD, 0):
		return fmt.Errorf("%s is %v dollars", path, c.USD)
	case c.Source != "" && c.Source != CostAgentEstimate && c.Source != CostProviderReported && c.Source != CostAccountEstimate:
		return fmt.Errorf("%s.source is %q; it is agent-estimate, provider-reported or account-estimate", path, c.Source)
	}
	return nil
}
