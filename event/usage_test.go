// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
)

func count(in, out int64) TokenCount {
	return TokenCount{Input: InputTokens{Total: in}, Output: OutputTokens{Total: out}}
}

func totals(c TokenCount) Usage { return Usage{Tokens: &Tokens{Coverage: CoverageComplete, Totals: c}} }

func records(total TokenCount, parts ...TokenCount) Usage {
	u := totals(total)
	for _, p := range parts {
		u.Tokens.Records = append(u.Tokens.Records, TokenRecord{Tokens: p})
	}
	return u
}

func input(total int64, uncached, read, write *int64) TokenCount {
	return TokenCount{Input: InputTokens{total, uncached, read, write}}
}

func TestUsage_Validate(t *testing.T) {
	const most = 1<<53 - 1
	cost := func(usd float64) Usage { return Usage{Cost: &Cost{USD: usd}} }
	record := func(r TokenRecord) Usage {
		u := totals(TokenCount{})
		u.Tokens.Records = []TokenRecord{r}
		return u
	}
	for _, c := range []struct {
		name string
		u    Usage
		want string // "" means that nothing is wrong
	}{
		{"nothing reported", Usage{}, ""},
		{"measured zero", totals(input(0, new(int64(0)), new(int64(0)), new(int64(0)))), ""},
		{"no parts", totals(count(5, 6)), ""},
		{"partial coverage", Usage{Tokens: &Tokens{Coverage: CoveragePartial}}, ""},
		{"no coverage", Usage{Tokens: &Tokens{}}, `tokens.coverage is ""`},
		{"negative tool uses", Usage{ToolUses: -1}, "toolUses is -1"},
		{"negative total", totals(count(-1, 0)), "tokens.totals.input.total is -1"},
		{"negative output", totals(count(0, -2)), "tokens.totals.output.total is -2"},

		{"all parts sum", totals(input(6, new(int64(1)), new(int64(2)), new(int64(3)))), ""},
		{"all parts, too little", totals(input(7, new(int64(1)), new(int64(2)), new(int64(3)))), "parts that sum to 6, not to the total 7"},
		{"all parts, too much", totals(input(5, new(int64(1)), new(int64(2)), new(int64(3)))), "more than the total 5"},
		{"some parts, less", totals(input(9, new(int64(1)), nil, new(int64(3)))), ""},
		{"some parts, more", totals(input(9, new(int64(5)), nil, new(int64(5)))), "more than the total 9"},
		{"negative part", totals(input(1, new(int64(2)), new(int64(-1)), nil)), "more than the total 1"},
		{"negative part that fits", totals(input(1, new(int64(-1)), nil, nil)), "a part of -1"},
		{"output parts", totals(TokenCount{Output: OutputTokens{3, new(int64(1)), new(int64(1))}}), "tokens.totals.output has parts that sum to 2"},
		{"parts beyond int64", totals(input(most, new(int64(math.MaxInt64)), new(int64(math.MaxInt64)), new(int64(2)))), "more than the total"},
		{"the largest total", totals(count(most, most)), ""},
		{"a total that JavaScript rounds", totals(count(most+1, 0)), "tokens.totals.input.total is 9007199254740992; it is between 0 and 2^53-1"},
		{"too many tool uses", Usage{ToolUses: most + 1}, "toolUses is 9007199254740992"},

		{"records sum", records(count(3, 30), count(1, 10), count(2, 20)), ""},
		{"records, input differs", records(count(4, 30), count(1, 10), count(2, 20)), "input.total has parts that sum to 3, not to the total 4"},
		{"records, output differs", records(count(3, 29), count(1, 10), count(2, 20)), "output.total has parts that sum to more than the total 29"},
		{"records that sum to more", records(count(0, 0), count(most, 0), count(most, 0), count(2, 0)), "more than the total 0"},
		{"record, negative", records(count(1, 0), count(2, 0), count(-1, 0)), "tokens.records[1].input.total is -1"},
		{"record with bad parts", records(count(1, 0), input(1, new(int64(2)), nil, nil)), "tokens.records[0].input"},
		{"parts of records sum", records(input(5, nil, new(int64(3)), nil), input(2, nil, new(int64(1)), nil), input(3, nil, new(int64(2)), nil)), ""},
		{"parts of records differ", records(input(5, nil, new(int64(3)), nil), input(2, nil, new(int64(1)), nil), input(3, nil, new(int64(1)), nil)), "input.cacheRead has parts that sum to 2"},
		{"part known in one record only", records(input(5, nil, new(int64(3)), nil), input(2, nil, new(int64(1)), nil), count(3, 0)), ""},
		{"negative requests", record(TokenRecord{Requests: -1}), "tokens.records[0].requests is -1"},
		{"negative priced unit", record(TokenRecord{PricedUnits: []PricedUnit{{"web_search_request", -1}}}), "tokens.records[0].pricedUnits[0] is -1"},
		{"negative cost of a record", record(TokenRecord{Cost: &Cost{USD: -1}}), "tokens.records[0].cost is -1 dollars"},

		{"free", cost(0), ""},
		{"negative cost", cost(-0.01), "cost is -0.01 dollars"},
		{"NaN", cost(math.NaN()), "cost is NaN dollars"},
		{"infinite", cost(math.Inf(1)), "cost is +Inf dollars"},
		{"a known source", Usage{Cost: &Cost{Source: CostAccountEstimate}}, ""},
		{"an unknown source", Usage{Cost: &Cost{Source: "guess"}}, `cost.source is "guess"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.u.Validate()
			if c.want == "" && err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(advice.Text(err), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestUsage_ValidateNamesEveryProblem(t *testing.T) {
	u := Usage{ToolUses: -1, Tokens: &Tokens{Totals: count(-1, 0)}, Cost: &Cost{USD: -1}}
	err := u.Validate()
	for _, want := range []string{"event: usage:", "toolUses", "coverage", "tokens.totals.input", "cost"} {
		if err == nil || !strings.Contains(advice.Text(err), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestUsage_FlatIsZeroForUnknownFigures(t *testing.T) {
	var none Usage
	if none.InputTokens() != 0 || none.OutputTokens() != 0 || none.TotalCostUSD() != 0 {
		t.Errorf("an empty usage counts something: %+v", none)
	}
	u := totals(count(3, 4))
	u.Cost = &Cost{USD: 0.5}
	if u.InputTokens() != 3 || u.OutputTokens() != 4 || u.TotalCostUSD() != 0.5 {
		t.Errorf("got %d, %d, %v; want 3, 4, 0.5", u.InputTokens(), u.OutputTokens(), u.TotalCostUSD())
	}
}

func TestUsage_MeasuredZeroIsWrittenAndAbsenceIsNot(t *testing.T) {
	for text, u := range map[string]Usage{
		`{"toolUses":0}`: {},
		`{"toolUses":2,"cost":{"usd":0,"source":"agent-estimate"}}`: {ToolUses: 2, Cost: &Cost{Source: CostAgentEstimate}},
		`{"toolUses":0,"tokens":{"coverage":"partial","totals":{"input":{"total":1,"uncached":1,"cacheRead":0},"output":{"total":0,"reasoning":0}}}}`: {
			Tokens: &Tokens{Coverage: CoveragePartial, Totals: TokenCount{InputTokens{1, new(int64(1)), new(int64(0)), nil}, OutputTokens{0, nil, new(int64(0))}}},
		},
	} {
		got, err := json.Marshal(u)
		if err != nil || string(got) != text {
			t.Errorf("Marshal gave %s and %v, want %s", got, err, text)
		}
		var again Usage
		if err := json.Unmarshal(got, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(u, again); diff != "" {
			t.Errorf("read again (-want +got):\n%s", diff)
		}
	}
}

func TestNewTokens_Totals(t *testing.T) {
	const most = 1<<53 - 1
	record := func(c TokenCount) TokenRecord { return TokenRecord{Tokens: c} }
	for _, c := range []struct {
		name    string
		records []TokenRecord
		want    TokenCount
		wantErr string
	}{
		{"one record", []TokenRecord{record(count(5, 6))}, count(5, 6), ""},
		{"two records", []TokenRecord{record(count(5, 6)), record(count(10, 20))}, count(15, 26), ""},
		{"a measured zero", []TokenRecord{record(input(0, new(int64(0)), nil, nil))}, input(0, new(int64(0)), nil, nil), ""},
		{"all parts", []TokenRecord{record(input(6, new(int64(1)), new(int64(2)), new(int64(3)))), record(input(60, new(int64(10)), new(int64(20)), new(int64(30))))}, input(66, new(int64(11)), new(int64(22)), new(int64(33))), ""},
		{"a part that one record lacks", []TokenRecord{record(input(6, new(int64(1)), new(int64(2)), nil)), record(input(60, nil, new(int64(20)), nil))}, input(66, nil, new(int64(22)), nil), ""},
		{
			"output parts",
			[]TokenRecord{record(TokenCount{Output: OutputTokens{3, new(int64(1)), new(int64(2))}}), record(TokenCount{Output: OutputTokens{7, new(int64(3)), new(int64(4))}})},
			TokenCount{Output: OutputTokens{10, new(int64(4)), new(int64(6))}},
			"",
		},
		{"no records", nil, TokenCount{}, "no records"},
		{"one bad record spoils all", []TokenRecord{record(count(1, 1)), record(count(-1, 1))}, TokenCount{}, "tokens.records[1].input.total is -1"},
		{"parts that do not sum", []TokenRecord{record(input(7, new(int64(1)), new(int64(2)), new(int64(3))))}, TokenCount{}, "parts that sum to 6"},
		{"a sum that is too large", []TokenRecord{record(count(most, 0)), record(count(1, 0))}, TokenCount{}, "tokens.totals.input.total is 9007199254740992"},
		{"records beyond int64", []TokenRecord{record(count(math.MaxInt64, 0)), record(count(math.MaxInt64, 0)), record(count(2, 0))}, TokenCount{}, "tokens.records[0].input.total"},
		{"a sum that wraps round to 5", append(slices.Repeat([]TokenRecord{record(count(most, 0))}, 2048), record(count(2053, 0))), TokenCount{}, "more than the total 5"},
		{"a bad cost", []TokenRecord{{Cost: &Cost{USD: -1}}}, TokenCount{}, "tokens.records[0].cost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := NewTokens(CoverageComplete, c.records...)
			if c.wantErr != "" {
				if got != nil || err == nil || !strings.Contains(advice.Text(err), c.wantErr) {
					t.Fatalf("got %+v and %v, want only an error with %q", got, err, c.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&Tokens{CoverageComplete, c.want, c.records}, got); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewTokens_NeedsACoverage(t *testing.T) {
	if got, err := NewTokens("most", TokenRecord{}); got != nil || err == nil {
		t.Errorf("got %+v and %v, want an error", got, err)
	}
}

// What NewTokens gives is always right, and the totals are the sums that big integers give.
func TestNewTokens_SumsExactly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := rapid.SliceOfN(tokenRecords(), 1, 4).Draw(rt, "records")
		tokens, err := NewTokens(CoveragePartial, records...)
		sum := new(big.Int)
		for _, r := range records {
			sum.Add(sum, big.NewInt(r.Tokens.Input.Total))
		}
		if err != nil {
			if sum.Cmp(big.NewInt(maxCount)) <= 0 {
				rt.Fatalf("%v, though the sum is %v", err, sum)
			}
			return
		}
		if got := big.NewInt(tokens.Totals.Input.Total); got.Cmp(sum) != 0 {
			rt.Fatalf("total is %v, want %v", got, sum)
		}
		if err := (Usage{Tokens: tokens}).Validate(); err != nil {
			rt.Fatal(err)
		}
	})
}
