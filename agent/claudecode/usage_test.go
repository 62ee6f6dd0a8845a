// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

// result is a line with the given fields.
func result(fields string) string {
	return `{"type":"result","subtype":"success","result":"ok","session_id":"s",` + fields + `}`
}

func TestUsage_OfResults(t *testing.T) {
	const whole = `"m":{"inputTokens":10,"outputTokens":5,"cacheReadInputTokens":3,"cacheCreationInputTokens":2,"thinkingTokens":1,"webSearchRequests":4,"costUSD":0.25,"provider":"p"}`
	count := event.TokenCount{
		Input:  event.InputTokens{Total: 15, Uncached: new(int64(10)), CacheRead: new(int64(3)), CacheWrite: new(int64(2))},
		Output: event.OutputTokens{Total: 5, Visible: new(int64(4)), Reasoning: new(int64(1))},
	}
	cost := func(usd float64) *event.Cost { return &event.Cost{USD: usd, Source: event.CostAgentEstimate} }
	plain := func(in, out int64) event.TokenCount {
		return event.TokenCount{Input: event.InputTokens{Total: in}, Output: event.OutputTokens{Total: out}}
	}
	tokens := func(coverage event.Coverage, total event.TokenCount, records ...event.TokenRecord) *event.Tokens {
		return &event.Tokens{Coverage: coverage, Totals: total, Records: records}
	}
	record := event.TokenRecord{Model: "m", Provider: "p", Tokens: count, Cost: cost(0.25), PricedUnits: []event.PricedUnit{{Name: "web_search_request", Quantity: 4}}}

	for _, test := range []struct {
		name  string
		lines []string
		want  event.Usage
	}{
		{"all of it", []string{result(`"total_cost_usd":0.25,"modelUsage":{` + whole + `},"usage":{"input_tokens":999}`)}, event.Usage{Tokens: tokens(event.CoverageComplete, count, record), Cost: cost(0.25)}},
		{"nothing reported", []string{result(`"x":1`)}, event.Usage{}},
		{"zero measured", []string{result(`"total_cost_usd":0,"modelUsage":{}`)}, event.Usage{Tokens: tokens(event.CoverageComplete, event.TokenCount{
			Input:  event.InputTokens{Uncached: new(int64(0)), CacheRead: new(int64(0)), CacheWrite: new(int64(0))},
			Output: event.OutputTokens{Visible: new(int64(0)), Reasoning: new(int64(0))},
		}), Cost: cost(0)}},
		{"zero of a failure is no measure", []string{`{"type":"result","subtype":"success","is_error":true,"total_cost_usd":0,"modelUsage":{}}`}, event.Usage{}},
		{"main loop alone is not promoted", []string{result(`"usage":{"input_tokens":10,"output_tokens":5}`)}, event.Usage{}},
		{"parts that are not reported", []string{result(`"total_cost_usd":1,"modelUsage":{"m":{"inputTokens":10,"outputTokens":5}}`)}, event.Usage{Tokens: tokens(event.CoverageComplete, plain(10, 5), event.TokenRecord{Model: "m", Tokens: plain(10, 5)}), Cost: cost(1)}},
		{"two models in order", []string{result(`"modelUsage":{"z":{"inputTokens":1,"outputTokens":2},"a":{"inputTokens":3,"outputTokens":4}}`)}, event.Usage{Tokens: tokens(event.CoverageComplete, plain(4, 6), event.TokenRecord{Model: "a", Tokens: plain(3, 4)}, event.TokenRecord{Model: "z", Tokens: plain(1, 2)})}},
		{"another spelling", []string{result(`"totalCostUsd":1,"model_usage":{"m":{"input_tokens":10,"output_tokens":5}}`)}, event.Usage{Tokens: tokens(event.CoverageComplete, plain(10, 5), event.TokenRecord{Model: "m", Tokens: plain(10, 5)}), Cost: cost(1)}},
		{"both spellings, equal", []string{result(`"modelUsage":{"m":{"input_tokens":10,"inputTokens":10,"outputTokens":5}}`)}, event.Usage{Tokens: tokens(event.CoverageComplete, plain(10, 5), event.TokenRecord{Model: "m", Tokens: plain(10, 5)})}},
		{"both spellings, different", []string{result(`"total_cost_usd":1,"modelUsage":{"m":{"input_tokens":11,"inputTokens":10,"outputTokens":5}}`)}, event.Usage{Cost: cost(1)}},
		{"interrupted", []string{`{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","total_cost_usd":1,"modelUsage":{"m":{"inputTokens":10,"outputTokens":5}}}`}, event.Usage{Tokens: tokens(event.CoveragePartial, plain(10, 5), event.TokenRecord{Model: "m", Tokens: plain(10, 5)}), Cost: cost(1)}},
		{"running totals are not added up", []string{
			result(`"total_cost_usd":1,"modelUsage":{"m":{"inputTokens":10,"outputTokens":5}}`),
			result(`"total_cost_usd":3,"modelUsage":{"m":{"inputTokens":30,"outputTokens":9}}`),
		}, event.Usage{Tokens: tokens(event.CoverageComplete, plain(30, 9), event.TokenRecord{Model: "m", Tokens: plain(30, 9)}), Cost: cost(3)}},
		{"what a resumed session had used before is left out", []string{
			result(`"total_cost_usd":1.1,"modelUsage":{"m":{"inputTokens":110,"outputTokens":11,"costUSD":1.1}},"model_usage_since_last_result":{"m":{"inputTokens":10,"outputTokens":1,"costUSD":0.1}}`),
			result(`"total_cost_usd":1.3,"modelUsage":{"m":{"inputTokens":130,"outputTokens":13,"costUSD":1.3}},"model_usage_since_last_result":{"m":{"inputTokens":20,"outputTokens":2,"costUSD":0.2}}`),
		}, event.Usage{Tokens: tokens(event.CoverageComplete, plain(30, 3), event.TokenRecord{Model: "m", Tokens: plain(30, 3), Cost: cost(0.3)}), Cost: cost(0.3)}},
		{"a reset starts from zero", []string{
			result(`"total_cost_usd":1,"modelUsage":{"m":{"inputTokens":10,"outputTokens":5}}`),
			`{"type":"conversation_reset","new_conversation_id":"c"}`,
			result(`"total_cost_usd":2,"modelUsage":{"m":{"inputTokens":20,"outputTokens":6}}`),
		}, event.Usage{Tokens: tokens(event.CoverageComplete, plain(30, 11), event.TokenRecord{Model: "m", Tokens: plain(30, 11)}), Cost: cost(3)}},
		{"totals that shrink in part are not believed", []string{
			result(`"total_cost_usd":1,"modelUsage":{"m":{"inputTokens":110,"outputTokens":11,"cacheReadInputTokens":90}},"model_usage_since_last_result":{"m":{"inputTokens":10,"outputTokens":1,"cacheReadInputTokens":0,"costUSD":1}}`),
			result(`"total_cost_usd":2,"modelUsage":{"m":{"inputTokens":120,"outputTokens":12,"cacheReadInputTokens":50}}`),
		}, event.Usage{Cost: cost(2)}},
		{"a malformed later result keeps the cost", []string{
			result(`"total_cost_usd":1,"modelUsage":{"m":{"inputTokens":10,"outputTokens":5}}`),
			result(`"total_cost_usd":3,"modelUsage":{"m":"many"}`),
		}, event.Usage{Cost: cost(3)}},
		{"a malformed share spoils the cost too", []string{result(`"total_cost_usd":1,"modelUsage":{},"model_usage_since_last_result":7`)}, event.Usage{}},
		{"an invalid cost", []string{result(`"total_cost_usd":-1,"modelUsage":{"m":{"inputTokens":10,"outputTokens":5}}`)}, event.Usage{Tokens: tokens(event.CoverageComplete, plain(10, 5), event.TokenRecord{Model: "m", Tokens: plain(10, 5)})}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, tick := newNormaliser()
			events := play(t, n, tick, test.lines...)
			checkStream(t, events)
			done, _ := doneOf(t, events)
			if diff := cmp.Diff(test.want, done.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsage_MalformedEntryDropsAllTokens(t *testing.T) {
	good := `"inputTokens":1,"outputTokens":2`
	for name, entry := range map[string]string{
		"no object": `[]`, "null": `null`, "no input": `{"outputTokens":2}`, "no output": `{"inputTokens":1}`, "text": `{"inputTokens":"1","outputTokens":2}`,
		"negative": `{"inputTokens":-1,"outputTokens":2}`, "fraction": `{"inputTokens":1.5,"outputTokens":2}`, "too many": `{"inputTokens":1e17,"outputTokens":2}`,
		"cache": `{` + good + `,"cacheReadInputTokens":"x"}`, "more thinking than output": `{` + good + `,"thinkingTokens":3}`, "cost": `{` + good + `,"costUSD":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			n, tick := newNormaliser()
			done, _ := doneOf(t, play(t, n, tick, result(`"total_cost_usd":1,"modelUsage":{"a":{`+good+`},"b":`+entry+`}`)))
			if done.Usage.Tokens != nil || done.Usage.TotalCostUSD() != 1 {
				t.Errorf("usage %+v, want the cost alone", done.Usage)
			}
		})
	}
}

func TestUsage_UnfinishedBackgroundWorkMakesItPartial(t *testing.T) {
	n, _ := newNormaliser()
	m := decode(t, result(`"modelUsage":{"m":{"inputTokens":10,"outputTokens":5}}`)).(*claude.ResultMessage)
	n.events(m)
	done, _ := doneOf(t, n.done(&claude.TurnEnd{Answer: m, Forced: true}))
	if done.Usage.Tokens == nil || done.Usage.Tokens.Coverage != event.CoveragePartial {
		t.Errorf("tokens %+v, want a partial count", done.Usage.Tokens)
	}
}

// The recorded sessions had a turn before the run, of as many tokens as the run itself.
func TestUsage_ResumedRunCountsItselfAlone(t *testing.T) {
	for _, name := range []string{"resumed", "resumed_oldest"} {
		n, tick := newNormaliser()
		done, _ := doneOf(t, play(t, n, tick, recorded(t, name)...))
		if got, want := done.Usage.InputTokens(), int64(metered.Input+metered.CacheRead+metered.CacheCreation); got != want {
			t.Errorf("%s: %d input tokens, want %d", name, got, want)
		}
		if got := done.Usage.TotalCostUSD(); got <= 0 || got != done.Usage.Tokens.Records[0].Cost.USD {
			t.Errorf("%s: cost %v, want that of its only model, %v", name, got, done.Usage.Tokens.Records[0].Cost.USD)
		}
	}
}
