// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/advice"
)

func rpcCall(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

func mustToolServer(t testing.TB, tools ...Tool) *ToolServer {
	t.Helper()
	s, err := NewToolServer("s", "1", nil, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// blocker is a tool that waits for its context and reports it.
func blocker(started chan<- string) Tool {
	return MustTool("block", "", func(ctx context.Context, _ struct{}) (ToolResult, error) {
		started <- ToolUseIDFromContext(ctx)
		<-ctx.Done()
		return ToolResult{}, ctx.Err()
	})
}

func TestMCPMux_UnknownServerIsNamed(t *testing.T) {
	b := newMCPBridge(t, map[string]*MCPInProcess{"calc": mustToolServer(t).Server()})
	got := b.ask("clac", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	for _, want := range []string{`"code":-32601`, `clac`, `calc`, `"id":3`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
	if got := b.ask("clac", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); got != string(rpcAck) {
		t.Errorf("notification: got %s", got)
	}
}

func TestMCPMux_ForeignHandlers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		handle func(context.Context, json.RawMessage) (json.RawMessage, error)
		want   string
	}{
		{"error", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, errors.New("dead") }, `dead`},
		{"panic", func(context.Context, json.RawMessage) (json.RawMessage, error) { panic("boom") }, `panic: boom`},
		{"no answer", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }, `gave no answer to ping. Before you repeat the call`},
		{"broken JSON", func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"a`), nil }, `not valid JSON`},
		{"folded JSON is made one line", func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage("{\n\"ok\": 1\r\n}"), nil
		}, `{"ok":1}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newMCPBridge(t, map[string]*MCPInProcess{"x": {Handle: tc.handle}})
			got := b.ask("x", `{"jsonrpc":"2.0","id":"q","method":"ping"}`)
			if !strings.Contains(got, tc.want) || strings.ContainsAny(got, "\r\n") || !json.Valid([]byte(got)) {
				t.Errorf("got %s, want %s in it, valid and on one line", got, tc.want)
			}
			if got := b.ask("x", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); got != string(rpcAck) {
				t.Errorf("notification: got %s", got)
			}
		})
	}
}

func TestMCPMux_CancelEndsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan string)
		b := newMCPBridge(t, map[string]*MCPInProcess{"a": mustToolServer(t, blocker(started)).Server(), "b": mustToolServer(t, blocker(started)).Server()})
		replies := map[string]chan string{"a": make(chan string, 1), "b": make(chan string, 1)}
		for server, reply := range replies { // the same id on two servers
			go func() { reply <- b.ask(server, rpcCall("5", "block", "{}")) }()
			<-started
		}
		if got := b.ask("a", rpcCall("5", "block", "{}")); !strings.Contains(got, "still running") {
			t.Errorf("a second call with the id of a running one: got %s", got)
		}
		b.ask("a", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}`) // a string is another id
		synctest.Wait()
		if len(replies["a"]) != 0 {
			t.Fatal("the wrong id cancelled the call")
		}
		b.ask("a", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"AbortError"}}`)
		if got := <-replies["a"]; !strings.Contains(got, "context canceled") {
			t.Errorf("cancelled call: got %s", got)
		}
		synctest.Wait()
		if len(replies["b"]) != 0 {
			t.Error("the call on the other server was cancelled too")
		}
		b.ask("b", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		<-replies["b"]
	})
}

// A cancellation may be read while the goroutine of its call has not run yet.
func TestMCPMux_CancelBeforeTheCallRuns(t *testing.T) {
	started := make(chan string, 1)
	b := newMCPBridge(t, map[string]*MCPInProcess{"a": mustToolServer(t, blocker(started)).Server()})
	run := b.mux.begin(t.Context(), "a", json.RawMessage(rpcCall("1", "block", "{}")))
	b.ask("a", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if got := string(run.run()); !strings.Contains(got, "context canceled") {
		t.Errorf("got %s", got)
	}
}

func TestMCPMux_ForeignServersReceiveCancellations(t *testing.T) {
	var received []string
	b := newMCPBridge(t, map[string]*MCPInProcess{"x": {Handle: func(_ context.Context, msg json.RawMessage) (json.RawMessage, error) {
		received = append(received, string(msg))
		return nil, nil
	}}})
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`
	b.ask("x", cancelled)
	if len(received) != 1 || received[0] != cancelled {
		t.Errorf("got %q", received)
	}
}

func TestMCPMux_CallsRunConcurrently(t *testing.T) {
	const n = 12
	var arrived sync.WaitGroup
	arrived.Add(n)
	meet := MustTool("meet", "", func(context.Context, struct{}) (ToolResult, error) {
		arrived.Done()
		arrived.Wait() // returns only if all are running at once
		return TextResult("met"), nil
	})
	b := newMCPBridge(t, map[string]*MCPInProcess{"s": mustToolServer(t, meet).Server()})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if got := b.ask("s", rpcCall(string(rune('a'+i)), "meet", "{}")); strings.Contains(got, "met") {
				t.Errorf("an id that is no JSON was taken: %s", got)
			}
			if got := b.ask("s", rpcCall(`"`+string(rune('a'+i))+`"`, "meet", "{}")); !strings.Contains(got, "met") {
				t.Errorf("got %s", got)
			}
		})
	}
	wg.Wait()
}

func TestMCPMux_CloseCancelsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan string)
		b := newMCPBridge(t, map[string]*MCPInProcess{"a": mustToolServer(t, blocker(started)).Server()})
		reply := make(chan string, 1)
		go func() { reply <- b.ask("a", rpcCall("1", "block", "{}")) }()
		<-started
		if err := b.mux.close(t.Context()); err != nil {
			t.Error(err)
		}
		<-reply
		if got := b.ask("a", rpcCall("2", "block", "{}")); !strings.Contains(got, "closing") {
			t.Errorf("after close: got %s", got)
		}
	})
}

func TestMCPMux_CloseAbandonsCallsAfterTheGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, release := make(chan struct{}), make(chan struct{})
		deaf := MustTool("deaf", "", func(context.Context, struct{}) (ToolResult, error) {
			close(started)
			<-release
			return TextResult("late"), nil
		})
		detached := false
		server := mustToolServer(t, deaf).Server()
		server.Attach = func(func(context.Context, json.RawMessage) error) func() { return func() { detached = true } }
		m := newMCPMux(map[string]*MCPInProcess{"a": server}, nil)
		m.attach(func(context.Context, string, json.RawMessage) error { return nil })
		go m.serve(t.Context(), "a", json.RawMessage(rpcCall("1", "deaf", "{}")))
		<-started
		begin := time.Now()
		err := m.close(t.Context())
		if err == nil || !strings.Contains(advice.Text(err), "a#1") {
			t.Errorf("got %v, want the call named", err)
		}
		if took := time.Since(begin); took != mcpGrace {
			t.Errorf("waited %s, want %s", took, mcpGrace)
		}
		if !detached {
			t.Error("the server was not detached")
		}
		close(release)
		synctest.Wait()
	})
}

func TestMCPMux_ListChangedReachesEveryClient(t *testing.T) {
	s := mustToolServer(t)
	one := newMCPBridge(t, map[string]*MCPInProcess{"s": s.Server()})
	two := newMCPBridge(t, map[string]*MCPInProcess{"s": s.Server()})
	noop := func(context.Context, struct{}) (ToolResult, error) { return TextResult("v1"), nil }
	if err := s.Add(MustTool("t", "", noop)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*mcpBridge{one, two} {
		if got := b.takeSent(); len(got) != 1 || !strings.Contains(got[0], "notifications/tools/list_changed") {
			t.Errorf("got %q", got)
		}
		if got := b.ask("s", rpcCall("1", "t", "{}")); !strings.Contains(got, "v1") {
			t.Errorf("got %s", got)
		}
	}
	if err := two.mux.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("t", "unknown"); err != nil {
		t.Fatal(err)
	}
	if len(one.takeSent()) != 1 || len(two.takeSent()) != 0 {
		t.Error("want the open client notified and the closed one not")
	}
	if err := s.Set(MustTool("u", "", noop), MustTool("u", "", noop)); err == nil || !strings.Contains(advice.Text(err), "twice") {
		t.Errorf("got %v", err)
	}
	if got := one.ask("s", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); !strings.Contains(got, `"tools":[]`) {
		t.Errorf("a refused change shows: %s", got)
	}
}

func TestMCPMux_AddAndRemoveServers(t *testing.T) {
	b := newMCPBridge(t, nil)
	s := mustToolServer(t)
	if err := b.mux.add("s", s.Server()); err != nil {
		t.Fatal(err)
	}
	if got := b.ask("s", `{"jsonrpc":"2.0","id":1,"method":"ping"}`); !strings.Contains(got, `"result":{}`) {
		t.Errorf("got %s", got)
	}
	if err := s.Set(); err != nil || len(b.takeSent()) != 1 {
		t.Errorf("the added server is not attached: %v", err)
	}
	b.mux.remove("s")
	if got := b.ask("s", `{"jsonrpc":"2.0","id":1,"method":"ping"}`); !strings.Contains(got, "No in-process MCP server") {
		t.Errorf("got %s", got)
	}
}

func TestMCPMux_Manifests(t *testing.T) {
	b := newMCPBridge(t, map[string]*MCPInProcess{
		"s": mustToolServer(t, goldenTools()...).Server(),
		"x": {Handle: func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }},
	})
	all, err := b.mux.manifests()
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	out, err := json.Marshal(all["s"])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"initializeResult":{"protocolVersion":"2025-11-25"`, `"toolsListResult":{"tools":[{"name":"sum"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
}

func TestReportProgress_FailsAfterTheCall(t *testing.T) {
	var kept context.Context
	keep := MustTool("keep", "", func(ctx context.Context, _ struct{}) (ToolResult, error) {
		kept = ctx
		return TextResult(""), nil
	})
	b := newMCPBridge(t, map[string]*MCPInProcess{"s": mustToolServer(t, keep).Server()})
	b.ask("s", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"keep","_meta":{"progressToken":"tok"}}}`)
	if err := ReportProgress(kept, 1, 0, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if got := b.takeSent(); len(got) != 0 {
		t.Errorf("sent %q", got)
	}
	if err := ReportProgress(t.Context(), 1, 0, ""); err != nil {
		t.Errorf("outside a call: %v", err)
	}
}

func FuzzMCPMux(f *testing.F) {
	f.Add([]byte(rpcCall("1", "sum", `{"a":1,"b":2}`)))
	f.Add([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":7}}`))
	f.Add([]byte(`{"id":1,"result":null}`))
	f.Add([]byte(`{"method":"notifications/cancelled","params":{"requestId":{}}}`))
	f.Add([]byte(`{"method":"tools/call","id":"\u0000","params":{"name":"raw","arguments":"\ud800","_meta":[]}}`))
	f.Add([]byte(`null`))
	f.Add([]byte("\xff{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		foreign := &MCPInProcess{Handle: func(_ context.Context, msg json.RawMessage) (json.RawMessage, error) { return msg, nil }}
		b := newMCPBridge(t, map[string]*MCPInProcess{"s": mustToolServer(t, goldenTools()...).Server(), "x": foreign})
		for _, server := range []string{"s", "x", "none"} {
			got := b.ask(server, string(raw))
			if !json.Valid([]byte(got)) || strings.ContainsAny(got, "\n\r") {
				t.Errorf("server %s: %q is not one line of JSON", server, got)
			}
		}
		for _, sent := range b.takeSent() {
			if !json.Valid([]byte(sent)) {
				t.Errorf("sent %q", sent)
			}
		}
		if len(b.mux.calls) != 0 {
			t.Errorf("%d calls are left", len(b.mux.calls))
		}
	})
}

// BenchmarkMCPCall is one call of a typed tool from the CLI's message to the answer.
func BenchmarkMCPCall(b *testing.B) {
	sum := MustTool("sum", "", func(_ context.Context, in sumArgs) (ToolResult, error) {
		return TextResult(string(rune('0' + in.A + in.B))), nil
	})
	bridge := newMCPBridge(b, map[string]*MCPInProcess{"s": mustToolServer(b, sum).Server()})
	msg := json.RawMessage(`{"method":"tools/call","params":{"name":"sum","arguments":{"a":1,"b":2},"_meta":{"claudecode/toolUseId":"toolu_0001","progressToken":2}},"jsonrpc":"2.0","id":2}`)
	b.ReportAllocs()
	for b.Loop() {
		bridge.mux.serve(context.Background(), "s", msg)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// serve answers one message of the CLI with the JSON for the mcp_response field.
func (m *mcpMux) serve(ctx context.Context, server string, raw json.RawMessage) json.RawMessage {
	serving := m.begin(ctx, server, raw)
	reply := serving.run()
	serving.answered()
	return reply
}
