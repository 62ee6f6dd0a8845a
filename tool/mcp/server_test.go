// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/tool/mcp"
)

// A wire is a client of a served registry that writes its lines by hand.
type wire struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
	ended chan error
}

// serveWire serves over pipes like those of a child.
func serveWire(ctx context.Context, t *testing.T, r *tool.Registry, opts mcp.ServeOptions) *wire {
	t.Helper()
	in, toServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromServer, out := io.Pipe()
	w := &wire{t: t, in: toServer, lines: bufio.NewScanner(fromServer), ended: make(chan error, 1)}
	opts.In, opts.Out = in, out
	go func() {
		w.ended <- mcp.Serve(ctx, r, &opts)
		_ = out.Close()
		close(w.ended)
	}()
	t.Cleanup(w.close)
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	return w
}

// close reads the rest of the server's output. It may be called again.
func (w *wire) close() {
	_ = w.in.Close()
	for w.lines.Scan() {
	}
	for range w.ended {
	}
}

func (w *wire) send(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) read() string {
	w.t.Helper()
	if !w.lines.Scan() {
		w.t.Fatalf("the server closed: %v", w.lines.Err())
	}
	return w.lines.Text()
}

func (w *wire) ready() {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (w *wire) call(id int, name, rest string) string {
	w.t.Helper()
	return w.callWith(id, name, `{}`, rest)
}

func (w *wire) callWith(id int, name, arguments, rest string) string {
	w.t.Helper()
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, name, arguments, rest))
	return w.read()
}

func TestServe_Initialize(t *testing.T) {
	tests := []struct {
		name string
		opts mcp.ServeOptions
		want []string
	}{
		{"defaults", mcp.ServeOptions{}, []string{`"name":"drover"`, `"version":"0.0.0"`, `"listChanged":true`}},
		{"options", mcp.ServeOptions{Name: "n", Version: "v", Instructions: "Be nice."}, []string{`"name":"n"`, `"version":"v"`, `"instructions":"Be nice."`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			w := serveWire(t.Context(), t, tool.MustRegistry(nil), tt.opts)
			wantIn(t, w.read(), tt.want...)
			_ = w.in.Close()
			if err := <-w.ended; err != nil {
				t.Errorf("closing the input gave %v", err)
			}
		})
	}
}

func TestServe_ListHasTheWholeDeclaration(t *testing.T) {
	w := serveWire(t.Context(), t, newFixture().registry, mcp.ServeOptions{})
	w.read()
	w.ready()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var reply struct {
		Result struct{ Tools []map[string]any }
	}
	if err := json.Unmarshal([]byte(w.read()), &reply); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, tl := range reply.Result.Tools {
		got[tl["name"].(string)] = tl
	}
	want := map[string]any{
		"name": "echo", "title": "Echo", "description": "Says it again.",
		"annotations": map[string]any{"title": "Echo", "readOnlyHint": true, "idempotentHint": false},
		"_meta":       map[string]any{"drover/risk": map[string]any{"risk": []any{"readOnly"}, "needs": []any{"none"}}},
		"inputSchema": map[string]any{
			"type": "object", "required": []any{"text"}, "additionalProperties": false,
			"properties": map[string]any{"text": map[string]any{"type": "string", "description": "what to say"}, "times": map[string]any{"type": "integer", "description": "how often"}},
		},
		"outputSchema": map[string]any{
			"type": "object", "required": []any{"text", "length"}, "additionalProperties": false,
			"properties": map[string]any{"text": map[string]any{"type": "string"}, "length": map[string]any{"type": "integer"}},
		},
	}
	if diff := cmp.Diff(want, got["echo"]); diff != "" {
		t.Errorf("echo (-want +got)\n%s", diff)
	}
	hints := got["wipe"].(map[string]any)["annotations"]
	if diff := cmp.Diff(map[string]any{"readOnlyHint": false, "idempotentHint": false, "destructiveHint": true, "openWorldHint": true}, hints); diff != "" {
		t.Errorf("wipe (-want +got)\n%s", diff)
	}
	if got["declared"] != nil {
		t.Error("a tool without a handler is listed")
	}
	if got["secret"].(map[string]any)["outputSchema"] != nil {
		t.Error("a hidden value has an output schema")
	}
}

func TestServe_Results(t *testing.T) {
	r := newFixture().registry
	rendered := func(context.Context, tool.None) (note, error) { return note{"x"}, nil }
	promised := schema.MustParse(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	count := func(_ context.Context, in counted) (counted, error) { return counted{in.ID + 2}, nil }
	if err := r.Add(tool.Must("count", "Counts.", count)); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(tool.Must("note", "Renders itself.", rendered), tool.Must("promised", "Renders itself.", rendered, tool.WithOutput(promised))); err != nil {
		t.Fatal(err)
	}
	w := serveWire(t.Context(), t, r, mcp.ServeOptions{})
	w.read()
	w.ready()
	wantIn(t, w.call(1, "ask", ""), `"isError":true`, "needs approval", "Ask the owner.")
	wantIn(t, w.call(2, "clash", ""), `"isError":true`, "Somebody else has it")
	wantIn(t, w.call(3, "echo", ""), `"isError":true`, "Validation error", "text")
	wantIn(t, w.call(4, "draw", ""), `"type":"image"`, `"mimeType":"image/png"`, `"data":"AQID"`)
	if got := w.call(5, "note", ""); !strings.Contains(got, "the note x") || strings.Contains(got, "structuredContent") {
		t.Errorf("%s: a value that renders itself is its text, where nothing else is promised", got)
	}
	wantIn(t, w.call(8, "promised", ""), `the note x`, `"structuredContent":{"text":"x"}`)
	wantIn(t, w.callWith(9, "count", `{"id":9007199254740991}`, ""), `"structuredContent":{"id":9007199254740993}`)
	wantIn(t, w.callWith(10, "count", `{"id":9007199254740992}`, ""), `"isError":true`, "/id: must be between")
	wantIn(t, w.call(6, "declared", ""), `"error"`, "declared")
	first := w.call(7, "steps", `,"_meta":{"progressToken":"p"}`)
	wantIn(t, first, `notifications/progress`, `"progressToken":"p"`, `"progress":1`, `"total":3`)
}

type counted struct {
	ID int64 `json:"id"`
}

type note struct {
	Text string `json:"text"`
}

func (n note) Render() string { return "the note " + n.Text }

func TestServe_AsksTheDeciderOfTheRegistry(t *testing.T) {
	ran := false
	no := tool.DeciderFunc(func(context.Context, event.ToolCall) event.Decision { return event.Decision{Reason: "not today"} })
	r := tool.MustRegistry(&tool.Options{Decider: no}, tool.Must("t", "T.", func(context.Context, tool.None) (any, error) { ran = true; return nil, nil }))
	w := serveWire(t.Context(), t, r, mcp.ServeOptions{})
	w.read()
	w.ready()
	wantIn(t, w.call(1, "t", ""), `"isError":true`, "not today", `"outcome":"denied"`)
	if ran {
		t.Error("the handler ran")
	}
}

func TestServe_AnnouncesChanges(t *testing.T) {
	r := tool.MustRegistry(nil)
	w := serveWire(t.Context(), t, r, mcp.ServeOptions{})
	w.read()
	w.ready()
	listed := func() string {
		w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		return w.read()
	}
	wantIn(t, listed(), `"tools":[]`)
	echoing := func(text string) *tool.Tool {
		return tool.Must("t", text, func(context.Context, tool.None) (string, error) { return text, nil })
	}
	changes := []struct {
		name   string
		change func() error
		want   string
	}{
		{"added", func() error { return r.Add(echoing("one")) }, `"description":"one"`},
		{"replaced", func() error { return r.Replace(echoing("two")) }, `"description":"two"`},
		{"no longer served", func() error { return r.Replace(tool.Must[tool.None, any]("t", "three", nil)) }, `"tools":[]`},
		{"served again", func() error { return r.Replace(echoing("four")) }, `"description":"four"`},
		{"removed", func() error { r.Remove("t"); return nil }, `"tools":[]`},
	}
	for _, tt := range changes {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		wantIn(t, w.read(), "notifications/tools/list_changed")
		if got := listed(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// The SDK panics over such a schema; the others must be served all the same.
func TestServe_LogsAToolThatCannotBeServed(t *testing.T) {
	strange := tool.Must("strange", "S.", func(context.Context, map[string]any) (any, error) { return nil, nil }, tool.WithInput(schema.MustParse(`{"type":["object"]}`)))
	fine := tool.Must("fine", "F.", func(context.Context, tool.None) (any, error) { return nil, nil })
	var log strings.Builder
	w := serveWire(t.Context(), t, tool.MustRegistry(nil, strange, fine), mcp.ServeOptions{Logger: textLogger(&log)})
	w.read()
	w.ready()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got := w.read(); strings.Contains(got, "strange") || !strings.Contains(got, "fine") {
		t.Errorf("got %s", got)
	}
	w.close()
	wantIn(t, log.String(), "a tool cannot be served", "strange")
}

func TestServe_ItsEndCancelsCalls(t *testing.T) {
	for _, name := range []string{"the input closes", "the context ends"} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f := newFixture()
			w := serveWire(ctx, t, f.registry, mcp.ServeOptions{})
			w.read()
			w.ready()
			wantIn(t, w.call(1, "block", `,"_meta":{"progressToken":1}`), "notifications/progress")
			if name == "the context ends" {
				cancel()
			} else {
				_ = w.in.Close()
			}
			for w.lines.Scan() { // the rest of the output, until the server closes
			}
			if err := <-w.ended; err != nil {
				t.Errorf("the end gave %v", err)
			}
			<-f.cancelled
		})
	}
}

func TestServe_RefusesOtherOrigins(t *testing.T) {
	server := mcp.NewServer(newFixture().registry, nil)
	web := httptest.NewServer(server)
	defer web.Close()
	post := func(origin string) int {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Sec-Fetch-Site", origin)
		resp, err := web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := post("cross-site"); got != http.StatusForbidden {
		t.Errorf("a page from elsewhere got status %d, want 403", got)
	}
	if got := post("same-origin"); got == http.StatusForbidden {
		t.Error("a page of our own was refused")
	}
	server.Close()
	if got := post("same-origin"); got != http.StatusServiceUnavailable {
		t.Errorf("a closed server gave status %d, want 503", got)
	}
}

// The SDK would keep the client waiting for the call.
func TestServe_DisconnectEndsTheCallsOfTheClient(t *testing.T) {
	f := newFixture()
	server := mcp.NewServer(f.registry, nil)
	web := httptest.NewServer(server)
	defer web.Close()
	defer server.Close()
	session := ""
	ask := func(method, body string) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), method, web.URL, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	hello := ask(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	_ = hello.Body.Close()
	session = hello.Header.Get("Mcp-Session-Id")
	_ = ask(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
	blocked := ask(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"block","arguments":{},"_meta":{"progressToken":1}}}`)
	defer func() { _ = blocked.Body.Close() }()
	lines := bufio.NewScanner(blocked.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "notifications/progress") {
	}
	_ = ask(http.MethodDelete, "").Body.Close()
	<-f.cancelled
}
