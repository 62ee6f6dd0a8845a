// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/schema"
)

// mcpBridge acts as the CLI: it asks a mux and keeps what the servers send.
type mcpBridge struct {
	mux  *mcpMux
	deaf bool // it does not list tools that have changed
	mu   sync.Mutex
	sent []string
}

func newMCPBridge(t testing.TB, servers map[string]*MCPInProcess) *mcpBridge {
	t.Helper()
	b := &mcpBridge{mux: newMCPMux(servers, nil)}
	b.mux.attach(func(_ context.Context, server string, msg json.RawMessage) error {
		b.mu.Lock()
		b.sent = append(b.sent, string(msg))
		b.mu.Unlock()
		if !b.deaf && strings.Contains(string(msg), "notifications/tools/list_changed") {
			b.ask(server, listTools)
		}
		return nil
	})
	t.Cleanup(func() {
		if err := b.mux.close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

const listTools = `{"jsonrpc":"2.0","id":"list","method":"tools/list"}`

func (b *mcpBridge) ask(server, msg string) string {
	return string(b.mux.serve(context.Background(), server, json.RawMessage(msg)))
}

func (b *mcpBridge) takeSent() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	sent := b.sent
	b.sent = nil
	return sent
}

type sumArgs struct {
	A int `json:"a" doc:"first <number>"`
	B int `json:"b"`
}

func yes() *bool { b := true; return &b }

// goldenTools are the tools that the files under testdata/mcp speak to.
func goldenTools() []Tool {
	sum := MustTool("sum", "Add two numbers & say so.", func(ctx context.Context, in sumArgs) (ToolResult, error) {
		if err := ReportProgress(ctx, 1, 2, "half-way"); err != nil {
			return ToolResult{}, err
		}
		return JSONResult(map[string]int{"sum": in.A + in.B}), nil
	})
	sum.OutputSchema = schema.MustParse(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`)
	sum.Annotations = ToolAnnotations{ReadOnly: true, OpenWorld: yes()}
	sum.AlwaysLoad, sum.SearchHint, sum.MaxResultSizeChars = true, "add", 500000
	return []Tool{
		sum,
		MustTool("whoami", "Tell the id of the call.", func(ctx context.Context, _ struct{}) (ToolResult, error) {
			return TextResult(ToolUseIDFromContext(ctx)), nil
		}),
		MustTool("fail", "Fail.", func(context.Context, struct{}) (ToolResult, error) {
			return ToolResult{}, errors.New("it broke: \"quoted\"\nsecond line")
		}),
		MustTool("panic", "Panic.", func(context.Context, struct{}) (ToolResult, error) { panic("boom") }),
		MustTool("picture", "Show.", func(context.Context, struct{}) (ToolResult, error) {
			return ToolResult{Content: []ToolContent{
				ToolText("see"),
				ToolImage{[]byte{1, 2, 3}, "image/png"},
				ToolAudio{[]byte{4}, "audio/wav"},
				ToolResourceLink{URI: "file:///a", Name: "a", MIMEType: "text/plain"},
				ToolResource{URI: "file:///b", Text: "b"},
				ToolResource{URI: "file:///c", Blob: []byte{5}},
			}, Meta: map[string]any{"k": 1}}, nil
		}),
		{Name: "raw", Description: "Anything goes in, something bad comes out.", Handler: func(context.Context, json.RawMessage) (ToolResult, error) {
			return ToolResult{Structured: json.RawMessage(`[1]`)}, nil
		}},
	}
}

func TestMCP_Golden(t *testing.T) {
	files, err := filepath.Glob("testdata/mcp/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runMCPGolden(t, file) })
	}
}

func runMCPGolden(t *testing.T, file string) {
	golden := readGolden(t, file)
	s, err := NewToolServer("calc", "1.2.3", &ToolServerOptions{Instructions: "Use sum."}, goldenTools()...)
	if err != nil {
		t.Fatal(err)
	}
	b := newMCPBridge(t, map[string]*MCPInProcess{"calc": s.Server()})
	for i := 0; i+1 < len(golden.Files); i += 2 {
		from, to := golden.Files[i], &golden.Files[i+1]
		if from.Name != "from_cli" || to.Name != "to_cli" {
			t.Fatalf("sections %d and %d must be from_cli and to_cli", i, i+1)
		}
		var got strings.Builder
		for line := range strings.Lines(string(from.Data)) {
			reply := b.ask("calc", line)
			for _, out := range append(b.takeSent(), reply) {
				got.WriteString(out + "\n")
			}
		}
		if diff := cmp.Diff(string(to.Data), got.String()); diff != "" && !*update {
			t.Errorf("section %d (-want +got):\n%s", i+1, diff)
		}
		to.Data = []byte(got.String())
	}
	writeGolden(t, file, golden)
}
