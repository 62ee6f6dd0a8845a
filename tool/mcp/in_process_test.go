// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/tool/mcp"
)

type greetArgs struct {
	Name string `json:"name"`
}

// testServer is a server as a user of the SDK writes it.
func testServer(started chan<- struct{}, ended chan<- error) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "greeter", Version: "v1"}, &sdk.ServerOptions{Instructions: "Greet."})
	sdk.AddTool(server, &sdk.Tool{Name: "greet", Description: "say hi"}, func(ctx context.Context, req *sdk.CallToolRequest, in greetArgs) (*sdk.CallToolResult, any, error) {
		if token := req.Params.GetProgressToken(); token != nil {
			if err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "half"}); err != nil {
				return nil, nil, err
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hi " + in.Name + " from " + string(mcp.ToolUseID(req))}}}, nil, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "block"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, nil, ctx.Err()
	})
	return server
}

// client acts as the CLI.
type client struct {
	t      *testing.T
	handle func(context.Context, json.RawMessage) (json.RawMessage, error)
	close  func()
	sent   chan string
}

func newClient(t *testing.T, server *sdk.Server) *client {
	c := &client{t: t, sent: make(chan string, 16)}
	c.handle, c.close = mcp.InProcess{Server: server}.Open(func(_ context.Context, msg json.RawMessage) error {
		c.sent <- string(msg)
		return nil
	})
	return c
}

func (c *client) ask(msg string) string {
	c.t.Helper()
	got, err := c.handle(c.t.Context(), json.RawMessage(msg))
	if err != nil {
		c.t.Fatalf("%s: %v", msg, err)
	}
	return string(got)
}

func (c *client) handshake() string {
	c.t.Helper()
	got := c.ask(`{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"2.1.325"}},"jsonrpc":"2.0","id":0}`)
	if reply := c.ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); reply != "" {
		c.t.Errorf("a notification was answered: %s", reply)
	}
	return got
}

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func wantIn(t *testing.T, got string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
}

const greet = `{"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"},"_meta":{"claudecode/toolUseId":"toolu_0001","progressToken":2}},"jsonrpc":"2.0","id":2}`

func TestInProcess_AnswersRequests(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := newClient(t, testServer(nil, nil))
	defer c.close()
	wantIn(t, c.handshake(), `"id":0`, `"protocolVersion":"2025-11-25"`, `"name":"greeter"`, `"instructions":"Greet."`)
	wantIn(t, c.ask(`{"method":"tools/list","jsonrpc":"2.0","id":1}`), `"id":1`, `"name":"greet"`, `"name":"block"`)
	wantIn(t, c.ask(greet), `"id":2`, `hi Ada from toolu_0001`)
	wantIn(t, <-c.sent, `"method":"notifications/progress"`, `"progressToken":2`, `"message":"half"`)
	wantIn(t, c.ask(`{"method":"tools/call","params":{"name":"nope"},"jsonrpc":"2.0","id":"x"}`), `"id":"x"`, `nope`)
	wantIn(t, c.ask(`{"method":"ping","jsonrpc":"2.0","id":4}`), `"result":{}`)
}

func TestInProcess_RepeatedHandshake(t *testing.T) {
	defer goleak.VerifyNone(t)
	started, ended := make(chan struct{}), make(chan error, 1)
	server := testServer(started, ended)
	c := newClient(t, server)
	defer c.close()
	c.handshake()
	left := make(chan error, 1)
	go func() {
		_, err := c.handle(context.Background(), json.RawMessage(`{"method":"tools/call","params":{"name":"block","arguments":{}},"jsonrpc":"2.0","id":9}`))
		left <- err
	}()
	<-started
	wantIn(t, c.handshake(), `"name":"greeter"`)
	if err := <-left; err == nil {
		t.Error("a call of the old session was answered")
	}
	if err := <-ended; err == nil {
		t.Error("a handler of the old session was not cancelled")
	}
	wantIn(t, c.ask(greet), `hi Ada`)
	<-c.sent
	n := 0
	for range server.Sessions() {
		n++
	}
	if n != 1 {
		t.Errorf("%d sessions are open, want 1", n)
	}
}

func TestInProcess_ListChangedReachesEveryClient(t *testing.T) {
	defer goleak.VerifyNone(t)
	server := testServer(nil, nil)
	one, two := newClient(t, server), newClient(t, server)
	defer one.close()
	defer two.close()
	one.handshake()
	two.handshake()
	sdk.AddTool(server, &sdk.Tool{Name: "new"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{}, nil, nil
	})
	for _, c := range []*client{one, two} {
		wantIn(t, <-c.sent, "notifications/tools/list_changed")
		wantIn(t, c.ask(`{"method":"tools/list","jsonrpc":"2.0","id":1}`), `"name":"new"`)
	}
}

func TestInProcess_CancelledNotificationEndsTheCall(t *testing.T) {
	defer goleak.VerifyNone(t)
	started, ended := make(chan struct{}), make(chan error, 1)
	c := newClient(t, testServer(started, ended))
	defer c.close()
	c.handshake()
	reply := make(chan string, 1)
	go func() {
		got, _ := c.handle(context.Background(), json.RawMessage(`{"method":"tools/call","params":{"name":"block","arguments":{}},"jsonrpc":"2.0","id":7}`))
		reply <- string(got)
	}()
	<-started
	c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"AbortError"}}`)
	if err := <-ended; err == nil {
		t.Error("the handler was not cancelled")
	}
	<-reply
	wantIn(t, c.ask(greet), `hi Ada`)
}

func TestInProcess_ContextEndsOnlyTheWait(t *testing.T) {
	defer goleak.VerifyNone(t)
	started, ended := make(chan struct{}), make(chan error, 1)
	c := newClient(t, testServer(started, ended))
	c.handshake()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	_, err := c.handle(ctx, json.RawMessage(`{"method":"tools/call","params":{"name":"block","arguments":{}},"jsonrpc":"2.0","id":7}`))
	if err == nil {
		t.Error("got no error, want the context's")
	}
	c.close()
	if err := <-ended; err == nil {
		t.Error("closing did not cancel the handler")
	}
	if _, err := c.handle(t.Context(), json.RawMessage(greet)); err == nil {
		t.Error("a closed session answers")
	}
	c.close()
}

func TestManifest_SkipsTheHandshake(t *testing.T) {
	defer goleak.VerifyNone(t)
	server := testServer(nil, nil)
	initialize, tools, err := mcp.InProcess{Server: server}.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, string(initialize), `"protocolVersion":"2025-11-25"`, `"name":"greeter"`)
	wantIn(t, string(tools), `"name":"greet"`)
	c := newClient(t, server)
	defer c.close()
	wantIn(t, c.ask(greet), `hi Ada`)
}

func TestManifest_EmptyForManyPages(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "greeter", Version: "v1"}, &sdk.ServerOptions{PageSize: 1})
	for _, name := range []string{"one", "two"} {
		sdk.AddTool(server, &sdk.Tool{Name: name}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return nil, nil, nil
		})
	}
	if initialize, tools, err := (mcp.InProcess{Server: server}).Manifest(); initialize != nil || tools != nil || err != nil {
		t.Errorf("got %s, %s, %v; want nothing, so that the client reads all pages", initialize, tools, err)
	}
}

func TestInProcess_InvalidAndUnexpectedMessages(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := newClient(t, testServer(nil, nil))
	defer c.close()
	if _, err := c.handle(t.Context(), json.RawMessage(`{`)); err == nil {
		t.Error("broken JSON was taken")
	}
	if got := c.ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); got != "" {
		t.Errorf("got %s", got)
	}
	c.handshake()
	if got := c.ask(`{"jsonrpc":"2.0","id":99,"result":{}}`); got != "" {
		t.Errorf("a response was answered: %s", got)
	}
	wantIn(t, c.ask(greet), `hi Ada`)
}
