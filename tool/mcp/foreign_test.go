// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/mcp"
)

type forecast struct {
	Place string `json:"place"`
	Warm  bool   `json:"warm"`
}

// foreignServer is a server as a user of the SDK writes it, without knowledge of Drover.
func foreignServer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "v1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "forecast.get", Description: "how it will be", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in greetArgs) (*sdk.CallToolResult, forecast, error) {
			return nil, forecast{in.Name, true}, nil
		})
	answer := func(result *sdk.CallToolResult) sdk.ToolHandler {
		return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return result, nil }
	}
	object := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&sdk.Tool{Name: "mixed", InputSchema: object, Title: "Everything at once"}, answer(&sdk.CallToolResult{Content: []sdk.Content{
		&sdk.TextContent{Text: "one"},
		&sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
		&sdk.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"},
		&sdk.ResourceLink{URI: "file:///a", Name: "a"},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", Text: "two"}},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c", MIMEType: "x/y", Blob: []byte{1, 2}}},
	}}))
	server.AddTool(&sdk.Tool{Name: "broken", InputSchema: object}, answer(&sdk.CallToolResult{IsError: true}))
	server.AddTool(&sdk.Tool{Name: "wordless", InputSchema: object}, answer(&sdk.CallToolResult{StructuredContent: map[string]any{"n": 1}}))
	large := json.RawMessage(`{"n":9007199254740993}`)
	server.AddTool(&sdk.Tool{Name: "large", InputSchema: object}, answer(&sdk.CallToolResult{StructuredContent: large, Content: []sdk.Content{&sdk.TextContent{Text: string(large)}}}))
	server.AddTool(&sdk.Tool{Name: "large-wordless", InputSchema: object}, answer(&sdk.CallToolResult{StructuredContent: large}))
	server.AddTool(&sdk.Tool{Name: "odd", Description: "Odd.", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`), OutputSchema: json.RawMessage(`{"type":"array"}`)},
		answer(&sdk.CallToolResult{StructuredContent: []int{1}}))
	return server
}

// overHTTP serves a server of the SDK until the test ends.
func overHTTP(t testing.TB, server *sdk.Server) mcp.HTTP {
	t.Helper()
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
		web.Close()
	})
	return mcp.HTTP{URL: web.URL}
}

func TestImport_ForeignServer(t *testing.T) {
	for name, from := range map[string]func() mcp.Source{
		"stdio": func() mcp.Source { return child(t, "foreign") },
		"HTTP":  func() mcp.Source { return overHTTP(t, foreignServer()) },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			_, r, _ := imported(t, from(), &mcp.ImportOptions{Prefix: "w-", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			got := call(t, r, "w-forecast_get", `{"name":"Oslo"}`)
			if diff := cmp.Diff(map[string]any{"place": "Oslo", "warm": true}, value(t, got.Structured)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got := call(t, r, "w-forecast_get", `{"nome":"Oslo"}`); got.Err == nil || got.Err.Code != tool.CodeInvalidInput {
				t.Errorf("wrong arguments were not refused on this side: %s", got.Render())
			}
			mixed := call(t, r, "w-mixed", ``)
			if diff := cmp.Diff([]tool.Image{{Data: []byte("png"), MIMEType: "image/png"}}, mixed.Images); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			wantIn(t, mixed.Render(), "one\n", "audio/wav, 3 bytes", "a (file:///a)", "two", "file:///c, x/y, 2 bytes")
			if got := call(t, r, "w-broken", ``); got.Outcome != tool.Failed || got.Render() == "" {
				t.Errorf("outcome %q, text %q; want a failure with a text", got.Outcome, got.Render())
			}
			if got := call(t, r, "w-wordless", ``); got.Render() != `{"n":1}` || string(got.Structured) != `{"n":1}` {
				t.Errorf("text %q, structured %s", got.Render(), got.Structured)
			}
			if got := call(t, r, "w-large", ``); got.Render() != `{"n":9007199254740993}` || got.Structured != nil {
				t.Errorf("text %q, structured %s; want the text alone, since the structured value is rounded", got.Render(), got.Structured)
			}
			if got := call(t, r, "w-large-wordless", ``); got.Err == nil || got.Err.Code != tool.CodeInvalidOutput {
				t.Errorf("a rounded value was taken: %s", got.Render())
			}
			odd, ok := r.Lookup("w-odd")
			if !ok || odd.Input != nil || odd.Output != nil || !strings.Contains(odd.Description, "https://example.com/a") {
				t.Errorf("got %+v, want a tool that is not checked here and describes its arguments", odd)
			}
			wantIn(t, log.String(), "arguments of an imported tool are not checked", "tool=odd")
			if got := call(t, r, "w-odd", `{"a":1}`); got.Render() != "[1]" || got.Structured != nil {
				t.Errorf("text %q, structured %s", got.Render(), got.Structured)
			}
			if mixed, _ := r.Lookup("w-mixed"); mixed.Description != "Everything at once" {
				t.Errorf("a tool without a description is described as %q", mixed.Description)
			}
		})
	}
}

func TestImport_HintsLowerRisksOnlyWithTrust(t *testing.T) {
	const harm = tool.Mutates | tool.Dangerous
	yes, no := new(true), new(false)
	tests := []struct {
		name      string
		hints     *sdk.ToolAnnotations
		meta      sdk.Meta
		untrusted tool.Risk
		needs     tool.Capability
		trusted   tool.Risk
		trustedTo tool.Capability
	}{
		{"no annotations", nil, nil, harm, tool.NetworkAccess, harm, tool.NetworkAccess},
		{"read-only", &sdk.ToolAnnotations{ReadOnlyHint: true}, nil, harm, tool.NetworkAccess, tool.ReadOnly, tool.NetworkAccess},
		{"read-only in a closed world", &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no}, nil, harm, tool.NetworkAccess, tool.ReadOnly, 0},
		{"additive", &sdk.ToolAnnotations{DestructiveHint: no, OpenWorldHint: yes}, nil, harm, tool.NetworkAccess, tool.Mutates, tool.NetworkAccess},
		{"destructive", &sdk.ToolAnnotations{DestructiveHint: yes, OpenWorldHint: no}, nil, harm, tool.NetworkAccess, harm, 0},
		{"a contradiction", &sdk.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: yes}, nil, harm, tool.NetworkAccess, harm, tool.NetworkAccess},
		{"ours, harmless", nil, sdk.Meta{"drover/risk": map[string]any{"risk": []string{"readOnly"}, "needs": []string{"none"}}}, harm, tool.NetworkAccess, tool.ReadOnly, 0},
		{"ours, with a shell", nil, sdk.Meta{"drover/risk": map[string]any{"risk": []string{"mutates"}, "needs": []string{"shellExecute"}}}, harm, tool.NetworkAccess | tool.ShellExecute, tool.Mutates, tool.ShellExecute},
		{"ours, nonsense", nil, sdk.Meta{"drover/risk": 7}, harm, tool.NetworkAccess, harm, tool.NetworkAccess},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
			server.AddTool(&sdk.Tool{Name: "t", Annotations: tt.hints, Meta: tt.meta, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
			from := overHTTP(t, server)
			for _, trust := range []bool{false, true} {
				_, r, _ := imported(t, from, &mcp.ImportOptions{Trust: trust})
				got, _ := r.Lookup("t")
				risk, needs := tt.untrusted, tt.needs
				if trust {
					risk, needs = tt.trusted, tt.trustedTo
				}
				if got.Risks() != risk || got.Needs() != needs {
					t.Errorf("trust %t: got %s and %s, want %s and %s", trust, got.Risks(), got.Needs(), risk, needs)
				}
			}
		})
	}
}

func TestImport_AmbiguousToolsAreAnError(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "twins", Version: "1"}, nil)
	for _, name := range []string{"a.b", "a_b"} {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	}
	im, err := mcp.Import(t.Context(), overHTTP(t, server), nil)
	if err == nil {
		im.Close()
		t.Fatal("both were imported")
	}
	wantIn(t, err.Error(), `"a.b"`, `"a_b"`, "twins")
}

func TestImport_TakenIDIsAnError(t *testing.T) {
	r := tool.MustRegistry(nil, tool.Must[tool.None, any]("mixed", "Mine.", nil, tool.WithID("weather", "")))
	im, err := mcp.Import(t.Context(), overHTTP(t, foreignServer()), &mcp.ImportOptions{Registry: r})
	if err == nil {
		im.Close()
		t.Fatal("the tool was taken over")
	}
	wantIn(t, err.Error(), "weather:mixed")
	if n := len(r.Tools()); n != 1 {
		t.Errorf("%d tools are in the registry, want mine", n)
	}
	im, err = mcp.Import(t.Context(), overHTTP(t, foreignServer()), &mcp.ImportOptions{Registry: r, Name: "other", Adjust: func(t *tool.Tool) { t.Risk = tool.ReadOnly }})
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if got, ok := r.Lookup("other:mixed"); !ok || got.Risks() != tool.ReadOnly {
		t.Errorf("got %v, want the tool under another name and adjusted", got)
	}
}

// The SDK's client drops a tool with a wrong annotation and reports it only to its log.
func TestImport_DroppedToolIsReported(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		result := map[string]any{}
		switch req.Method {
		case "initialize":
			result = map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "s", "version": "1"}}
		case "tools/list":
			result["tools"] = []any{map[string]any{"name": "t", "inputSchema": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "object", "x-mcp-header": "A"}}}}}
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result})
	}))
	defer web.Close()
	im, err := mcp.Import(t.Context(), mcp.HTTP{URL: web.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if n := len(im.Tools()); n != 1 {
		t.Errorf("%d tools were imported, want 1", n)
	}
}

func TestImport_HeadersGoWithEachRequest(t *testing.T) {
	var without atomic.Int32
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return foreignServer() }, &sdk.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Asks") != "me" {
			without.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	defer web.Close()
	_, r, _ := imported(t, mcp.HTTP{URL: web.URL, Header: http.Header{"x-asks": {"me"}}, Client: web.Client()}, nil)
	if got := call(t, r, "wordless", ``); !got.OK() {
		t.Error(got.Render())
	}
	if n := without.Load(); n != 0 {
		t.Errorf("%d requests came without the header", n)
	}
}

// A foreign server would otherwise go on with a call that has no waiter. Without this the server is notified of
// the end only by chance, so it is tried many times.
func TestClose_CancelsCallsOfAForeignServer(t *testing.T) {
	for range 50 {
		started, ended := make(chan struct{}), make(chan error, 1)
		im, r, _ := imported(t, overHTTP(t, testServer(started, ended)), nil)
		done := make(chan tool.Result, 1)
		go func() { done <- call(t, r, "block", `{}`) }()
		<-started
		im.Close()
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the handler was not cancelled")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the handler goes on")
		}
		if got := <-done; got.OK() {
			t.Errorf("the call succeeded: %s", got.Render())
		}
	}
}
