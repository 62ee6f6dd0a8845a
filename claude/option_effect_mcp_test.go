// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func init() {
	// A stdio server of MCP: the lines of a script are messages like any other.
	processScripts["option-mcp"] = func(s *claudetest.ScriptSession) {
		handle := echoServer("stdio").Handle
		for {
			f, ok := s.Read()
			if !ok {
				return
			}
			go func() {
				if reply, err := handle(context.Background(), json.RawMessage(f.Raw)); err == nil && reply != nil {
					s.Line(string(reply))
				}
			}()
		}
	}
}

// echoServer has a tool that returns the server's name, a variable and its arguments, and one that never
// answers.
func echoServer(name string) *claude.MCPInProcess {
	echo := claude.Tool{Name: "echo", Description: "Echo of " + name, Handler: func(context.Context, json.RawMessage) (claude.ToolResult, error) {
		return claude.TextResult(fmt.Sprintf("%s says %s with %q", name, os.Getenv("MCP_GREETING"), os.Args[1:])), nil
	}}
	hang := claude.Tool{Name: "hang", Description: "Hangs.", Handler: func(ctx context.Context, _ json.RawMessage) (claude.ToolResult, error) {
		<-ctx.Done()
		return claude.ToolResult{}, ctx.Err()
	}}
	server, err := claude.NewToolServer(name, "1", nil, echo, hang)
	if err != nil {
		panic(err)
	}
	return server.Server()
}

// A webServer speaks both of MCP's transports over HTTP, and records the header "X-Greeting".
type webServer struct {
	*httptest.Server
	mu       sync.Mutex
	greeting []string
	stream   chan []byte
}

func newWebServer(t *testing.T, name string) *webServer {
	t.Helper()
	w := &webServer{stream: make(chan []byte, 16)}
	server := echoServer(name)
	mux := http.NewServeMux()
	post := func(reply func(http.ResponseWriter, []byte)) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			w.mu.Lock()
			w.greeting = append(w.greeting, r.Header.Get("X-Greeting"))
			w.mu.Unlock()
			body, _ := io.ReadAll(r.Body)
			answer, err := server.Handle(r.Context(), body)
			if err != nil || answer == nil {
				rw.WriteHeader(http.StatusAccepted)
				return
			}
			reply(rw, answer)
		}
	}
	mux.HandleFunc("POST /mcp", post(func(rw http.ResponseWriter, answer []byte) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(answer)
	}))
	mux.HandleFunc("GET /sse", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, "event: endpoint\ndata: /messages\n\n")
		for {
			rw.(http.Flusher).Flush()
			select {
			case m := <-w.stream:
				_, _ = fmt.Fprintf(rw, "event: message\ndata: %s\n\n", m)
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /messages", post(func(rw http.ResponseWriter, answer []byte) {
		w.stream <- answer
		rw.WriteHeader(http.StatusAccepted)
	}))
	w.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Close()
	})
	return w
}

func (w *webServer) greeted(want string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.greeting, want)
}

// mcpCalls calls the echo of every server, then hangs in every server.
func mcpCalls(tool string, servers ...string) script.Turn {
	var calls []script.Block
	for _, s := range servers {
		calls = append(calls, script.ToolCall{Name: "mcp__" + s + "__" + tool})
	}
	return script.Reply(calls...)
}

func mcpEffects() []optionEffect {
	outside := []string{"stdio", "http", "sse"}
	var web, events *webServer
	self, _ := os.Executable()
	return []optionEffect{
		{
			name:  "servers outside",
			turns: []script.Turn{mcpCalls("echo", "stdio", "http", "sse", "config"), mcpCalls("hang", outside...), script.Text("ok")},
			set: func(t *testing.T, r *effectRun) {
				web, events = newWebServer(t, "http"), newWebServer(t, "sse")
				headers := map[string]string{"X-Greeting": "hello"}
				r.opts.MCPServers = map[string]claude.MCPServer{
					"stdio": claude.MCPStdio{
						Command: self, Args: []string{"-with", "two words"}, Timeout: time.Second, AlwaysLoad: true,
						Env: map[string]string{scriptVariable: "option-mcp", "MCP_GREETING": "hello"},
					},
					"http": claude.MCPHTTP{URL: web.URL + "/mcp", Headers: headers, Timeout: time.Second, AlwaysLoad: true},
					"sse":  claude.MCPSSE{URL: events.URL + "/sse", Headers: headers, Timeout: time.Second, AlwaysLoad: true},
				}
				config, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"config": map[string]any{"command": self, "env": map[string]string{scriptVariable: "option-mcp"}}}})
				r.opts.MCPConfig = string(config)
				r.write(t, "work/.mcp.json", `{"mcpServers":{"project":{"command":"cat"}}}`)
				r.opts.SettingSources, r.opts.StrictMCP = nil, true
				r.opts.AllowedTools = []string{"mcp__stdio", "mcp__http", "mcp__sse", "mcp__config"}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"Options.MCPServers":  toolReturned("mcp__stdio__echo", "stdio says"),
				"Options.MCPConfig":   toolReturned("mcp__config__echo", "stdio says"),
				"Options.StrictMCP":   equal("the project's server", func(t *testing.T, r *effectRun) bool { return slices.Contains(r.mcpNames(t), "project") }, false),
				"MCPStdio.Command":    toolReturned("mcp__stdio__echo", "stdio says"),
				"MCPStdio.Args":       toolReturned("mcp__stdio__echo", `["-with" "two words"]`),
				"MCPStdio.Env":        toolReturned("mcp__stdio__echo", "says hello"),
				"MCPStdio.Timeout":    toolTimedOut("mcp__stdio__hang"),
				"MCPHTTP.URL":         toolReturned("mcp__http__echo", "http says"),
				"MCPHTTP.Headers":     equal("the header", func(_ *testing.T, _ *effectRun) bool { return web.greeted("hello") }, true),
				"MCPHTTP.Timeout":     toolTimedOut("mcp__http__hang"),
				"MCPSSE.URL":          toolReturned("mcp__sse__echo", "sse says"),
				"MCPSSE.Headers":      equal("the header", func(_ *testing.T, _ *effectRun) bool { return events.greeted("hello") }, true),
				"MCPSSE.Timeout":      toolTimedOut("mcp__sse__hang"),
				"MCPStdio.AlwaysLoad": loaded("mcp__stdio__echo"),
				"MCPHTTP.AlwaysLoad":  loaded("mcp__http__echo"),
				"MCPSSE.AlwaysLoad":   loaded("mcp__sse__echo"),
			},
		},
		{
			name:  "policies of servers outside",
			turns: []script.Turn{mcpCalls("echo", "http", "sse", "inside"), script.Text("ok")},
			set: func(t *testing.T, r *effectRun) {
				web, events = newWebServer(t, "http"), newWebServer(t, "sse")
				deny := []claude.MCPToolPolicy{{Name: "echo", Policy: claude.MCPAlwaysDeny}}
				r.opts.MCPServers = map[string]claude.MCPServer{
					"http": claude.MCPHTTP{URL: web.URL + "/mcp", Tools: deny, AlwaysLoad: true}, "sse": claude.MCPSSE{URL: events.URL + "/sse", Tools: deny, AlwaysLoad: true},
				}
				r.opts.MCPServers["inside"] = echoServer("inside")
				r.opts.AllowedTools = []string{"mcp__http", "mcp__sse", "mcp__inside"}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"MCPHTTP.Tools": func(t *testing.T, r *effectRun) {
					toolDenied("mcp__http__echo")(t, r)
					toolReturned("mcp__inside__echo", "inside says")(t, r)
				},
				"MCPSSE.Tools":         toolDenied("mcp__sse__echo"),
				"MCPToolPolicy.Name":   toolDenied("mcp__http__echo"),
				"MCPToolPolicy.Policy": toolDenied("mcp__http__echo"),
			},
		},
		{
			name:  "servers inside",
			turns: []script.Turn{mcpCalls("echo", "plain", "session"), script.Text("ok")},
			set: func(_ *testing.T, r *effectRun) {
				session, plain := echoServer("session"), echoServer("plain")
				r.opts.MCPServers = map[string]claude.MCPServer{
					"plain": &claude.MCPInProcess{Handle: plain.Handle, Manifest: plain.Manifest},
					"session": &claude.MCPInProcess{Session: func(func(context.Context, json.RawMessage) error) claude.MCPSession {
						return claude.MCPSession{Handle: session.Handle}
					}},
				}
				r.opts.AllowedTools = []string{"mcp__plain", "mcp__session"}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"MCPInProcess.Handle":          toolReturned("mcp__plain__echo", "plain says"),
				"MCPInProcess.Session":         toolReturned("mcp__session__echo", "session says"),
				"MCPInProcess.Manifest":        parked,
				"MCPManifest.InitializeResult": parked,
				"MCPManifest.ToolsListResult":  parked,
			},
		},
		{
			name: "limits of servers inside", newOnly: true,
			turns: []script.Turn{mcpCalls("hang", "s"), mcpCalls("echo", "s"), script.Text("ok")},
			set: func(_ *testing.T, r *effectRun) {
				s := echoServer("s")
				s.Timeout, s.Tools = time.Second, []claude.MCPToolPolicy{{Name: "echo", Policy: claude.MCPAlwaysDeny}}
				r.opts.MCPServers = map[string]claude.MCPServer{"s": s}
				r.opts.AllowedTools = []string{"mcp__s"}
			},
			checks: map[string]func(*testing.T, *effectRun){
				"MCPInProcess.Timeout": toolTimedOut("mcp__s__hang"),
				"MCPInProcess.Tools":   toolDenied("mcp__s__echo"),
			},
		},
	}
}

func toolTimedOut(tool string) func(*testing.T, *effectRun) {
	return func(t *testing.T, r *effectRun) {
		t.Helper()
		if text, isError, _ := r.model.ToolResult(tool); !isError || !strings.Contains(strings.ToLower(text), "timed out") && !strings.Contains(strings.ToLower(text), "timeout") {
			t.Errorf("the model saw %q of %s, want that it took too long", text, tool)
		}
	}
}

func toolDenied(tool string) func(*testing.T, *effectRun) {
	return func(t *testing.T, r *effectRun) {
		t.Helper()
		if text, isError, _ := r.model.ToolResult(tool); !isError {
			t.Errorf("the model saw %q of %s, want a denial", text, tool)
		}
	}
}

// loaded checks that a tool is offered whole and not behind tool search.
func loaded(tool string) func(*testing.T, *effectRun) {
	return func(t *testing.T, r *effectRun) {
		t.Helper()
		if offered, ok := r.first(t).Tool(tool); !ok || offered.DeferLoading {
			t.Errorf("%s is offered: %v, deferred: %v; want it from the start", tool, ok, offered.DeferLoading)
		}
	}
}

// parked checks that the manifest was taken where manifests are known, and did no harm elsewhere.
func parked(t *testing.T, r *effectRun) {
	if got := r.client.Initialized().MCPManifestsParked["plain"]; !r.old && got != "parked" {
		t.Errorf("the manifest was %q, want parked", got)
	}
	toolReturned("mcp__plain__echo", "plain says")(t, r)
}
