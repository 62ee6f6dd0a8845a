// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/tool"
)

// The last handler may end, and the next begin, at the very moment at which a caller waits.
func TestWait_CallsMayBeginMeanwhile(t *testing.T) {
	r := tool.MustRegistry(nil, tool.Must("look", "Looks.", func(context.Context, tool.None) (string, error) { return "seen", nil }))
	ctx, cancel := context.WithCancel(t.Context()) // one that can end: the handlers then have goroutines
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			for ctx.Err() == nil {
				_ = r.Wait(ctx)   // that it fails at the end is no matter
				runtime.Gosched() // otherwise four busy loops leave the calls no core
			}
		})
	}
	for range testkit.Size(5_000, 100_000) {
		if result := r.Execute(ctx, tool.Call{Name: "look"}); !result.OK() {
			t.Fatalf("the call ended with %s: %s", result.Outcome, result.Render())
		}
	}
	cancel()
	waiting.Wait()
}
