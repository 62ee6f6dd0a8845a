// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testkit"
)

// A program that is slow to read its messages must not keep the CLI waiting for the answers of its
// hooks, permission callbacks and tools, and must not pay with its memory for messages it has not
// read.
func TestPitfall02_BlockedConsumerDelaysNothing(t *testing.T) {
	const perRound, size = 100, 100_000
	rounds := testkit.Size(8, 100) // 80 MB, or 1 GB
	var hooks, permissions, tools atomic.Int32
	before := liveHeap()
	served, peak := make(chan struct{}), uint64(0)
	filler := strings.Repeat("m", size)
	c := connectScripted(t, func(s *claudetest.ScriptSession) {
		hook := hookIDs(s.Initialize(""), claude.HookPreToolUse)[0]
		s.Await("user")
		for round := range rounds {
			for i := range perRound {
				s.SendText(fmt.Sprintf("%d %s", round*perRound+i, filler))
			}
			s.Reply(s.Ask("hook_callback", preToolUse(hook, "ls")))
			s.Reply(s.Ask("can_use_tool", `{"tool_name":"Bash","input":{},"tool_use_id":"t"}`))
			s.Reply(s.Ask("mcp_message", mcpMessage(round, "tools/call", callWork)))
			peak = max(peak, liveHeap())
		}
		s.Result("All said.")
		close(served)
		s.UntilEOF()
	}, func(o *claude.Options) {
		o.MaxBufferedBytes = 4 << 20
		o.Hooks = []claude.Hook{onBash(func(context.Context, string) { hooks.Add(1) })}
		o.CanUseTool = func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
			permissions.Add(1)
			return claude.Allow{}, nil
		}
		o.MCPServers = toolServers(t, func(context.Context) (string, error) { tools.Add(1); return "done", nil })
	})
	next := 0
	for m, err := range c.Turn(t.Context(), claude.Text("talk")) {
		if err != nil {
			t.Fatal(err)
		}
		message, ok := m.(*claude.AssistantMessage)
		if !ok {
			continue
		}
		if next == 0 {
			<-served // the consumer is stuck in its first message until the CLI has written everything
		}
		number, rest, _ := strings.Cut(message.Text(), " ")
		if number != fmt.Sprint(next) || rest != filler {
			t.Fatalf("message %s with %d bytes, want %d with %d", number, len(rest), next, size)
		}
		next++
	}
	if next != rounds*perRound {
		t.Errorf("%d messages were delivered, want %d", next, rounds*perRound)
	}
	if int(hooks.Load()) != rounds || int(permissions.Load()) != rounds || int(tools.Load()) != rounds {
		t.Errorf("%d hooks, %d permissions, %d tools were served, want %d of each", hooks.Load(), permissions.Load(), tools.Load(), rounds)
	}
	if grown := int64(peak) - int64(before); grown > 40<<20 {
		t.Errorf("the heap grew by %d MB while %d MB waited, want at most 40", grown>>20, rounds*perRound*size/1_000_000)
	}
}

// liveHeap is the memory in use after a collection.
func liveHeap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
