// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"testing"
	"time"
)

// typicalEvents are what most lines of a run look like.
func typicalEvents() map[string]Event {
	count := TokenCount{InputTokens{Total: 9000, Uncached: new(int64(1000)), CacheRead: new(int64(7000)), CacheWrite: new(int64(1000))}, OutputTokens{Total: 700}}
	cost := &Cost{USD: 0.0421, Source: CostAgentEstimate}
	payloads := []Payload{
		TextDelta{Delta: "The tests pass "},
		ToolCall{ID: "toolu_01A09q90qw90lq917835lq9", Name: "Bash", Input: json.RawMessage(`{"command":"go test ./... 2>&1 | tail -40","description":"Run all tests","timeout":120000}`)},
		ToolResult{ID: "toolu_01A09q90qw90lq917835lq9", Name: "Bash", Status: ToolSuccess, Output: json.RawMessage(`"ok  \texample.com/a\t0.021s\nok  \texample.com/b\t1.304s\n"`), Duration: 1500 * time.Millisecond},
		Decision{CallID: "toolu_01A09q90qw90lq917835lq9", Tool: "Bash", Verdict: Allow, Policy: "rules"},
		Done{Status: DoneSuccess, Result: "The tests pass now.", ResumeToken: "01234567-89ab-cdef-0123-456789abcdef", Duration: time.Minute, Usage: Usage{
			ToolUses: 12, Cost: cost,
			Tokens: &Tokens{CoverageComplete, count, []TokenRecord{{Model: "claude-sonnet-4-5", Requests: 13, Tokens: count, Cost: cost}}},
		}},
	}
	events := map[string]Event{}
	for i, p := range payloads {
		events[string(p.EventKind())] = Event{
			Kind: p.EventKind(), Agent: "claude-code", Time: goldenTime, SessionID: "01234567-89ab-cdef-0123-456789abcdef",
			RunID: "fedcba98-7654-3210-fedc-ba9876543210", Seq: int64(i + 1), Turn: 3, Payload: p,
		}
	}
	return events
}

func BenchmarkEventMarshal(b *testing.B) {
	for name, e := range typicalEvents() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.MarshalJSON(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEventUnmarshal(b *testing.B) {
	for name, e := range typicalEvents() {
		text := line(b, e)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var again Event
				if err := again.UnmarshalJSON(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
