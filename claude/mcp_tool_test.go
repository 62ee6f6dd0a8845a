// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
)

func TestMCPServer_Config(t *testing.T) {
	policies := []MCPToolPolicy{{Name: "sum", Policy: MCPAlwaysAllow}}
	for _, tc := range []struct {
		name   string
		server MCPServer
		want   string
	}{
		{"stdio", MCPStdio{Command: "srv", Args: []string{"-x"}, Env: map[string]string{"A": "b"}, Timeout: 2 * time.Second, AlwaysLoad: true}, `{"type":"stdio","command":"srv","args":["-x"],"env":{"A":"b"},"timeout":2000,"alwaysLoad":true}`},
		{"sse", MCPSSE{URL: "http://127.0.0.1/sse", Headers: map[string]string{"h": "v"}}, `{"type":"sse","url":"http://127.0.0.1/sse","headers":{"h":"v"}}`},
		{"http", MCPHTTP{URL: "http://127.0.0.1/mcp", Tools: policies}, `{"type":"http","url":"http://127.0.0.1/mcp","tools":[{"name":"sum","permission_policy":"always_allow"}]}`},
		{"in process", &MCPInProcess{Handle: func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }, Timeout: time.Minute, Tools: policies}, `{"type":"sdk","name":"n","timeout":60000,"tools":[{"name":"sum","permission_policy":"always_allow"}]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.server.validate(); err != nil {
				t.Error(err)
			}
			got, err := tc.server.configJSON("n")
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestMCPServer_InvalidConfigIsRefused(t *testing.T) {
	var none *MCPInProcess
	for _, tc := range []struct {
		name   string
		server MCPServer
		want   string
	}{
		{"no command", MCPStdio{}, "Command is empty"},
		{"short timeout", MCPStdio{Command: "x", Timeout: time.Millisecond}, "below one second"},
		{"relative URL", MCPHTTP{URL: "mcp"}, "absolute"},
		{"bad URL", MCPSSE{URL: ":"}, "URL"},
		{"bad policy", MCPSSE{URL: "http://127.0.0.1", Tools: []MCPToolPolicy{{Policy: "maybe"}}}, "Tools[0].Policy"},
		{"nothing to call", &MCPInProcess{}, "both Handle and Session are nil"},
		{"nil", none, "nil"},
	} {
		if err := tc.server.validate(); err == nil || !strings.Contains(advice.Text(err), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestNewToolServer_RefusesInvalidTools(t *testing.T) {
	ok := func(context.Context, json.RawMessage) (ToolResult, error) { return ToolResult{}, nil }
	for _, tc := range []struct {
		name string
		tool Tool
		want string
	}{
		{"name", Tool{Name: "a b", Handler: ok}, "Name"},
		{"handler", Tool{Name: "a"}, "Handler is nil"},
		{"schema", Tool{Name: "a", Handler: ok, InputSchema: schema.MustParse(`{"type":"string"}`)}, "InputSchema"},
		{"output", Tool{Name: "a", Handler: ok, OutputSchema: schema.MustParse(`true`)}, "OutputSchema"},
		{"meta", Tool{Name: "a", Handler: ok, Meta: map[string]any{"x": func() {}}}, "unsupported type"},
	} {
		if _, err := NewToolServer("s", "1", nil, tc.tool); err == nil || !strings.Contains(advice.Text(err), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
	if _, err := NewTool("t", "", func(context.Context, []int) (ToolResult, error) { return ToolResult{}, nil }); err == nil {
		t.Error("a tool whose arguments are a list was taken")
	}
	if _, err := NewTool("t", "", func(context.Context, chan int) (ToolResult, error) { return ToolResult{}, nil }); err == nil {
		t.Error("a tool whose arguments are a channel was taken")
	}
}

func TestToolResult_IsChecked(t *testing.T) {
	for _, tc := range []struct {
		name   string
		result ToolResult
		output string
		want   string
	}{
		{"empty", ToolResult{}, "", `"result":{"content":[]}`},
		{"error without words", ToolResult{IsError: true}, "", `check what it did."}],"isError":true`},
		{"image without data", ImageResult(nil, "image/png"), "", `result is malformed. Before you repeat the call, check what it did. Cause: field Content[0]: image content needs Data`},
		{"nil content", ToolResult{Content: []ToolContent{nil}}, "", `Content[0] is nil`},
		{"link without a name", ToolResult{Content: []ToolContent{ToolResourceLink{URI: "a"}}}, "", `needs URI and Name`},
		{"resource without an address", ToolResult{Content: []ToolContent{ToolResource{}}}, "", `needs URI`},
		{"broken structure", ToolResult{Structured: json.RawMessage(`{`)}, "", `not a JSON object`},
		{"blank structure", ToolResult{Structured: json.RawMessage(` `)}, "", `not a JSON object`},
		{"folded structure", ToolResult{Structured: json.RawMessage("\n{\"a\":\n1}\n")}, "", `"structuredContent":{"a":1}}`},
		{"meta that is no JSON", ToolResult{Meta: map[string]any{"f": func() {}}}, "", `Meta: json`},
		{"list as JSON stays text", JSONResult([]int{1}), "", `{"content":[{"type":"text","text":"[1]"}]}`},
		{"what is no JSON", JSONResult(func() {}), "", `cannot be encoded as JSON`},
		{"structure missing", TextResult("x"), `{"type":"object"}`, `returned no structured output`},
		{"structure wrong", JSONResult(map[string]any{"a": "x"}), `{"type":"object","properties":{"a":{"type":"integer"}}}`, `/a: must be an integer`},
		{"structure that the CLI would round", JSONResult(map[string]any{"id": int64(1)<<53 + 1}), "", `{"content":[{"type":"text","text":"{\"id\":9007199254740993}"}]}`},
		{"whole number that it would not", JSONResult(map[string]any{"id": int64(1) << 53}), "", `"structuredContent":{"id":9007199254740992}`},
		{"promise that the CLI would round", JSONResult(map[string]any{"id": int64(1)<<53 + 1}), `{"type":"object"}`, `must return it as a string. Before you repeat the call, check what it did."}],"isError":true`},
		{"error needs no structure", ErrorResult("no"), `{"type":"object"}`, `"text":"no"}],"isError":true`},
		{"odd characters", TextResult("a\x00\xff\u2028<&>\"\\\té"), "", `"text":"a\u0000\ufffd` + "\u2028" + `<&>\"\\\té"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tool := Tool{Name: "t", Handler: func(context.Context, json.RawMessage) (ToolResult, error) { return tc.result, nil }}
			if tc.output != "" {
				tool.OutputSchema = schema.MustParse(tc.output)
			}
			b := newMCPBridge(t, map[string]*MCPInProcess{"s": mustToolServer(t, tool).Server()})
			got := b.ask("s", rpcCall("1", "t", "null"))
			if !strings.Contains(got, tc.want) || !json.Valid([]byte(got)) {
				t.Errorf("got %s, want %s in it", got, tc.want)
			}
		})
	}
}

func TestToolArguments_RoundedWholeNumbersAreRefused(t *testing.T) {
	count := MustTool("count", "Counts.", func(_ context.Context, in struct{ N uint64 }) (ToolResult, error) { return JSONResult(in), nil })
	any := Tool{Name: "any", Handler: func(_ context.Context, args json.RawMessage) (ToolResult, error) {
		return TextResult(string(args)), nil
	}}
	b := newMCPBridge(t, map[string]*MCPInProcess{"s": mustToolServer(t, count, any).Server()})
	for args, ok := range map[string]bool{`{"N":9007199254740991}`: true, `{"N":9007199254740992}`: false, `{"N":1e300}`: false} {
		for _, tool := range []string{"count", "any"} {
			got := b.ask("s", rpcCall("1", tool, args))
			if refused := strings.Contains(got, "/N: must be between") && strings.Contains(got, `"isError":true`); refused == ok {
				t.Errorf("%s %s: %s", tool, args, got)
			}
		}
	}
}

// A tool server also works outside a client, by its Handle.
func TestToolServer_HandleWorksWithoutAClient(t *testing.T) {
	s := mustToolServer(t, goldenTools()...).Server()
	got, err := s.Handle(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","_meta":{"claudecode/toolUseId":"toolu_9"}}}`))
	if err != nil || !strings.Contains(string(got), "toolu_9") {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := s.Handle(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); got != nil || err != nil {
		t.Errorf("notification: got %s, %v", got, err)
	}
	if _, err := s.Handle(t.Context(), json.RawMessage(`{`)); err == nil {
		t.Error("broken JSON was taken")
	}
}
