// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// BenchmarkExecute shows what a call through a registry costs beside a call of the function: decoding
// is what any caller with JSON pays, checking and deciding are what the registry adds.
func BenchmarkExecute(b *testing.B) {
	fn := func(_ context.Context, n numbers) (int, error) { return n.A + n.B, nil }
	input := json.RawMessage(`{"a":1,"b":2}`)
	add := tool.Must("sum", "adds two numbers", fn)
	ctx := context.Background()

	b.Run("function", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = fn(ctx, numbers{1, 2})
		}
	})
	b.Run("function after json.Unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var n numbers
			_ = json.Unmarshal(input, &n)
			_, _ = fn(ctx, n)
		}
	})
	b.Run("Tool.Run", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			add.Run(ctx, tool.Call{ID: "c", Input: input})
		}
	})
	for name, opts := range map[string]*tool.Options{
		"Registry.Execute":                nil,
		"Registry.Execute with decider":   {Decider: deciding(event.Decision{Verdict: event.Allow})},
		"Registry.Execute with events":    {Emit: func(event.Event) {}},
		"Registry.Execute with digests":   {Digests: true},
		"Registry.Execute, a bounded one": {Concurrency: 8},
	} {
		r := tool.MustRegistry(opts, add)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Execute(ctx, tool.Call{ID: "c", Name: "sum", Input: input})
			}
		})
	}
	cancellable, cancel := context.WithCancel(ctx)
	defer cancel()
	r := tool.MustRegistry(nil, add)
	b.Run("Registry.Execute, cancellable", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Execute(cancellable, tool.Call{ID: "c", Name: "sum", Input: input})
		}
	})
}
