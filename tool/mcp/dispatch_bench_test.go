// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/tool"
)

type sumArgs struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

func sum(_ context.Context, in sumArgs) (sumOut, error) { return sumOut{in.A + in.B}, nil }

var sumTool = tool.Must("sum", "Adds.", sum, tool.ReadOnly)

// BenchmarkDispatch is one call of the same function, by each of the ways to it. The first three are
// inside this process; "message" takes and gives JSON-RPC as the CLI's in-process servers do; "memory"
// adds the SDK's client and its in-memory transport.
func BenchmarkDispatch(b *testing.B) {
	b.Run("function", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if out, _ := sum(b.Context(), sumArgs{2, 3}); out.Sum != 5 {
				b.Fatal(out)
			}
		}
	})
	b.Run("Tool.Run", func(b *testing.B) {
		benchCall(b, func(call tool.Call) tool.Result { return sumTool.Run(context.Background(), call) })
	})
	b.Run("Registry.Execute", func(b *testing.B) {
		r := tool.MustRegistry(nil, sumTool)
		benchCall(b, func(call tool.Call) tool.Result { return r.Execute(context.Background(), call) })
	})
	b.Run("message/ToolServer", func(b *testing.B) {
		t := claude.MustTool("sum", "Adds.", func(ctx context.Context, in sumArgs) (claude.ToolResult, error) {
			out, err := sum(ctx, in)
			return claude.JSONResult(out), err
		})
		s, err := claude.NewToolServer("s", "1", nil, t)
		if err != nil {
			b.Fatal(err)
		}
		benchMessage(b, s.Server().Handle)
	})
	b.Run("message/registry in ToolServer", func(b *testing.B) {
		s, err := claudecode.NewSDKServer(tool.MustRegistry(nil, sumTool), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		benchMessage(b, s.Server().Handle)
	})
	b.Run("message/SDK AddTool, mounted", func(b *testing.B) { benchMounted(b, typedServer()) })
	b.Run("message/registry in SDK, mounted", func(b *testing.B) {
		s := NewServer(tool.MustRegistry(nil, sumTool), nil)
		defer s.Close()
		benchMounted(b, s.server)
	})
	b.Run("memory/SDK AddTool", func(b *testing.B) { benchMemory(b, typedServer()) })
	b.Run("memory/registry in SDK", func(b *testing.B) {
		s := NewServer(tool.MustRegistry(nil, sumTool), nil)
		defer s.Close()
		benchMemory(b, s.server)
	})
}

func typedServer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "sum", Description: "Adds."}, func(ctx context.Context, _ *sdk.CallToolRequest, in sumArgs) (*sdk.CallToolResult, sumOut, error) {
		out, err := sum(ctx, in)
		return nil, out, err
	})
	return server
}

func benchCall(b *testing.B, run func(tool.Call) tool.Result) {
	b.ReportAllocs()
	call := tool.Call{ID: "toolu_1", Name: "sum", Input: json.RawMessage(`{"a":2,"b":3}`)}
	for b.Loop() {
		if r := run(call); !r.OK() {
			b.Fatal(r.Render())
		}
	}
}

func benchMessage(b *testing.B, handle func(context.Context, json.RawMessage) (json.RawMessage, error)) {
	b.ReportAllocs()
	msg := json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","arguments":{"a":2,"b":3},"_meta":{"claudecode/toolUseId":"toolu_1"}}}`)
	for b.Loop() {
		if reply, err := handle(context.Background(), msg); err != nil || len(reply) == 0 {
			b.Fatal(string(reply), err)
		}
	}
}

func benchMounted(b *testing.B, server *sdk.Server) {
	handle, end := InProcess{server}.Open(func(context.Context, json.RawMessage) error { return nil })
	defer end()
	benchMessage(b, handle)
}

func benchMemory(b *testing.B, server *sdk.Server) {
	ctx := context.Background()
	ours, theirs := sdk.NewInMemoryTransports()
	if _, err := server.Connect(ctx, ours, nil); err != nil {
		b.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, nil).Connect(ctx, theirs, &sdk.ClientSessionOptions{ProtocolVersion: handshakeVersion})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	args := json.RawMessage(`{"a":2,"b":3}`)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "sum", Arguments: args}); err != nil || r.IsError {
			b.Fatal(r, err)
		}
	}
}
