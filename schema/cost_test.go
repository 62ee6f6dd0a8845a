// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/schema"
)

// each repeats texts with their number up to n bytes.
func each(n int, f func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(f(i))
	}
	return b.String()
}

func object(rest string) string { return `{"type":"object",` + rest + `}` }

var costs = testkit.Shapes{
	"properties": func(n int) string {
		return object(`"properties":{` + each(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"},`, i) }) + `"x":{}}`)
	},
	"schemas": func(n int) string { return object(`"anyOf":[` + each(n, func(int) string { return "{}," }) + `{}]`) },
	"values":  func(n int) string { return object(`"examples":[` + each(n, func(int) string { return "1," }) + `1]`) },
	"enum": func(n int) string {
		return `{"enum":[` + each(n, func(i int) string { return fmt.Sprintf("%d,", i) }) + `-1]}`
	},
	"long names": func(n int) string {
		return object(`"properties":{"` + strings.Repeat("x", n/2) + `":{"properties":{` + each(n/2, func(i int) string { return fmt.Sprintf(`"p%d":{},`, i) }) + `"x":{}}}}`)
	},
	"repetitions": func(n int) string {
		return object(`"properties":{` + each(n, func(i int) string { return fmt.Sprintf(`"p%d":{"pattern":"a{1000}"},`, i) }) + `"x":{}}`)
	},
	"one pattern": func(n int) string {
		return object(`"properties":{"a":{"pattern":"` + each(n, func(int) string { return `\\pL` }) + `"}}`)
	},
	"big pattern": func(n int) string {
		return object(`"properties":{"a":{"pattern":"` + each(n, func(int) string { return `a{1000}` }) + `"}}`)
	},
	"many patterns": func(n int) string {
		return object(`"patternProperties":{` + each(n/2, func(i int) string { return fmt.Sprintf(`"p%d":{},`, i) }) + `"x":{}},"properties":{` + each(n/2, func(i int) string { return fmt.Sprintf(`"p%d":{},`, i) }) + `"x":{}}`)
	},
	"dependencies": func(n int) string {
		all := func(n int) string { return each(n, func(i int) string { return fmt.Sprintf(`"p%d":["a"],`, i) }) }
		return object(`"dependentRequired":{` + all(n/2) + `"x":["a"]},"dependencies":{` + all(n/2) + `"x":["a"]}`)
	},
	"references": func(n int) string {
		i := 0
		return object(`"$defs":{` + each(n, func(k int) string {
			i = k + 1
			return fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, k, i, i)
		}) + fmt.Sprintf(`"d%d":{}},"properties":{"a":{"$ref":"#/$defs/d0"}}`, i))
	},
	"required": func(n int) string {
		return object(`"required":[` + each(n, func(i int) string { return fmt.Sprintf(`"r%d",`, i) }) + `"x"]`)
	},
	"deep": func(n int) string { return strings.Repeat(`{"not":`, n/7) + "{}" + strings.Repeat("}", n/7) },
}

// A schema of any form costs time and memory as its size does, whether it is one or not.
func TestParse_CostGrowsWithTheSchema(t *testing.T) {
	testkit.LinearCost(t, costs, testkit.Size(300_000, 1_000_000), 256<<20, func(text string) {
		s, err := schema.Parse(json.RawMessage(text))
		if err != nil {
			return
		}
		if _, _, err := schema.ForCLI(s); err != nil {
			return
		}
		_ = s.Validate(json.RawMessage(`{"a":{"a":{"a":"aaaa"}}}`))
	})
}

// What is unevaluated follows from all alternatives that fit. Without a bound trying them would take time
// exponential in the length of the schema.
func TestValidate_UnevaluatedIsBounded(t *testing.T) {
	const n = 40
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	s := schema.MustParse(object(`"$ref":"#/$defs/d0","unevaluatedProperties":false,"$defs":{` + b.String() + fmt.Sprintf(`"d%d":{"properties":{"a":{}}}}`, n)))
	if err := s.Validate(json.RawMessage(`{"a":1}`)); err == nil || !strings.Contains(advice.Text(err), "takes too long") {
		t.Errorf("got %v", err)
	}
}
