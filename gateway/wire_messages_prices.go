// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/drover-agents/drover/advice"
)

//go:embed prices.json
var pricesJSON []byte

var builtinPrices = sync.OnceValue(func() *Prices {
	p, err := ParsePrices(pricesJSON)
	if err != nil {
		panic(err) // a test reads it
	}
	return p
})

// BuiltinPrices is the table of Claude's models that comes with this package. Do not change it.
func BuiltinPrices() *Prices { return builtinPrices() }

// ParsePrices reads a table of Claude's models from JSON, in the form of the built-in one.
func ParsePrices(data []byte) (*Prices, error) {
	var p Prices
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("gateway: the price table is not in order: %w", err)
	}
	for name, price := range p.Models {
		if err := price.validate(); err != nil {
			return nil, fmt.Errorf("gateway: the price of %s: %w", name, err)
		}
		if name != CanonicalModel(name) {
			return nil, advice.Wrap(fmt.Errorf("gateway: the price table names %s", name), "write %s", CanonicalModel(name))
		}
	}
	return &p, nil
}

// Of returns the price of a model of Claude, in any spelling, or false if the table has none.
func (p *Prices) Of(model string) (Price, bool) {
	price, ok := p.Models[CanonicalModel(model)]
	return price, ok
}

var (
	bedrockPrefix = regexp.MustCompile(`^(arn:aws[a-z-]*:bedrock:[^/]*/)?([a-z-]+\.)?anthropic\.`)
	bedrockSuffix = regexp.MustCompile(`-v\d+(:\d+)?$`)
	dateSuffix    = regexp.MustCompile(`[-@]20\d{6}$`)
	contextSuffix = regexp.MustCompile(`\[\d+[km]\]$`)
)

// CanonicalModel is the one name for a model of Claude that has several: without the date of its release, and
// without what Bedrock, Vertex and the CLI add.
//
//	us.anthropic.claude-sonnet-4-5-20250929-v1:0 → claude-sonnet-4-5
func CanonicalModel(id string) string {
	name := contextSuffix.ReplaceAllString(strings.ToLower(id), "")
	if prefix := bedrockPrefix.FindString(name); prefix != "" {
		name = bedrockSuffix.ReplaceAllString(name[len(prefix):], "")
	}
	name = dateSuffix.ReplaceAllString(name, "")
	return strings.TrimSuffix(strings.TrimSuffix(name, "-latest"), "-0")
}
