// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestString_OfWhatUsersPrint(t *testing.T) {
	count := TokenCount{InputTokens{Total: 1_204_000, CacheRead: new(int64(4000))}, OutputTokens{Total: 96}}
	usage := Usage{ToolUses: 8, Tokens: &Tokens{Coverage: CoverageComplete, Totals: count}, Cost: &Cost{USD: 0.0214, Source: CostAgentEstimate}}
	const spent = "1,204,096 tokens (1,204,000 in, 96 out, 4,000 of them from a cache), $0.0214, 8 tool calls"
	input := json.RawMessage(`{"path":"a.go"}`)
	for name, x := range map[string]struct {
		value any
		want  string
	}{
		"usage":                    {usage, spent},
		"a pointer to it":          {&usage, spent},
		"nothing reported":         {Usage{ToolUses: 1}, "1 tool call"},
		"part of the tokens":       {Tokens{Coverage: CoveragePartial, Totals: TokenCount{InputTokens{Total: 1}, OutputTokens{}}}, "at least 1 token (1 in, 0 out)"},
		"the share of a model":     {TokenRecord{Model: "opus", Provider: "anthropic", Requests: 2, Tokens: TokenCount{}, Cost: &Cost{USD: 1}, PricedUnits: []PricedUnit{{"web_search_request", 3}}}, "opus (anthropic): 2 requests, 0 tokens (0 in, 0 out), $1.0000, 3 web_search_request"},
		"a call":                   {ToolCall{Name: "Read", Input: input}, `Read {"path":"a.go"}`},
		"a call without input":     {ToolCall{Name: "Read"}, "Read {}"},
		"a long call":              {ToolCall{Name: "Read", Input: json.RawMessage(`{"a":"` + strings.Repeat("é", 200) + `"}`)}, `Read {"a":"` + strings.Repeat("é", 97) + "…"},
		"a result":                 {ToolResult{Name: "Read", Status: ToolSuccess, Output: input, Duration: 3 * time.Millisecond}, "Read success in 3ms"},
		"a failed call":            {ToolResult{Name: "Bash", Status: ToolError, Failure: &ToolFailure{Message: "exit 1"}}, "Bash error: exit 1"},
		"a question":               {PermissionRequest{Name: "Read", Input: input, Reason: "it is private"}, `Read {"path":"a.go"}: it is private`},
		"a denial":                 {Decision{Tool: "Bash", Policy: "deny-list", Reason: "Bash is denied"}, "Bash: deny by deny-list: Bash is denied"},
		"a permission":             {Decision{Verdict: Allow}, "allow"},
		"a beginning":              {Init{Model: "opus", Dir: "/shop", Tools: []string{"Read"}}, "opus in /shop, 1 tool"},
		"a text":                   {Text{Content: "All is well."}, "All is well."},
		"a long text":              {Text{Content: strings.Repeat("a", 201)}, strings.Repeat("a", 200) + "…"},
		"a part of a text":         {TextDelta{Delta: "All "}, "All "},
		"a thought":                {Thinking{Summary: "I look first."}, "I look first."},
		"an error":                 {Error{Code: "X", Message: "the disk is full"}, "the disk is full"},
		"progress":                 {ToolProgress{ID: "t1", Progress: 3, Total: 10, Message: "files"}, "3 of 10: files"},
		"progress alone":           {ToolProgress{Progress: 0.5}, "0.5"},
		"a line of a log":          {ToolLog{ID: "t1", Level: "warn", Message: "it is slow"}, "warn: it is slow"},
		"a step":                   {ToolStep{ID: "t1", Name: "deploy", Step: "started"}, "deploy started"},
		"a step with a reason":     {ToolStep{Name: "deploy", Step: "denied", Detail: "it is late"}, "deploy denied: it is late"},
		"a failure":                {&ToolFailure{Code: "TIMEOUT", Message: "it took too long"}, "it took too long (TIMEOUT)"},
		"a failure without a code": {ToolFailure{Message: "it took too long"}, "it took too long"},
		"a policy":                 {PolicyVerdict{Policy: "risk", Verdict: new(Deny), Reason: "it changes files"}, "risk: deny: it changes files"},
		"a policy that abstained":  {PolicyVerdict{Policy: "rules"}, "rules: abstained"},
		"what was read":            {InputTokens{Total: 1500, Uncached: new(int64(500)), CacheRead: new(int64(1000))}, "1,500 (500 not cached, 1,000 read from a cache)"},
		"what was written":         {OutputTokens{Total: 96}, "96"},
		"what costs besides":       {PricedUnit{"web_search_request", 3}, "3 web_search_request"},
		"an end":                   {Done{Status: DoneInterrupted, Reason: "stopped", Usage: Usage{ToolUses: 2}, Result: "So far.\n"}, "interrupted (stopped), 2 tool calls: So far."},
		"an event":                 {Event{Kind: KindToolUse, Seq: 3, Payload: ToolCall{Name: "Read", Input: input}}, `3 tool_use: Read {"path":"a.go"}`},
		"an event without payload": {Event{Kind: KindDone}, "done"},
		"an unknown event":         {New(Extension{Kind: "x:y", Data: json.RawMessage(`{"a":1}`)}), `x:y: {"a":1}`},
	} {
		if got := fmt.Sprint(x.value); got != x.want {
			t.Errorf("%s is printed as\n%s\nwant\n%s", name, got, x.want)
		}
	}
}
