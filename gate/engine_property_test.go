// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// However calls come, at whatever places and at the same time: each is asked about once, and all who
// ask get the same verdict.
func TestEngine_ConcurrentCallersGetOneVerdict(t *testing.T) {
	spellings := map[string][]string{"save": {"save", "mcp__files__save", "default:save"}, "evil": {"mcp__evil__save"}, "Bash": {"Bash", " Bash "}}
	inputs := map[string][]string{"1": {`{"a":1,"b":2}`, `{"b":2,"a":1}`, "{\"a\": 1,\n\"b\": 2}"}, "2": {`{"a":1}`, ` {"a":1}`}, "none": {``, `{}`, ` `}}
	rapid.Check(t, func(t *rapid.T) {
		var mu sync.Mutex
		asked, verdicts := map[string]int{}, map[string]event.Verdict{}
		names := map[string]string{}
		for name, all := range spellings {
			for _, s := range all {
				names[s] = name
			}
		}
		approver := gate.ApproverFunc(func(_ context.Context, q gate.Question) (gate.Answer, error) {
			mu.Lock()
			defer mu.Unlock()
			for meaning, all := range inputs {
				for _, text := range all {
					if text == string(q.Call.Input) {
						asked[string(q.Call.ID)+names[q.Call.Name]+meaning]++
					}
				}
			}
			return gate.Answer{Verdict: event.Verdict(2 * (len(asked) % 2))}, nil
		})
		e := gate.NewEngine(askingGate(filesRegistry()), &gate.EngineOptions{Approver: approver})
		var all sync.WaitGroup
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			id := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "id")
			name := rapid.SampledFrom([]string{"save", "evil", "Bash"}).Draw(t, "tool")
			meaning := rapid.SampledFrom([]string{"1", "2", "none"}).Draw(t, "input")
			c := toolCall(id, rapid.SampledFrom(spellings[name]).Draw(t, "spelling"), rapid.SampledFrom(inputs[meaning]).Draw(t, "text"))
			all.Go(func() {
				d := e.Decide(context.Background(), c)
				mu.Lock()
				defer mu.Unlock()
				if before, known := verdicts[id+name+meaning]; known && before != d.Verdict {
					t.Errorf("%s %s %s: %s, and before %s", id, c.Name, c.Input, d.Verdict, before)
				}
				verdicts[id+name+meaning] = d.Verdict
			})
		}
		all.Wait()
		for c, n := range asked {
			if n != 1 {
				t.Errorf("%s: asked %d times", c, n)
			}
		}
		if len(asked) != len(verdicts) {
			t.Errorf("%d questions about %d calls", len(asked), len(verdicts))
		}
	})
}

func BenchmarkEngine(b *testing.B) {
	allow := gate.ForClaude(judgedBy(func(*gate.Call) (event.Decision, bool) { return event.Decision{Verdict: event.Allow}, true }))
	for name, id := range map[string]string{"again": "toolu_1", "without an id": ""} {
		b.Run(name, func(b *testing.B) {
			e := gate.NewEngine(allow, nil)
			c := toolCall(id, "Bash", `{"command":"ls -l","description":"List files"}`)
			b.ReportAllocs()
			for b.Loop() {
				if e.Decide(b.Context(), c).Verdict != event.Allow {
					b.Fatal("denied")
				}
			}
		})
	}
}
