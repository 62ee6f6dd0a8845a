// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/internal/testkit"
)

// One process serves many conversations, each with a tool of ours and a hook. Nothing of ours grows
// with their number.
func TestSoak_ManyConversationsInOneProcess(t *testing.T) {
	turns := testkit.Size(6, 300)
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("mcp__home__ring", script.Input{}).When(script.LastUserText("please ring")).Always(),
		script.Text("It rang.").Always())
	var hooks int
	var mu sync.Mutex
	opts := cli.Options(model)
	opts.PermissionMode = claude.ModeBypassPermissions
	opts.MCPServers = map[string]claude.MCPServer{"home": bell(t)}
	opts.Hooks = []claude.Hook{claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		mu.Lock()
		defer mu.Unlock()
		hooks++
		return nil, nil
	})}
	c := claudetest.Connect(t, opts)
	turn(t, c, "please ring 0")
	heap, goroutines := liveHeap(), runtime.NumGoroutine()
	for i := range turns {
		turn(t, c, "/clear")
		if end, _ := turn(t, c, fmt.Sprint("please ring ", i)); end.Answer.Result != "It rang." {
			t.Fatalf("conversation %d: %q", i, end.Answer.Result)
		}
	}
	if hooks != turns+1 {
		t.Errorf("%d hooks for %d conversations, want one each", hooks, turns+1)
	}
	if grown := int64(liveHeap()) - int64(heap); grown > 8<<20+int64(turns)*200_000 { // the model keeps its requests
		t.Errorf("the heap grew by %d MB over %d conversations", grown>>20, turns)
	}
	if now := runtime.NumGoroutine(); now > goroutines+20 {
		t.Errorf("%d goroutines after the first conversation, %d after %d", goroutines, now, turns)
	}
}

func bell(t *testing.T) *claude.MCPInProcess {
	t.Helper()
	ring := claude.MustTool("ring", "Ring the bell.", func(context.Context, struct{}) (claude.ToolResult, error) {
		return claude.TextResult("ding"), nil
	})
	ring.AlwaysLoad = true
	server, err := claude.NewToolServer("home", "1", nil, ring)
	if err != nil {
		t.Fatal(err)
	}
	return server.Server()
}

// Many processes at once, each started, used and closed: all answer, none is left.
func TestSoak_ManyProcessesAtOnce(t *testing.T) {
	clients := testkit.Size(3, 24)
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Here.").Always())
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			end, _, err := collect(claude.Query(t.Context(), fmt.Sprint("client ", i), cli.Options(model)))
			if err != nil || end.Answer.Result != "Here." {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if got := len(model.Requests()); got != clients {
		t.Errorf("the model got %d requests, want %d", got, clients)
	}
}
