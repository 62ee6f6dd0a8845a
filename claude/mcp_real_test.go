// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

type sumArgs struct {
	A int `json:"a" jsonschema:"minimum=0"`
	B int `json:"b"`
}

// recorded notes the methods of the messages that a server gets.
func recorded(s *claude.ToolServer) (*claude.MCPInProcess, func() []string) {
	inner := s.Server()
	var mu sync.Mutex
	var methods []string
	entry := &claude.MCPInProcess{Attach: inner.Attach, Manifest: inner.Manifest}
	entry.Handle = func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error) {
		var head struct {
			Method string `json:"method"`
		}
		_ = json.Unmarshal(msg, &head)
		mu.Lock()
		methods = append(methods, head.Method)
		mu.Unlock()
		return inner.Handle(ctx, msg)
	}
	return entry, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(methods)
	}
}

func TestMCPInProcess_SeveralServersInOneRun(t *testing.T) {
	for name, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(name, func(t *testing.T) {
			cli := get(t)
			model := claudetest.NewModel(t,
				script.Reply(script.ToolCall{ID: "toolu_sum", Name: "mcp__calc__sum", Input: script.Input{"a": 2, "b": 3}}, script.ToolCall{Name: "mcp__clock__now"}),
				script.Call("mcp__calc__sum", script.Input{"a": "two", "c": true}),
				script.Text("Done."))
			var ids, reached []string
			sum := claude.MustTool("sum", "adds", func(ctx context.Context, in sumArgs) (claude.ToolResult, error) {
				ids = append(ids, claude.ToolUseIDFromContext(ctx))
				reached = append(reached, "call")
				return claude.JSONResult(in.A + in.B), nil
			})
			calc, calcGot := recorded(toolServer(t, sum))
			clock, _ := recorded(toolServer(t, fixedTool("now", claude.TextResult("noon"))))
			c := claudetest.Connect(t, withTools(cli.Options(model), map[string]claude.MCPServer{"calc": calc, "clock": clock}))
			if end, _ := turn(t, c, "add"); end.Answer.Result != "Done." {
				t.Errorf("answer %q", end.Answer.Result)
			}
			first := model.Requests()[1]
			if text, failed, _ := first.ToolResult("mcp__calc__sum"); failed || text != "5" {
				t.Errorf("the model saw %q of sum", text)
			}
			if text, failed, _ := first.ToolResult("mcp__clock__now"); failed || text != "noon" {
				t.Errorf("the model saw %q of the other server", text)
			}
			if len(reached) != 1 || ids[0] != "toolu_sum" {
				t.Errorf("the handler ran for %v, want once, for toolu_sum: wrong arguments must not reach it", ids)
			}
			text, failed, _ := model.ToolResult("mcp__calc__sum")
			if !failed || !strings.Contains(text, "/a") && !strings.Contains(text, `"a"`) || !strings.Contains(text, "b") || !strings.Contains(text, "c") {
				t.Errorf("the model saw %q (failed: %t), want every fault of the arguments", text, failed)
			}
			checkHandshake(t, cli, c, calcGot())
		})
	}
}

// checkHandshake checks that a CLI that knows manifests asked for nothing but calls.
func checkHandshake(t *testing.T, cli *claudetest.RealCLI, c *claude.Client, methods []string) {
	t.Helper()
	skipped := !slices.Contains(methods, "initialize") && !slices.Contains(methods, "tools/list")
	if knows := cli.Version == claude.PinnedVersion; skipped != knows {
		t.Errorf("CLI %s asked %v; handshake skipped: %t, want %t", cli.Version, methods, skipped, knows)
	}
	if cli.Version != claude.PinnedVersion {
		return
	}
	if got := c.Initialized().MCPManifestsParked; got["calc"] != "parked" || got["clock"] != "parked" {
		t.Errorf("manifests %v, want both parked", got)
	}
}

// Tools that only read run side by side: each of these waits until all have begun.
func TestTool_ReadOnlyCallsRunConcurrently(t *testing.T) {
	cli := claudetest.CLI(t)
	const calls = 4
	var blocks []script.Block
	for range calls {
		blocks = append(blocks, script.ToolCall{Name: "mcp__tools__meet"})
	}
	model := claudetest.NewModel(t, script.Reply(blocks...), script.Text("Met."))
	var here sync.WaitGroup
	here.Add(calls)
	meet := claude.MustTool("meet", "", func(ctx context.Context, _ struct{}) (claude.ToolResult, error) {
		here.Done()
		all := make(chan struct{})
		go func() { here.Wait(); close(all) }()
		select {
		case <-all:
			return claude.TextResult("met"), nil
		case <-ctx.Done():
			return claude.ToolResult{}, ctx.Err()
		}
	})
	meet.Annotations.ReadOnly = true
	opts := withTools(cli.Options(model), map[string]claude.MCPServer{"tools": toolServer(t, meet).Server()})
	turn(t, claudetest.Connect(t, opts), "go")
	for _, r := range model.LastRequest().ToolResults("mcp__tools__meet") {
		if r.IsError || r.Text != "met" {
			t.Errorf("a call gave %q", r.Text)
		}
	}
}

func TestInterrupt_CancelsATool(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("mcp__tools__wait", nil), script.Text("Next."))
	started, ended := make(chan error, 1), make(chan error, 1)
	wait := claude.MustTool("wait", "", func(ctx context.Context, _ struct{}) (claude.ToolResult, error) {
		started <- claude.ReportProgress(ctx, 1, 2, "half way")
		<-ctx.Done()
		ended <- ctx.Err()
		return claude.ToolResult{}, ctx.Err()
	})
	c := claudetest.Connect(t, withTools(cli.Options(model), map[string]claude.MCPServer{"tools": toolServer(t, wait).Server()}))
	go func() {
		if err := <-started; err != nil {
			t.Errorf("ReportProgress: %v", err)
		}
		if _, err := c.Interrupt(t.Context()); err != nil {
			t.Errorf("Interrupt: %v", err)
		}
	}()
	end, _, err := collect(c.Turn(t.Context(), claude.Text("wait")))
	if end == nil || err == nil {
		t.Errorf("the interrupted turn ended with %v, %v", end, err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Errorf("the tool's context ended without an error")
		}
	case <-time.After(time.Minute):
		t.Errorf("the tool was not cancelled")
	}
	if end, _ := turn(t, c, "go on"); end.Answer.Result != "Next." {
		t.Errorf("after the interrupt: %q", end.Answer.Result)
	}
}

// A tool that is added while a tool runs, and servers that are set while the client runs, can be
// called in the next turn.
func TestToolServer_ToolsAndServersChangeDuringTheRun(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("mcp__tools__grow", nil), script.Text("Grown."),
		script.Call("mcp__tools__fresh", nil), script.Text("Used."),
		script.Call("mcp__other__hello", nil), script.Call("mcp__tools__grow", nil), script.Text("Switched."),
		script.Text("Hooked."))
	var server *claude.ToolServer
	grow := claude.MustTool("grow", "", func(context.Context, struct{}) (claude.ToolResult, error) {
		err := server.Add(fixedTool("fresh", claude.TextResult("fresh as paint")))
		return claude.TextResult("grown"), err
	})
	server = toolServer(t, grow)
	opts := withTools(cli.Options(model), map[string]claude.MCPServer{"tools": server.Server()})
	opts.AllowedTools = append(opts.AllowedTools, "mcp__other")
	c := claudetest.Connect(t, opts)
	turn(t, c, "grow")
	turn(t, c, "use it")
	if text, failed, _ := model.ToolResult("mcp__tools__fresh"); failed || text != "fresh as paint" {
		t.Errorf("the model saw %q of the tool that was added", text)
	}

	change, err := c.SetMCPServers(t.Context(), map[string]claude.MCPServer{"other": toolServer(t, fixedTool("hello", claude.TextResult("hello from the new one"))).Server()})
	if err != nil || !slices.Contains(change.Added, "other") || !slices.Contains(change.Removed, "tools") || len(change.Errors) > 0 {
		t.Errorf("SetMCPServers: %+v, %v; want other added and tools removed", change, err)
	}
	turn(t, c, "switch")
	if text, failed, _ := model.ToolResult("mcp__other__hello"); failed || text != "hello from the new one" {
		t.Errorf("the model saw %q of the server that was set", text)
	}
	if text, failed, _ := model.ToolResult("mcp__tools__grow"); !failed {
		t.Errorf("a tool of the server that was taken away still gave %q", text)
	}
	if err := server.Add(fixedTool("later", claude.TextResult("x"))); err != nil {
		t.Errorf("a server that was taken away cannot change its tools: %v", err)
	}
	if err := c.SetHooks(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	turn(t, c, "are they back?") // the CLI connects servers behind its answer to the handshake
	if names := connectedServers(t, c); !slices.Equal(names, []string{"other"}) {
		t.Errorf("after SetHooks the servers are %v, want other alone", names)
	}
}

func connectedServers(t testing.TB, c *claude.Client) []string {
	t.Helper()
	status, err := c.MCPStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range status {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// With tool search on, a tool is hidden behind it unless it is always loaded.
func TestTool_AlwaysLoadIsNotHiddenByToolSearch(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("mcp__tools__ready", nil), script.Text("Done."))
	ready := fixedTool("ready", claude.TextResult("here"))
	ready.AlwaysLoad = true
	opts := cli.Options(model)
	opts.MCPServers = map[string]claude.MCPServer{"tools": toolServer(t, ready, fixedTool("hidden", claude.TextResult("there"))).Server()}
	opts.AllowedTools = []string{"mcp__tools"}
	turn(t, claudetest.Connect(t, opts), "go")
	request := model.Requests()[0]
	if tool, ok := request.Tool("mcp__tools__ready"); !ok || tool.DeferLoading {
		t.Errorf("the tool that is always loaded is offered: %t, deferred: %t", ok, tool.DeferLoading)
	}
	if tool, ok := request.Tool("mcp__tools__hidden"); ok && !tool.DeferLoading {
		t.Errorf("the other tool is offered too, so that this test shows nothing")
	}
	if text, _, _ := model.ToolResult("mcp__tools__ready"); text != "here" {
		t.Errorf("the model saw %q", text)
	}
}
