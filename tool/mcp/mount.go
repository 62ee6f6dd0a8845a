// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/claude"
)

// closeGrace bounds how long the end of a session waits for its handlers.
const closeGrace = 5 * time.Second

// Options configures [Mount]. Nil and the zero value are ready to use.
type Options struct {
	// Timeout bounds each call. Zero leaves the CLI's default; otherwise at least one second.
	Timeout time.Duration
	// Tools gives permissions for single tools.
	Tools []claude.MCPToolPolicy
	// Manifest asks the server for its tools before the CLI starts, so that the CLI can skip the
	// handshake. Zero leaves the handshake to the CLI.
	Manifest bool
}

// Mount makes an entry for claude.Options.MCPServers of a server of the SDK. The server may be
// mounted several times, and serve other transports too. The SDK tells clients of changed tools some
// time after the change, so that the model may have them only in the request after the next.
func Mount(server *sdk.Server, opts *Options) *claude.MCPInProcess {
	var o Options
	if opts != nil {
		o = *opts
	}
	entry := &claude.MCPInProcess{Timeout: o.Timeout, Tools: o.Tools}
	entry.Session = func(send func(context.Context, json.RawMessage) error) claude.MCPSession {
		s := &session{server: server, send: send}
		return claude.MCPSession{Handle: s.handle, Close: s.close}
	}
	if o.Manifest {
		entry.Manifest = func() (*claude.MCPManifest, error) { return manifest(server) }
	}
	return entry
}

// ToolUseID returns the id of the tool use that a handler is answering, or "". The same id stands in
// the messages, the hooks and the permission questions about the call.
func ToolUseID(req *sdk.CallToolRequest) string {
	if req == nil || req.Params == nil {
		return ""
	}
	id, _ := req.Params.Meta[metaToolUseID].(string)
	return id
}

var errSessionClosed = errors.New("mcp: the session is closed")

// A session is the server as one client has it: one live connection to the SDK at a time.
type session struct {
	server *sdk.Server
	send   func(context.Context, json.RawMessage) error

	mu     sync.Mutex
	live   *connection
	closed bool
}

func (s *session) handle(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	msg, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil, fmt.Errorf("mcp: not a JSON-RPC message: %w", err)
	}
	req, _ := msg.(*jsonrpc.Request)
	conn, err := s.connectionFor(req)
	if err != nil || conn == nil {
		return nil, err
	}
	if req == nil || !req.IsCall() {
		return nil, conn.deliver(ctx, msg)
	}
	return conn.call(ctx, req)
}

// connectionFor gives the live connection, a fresh one for a handshake. A request without a
// handshake comes from a CLI that has the manifest; it gets a connection that counts as initialized.
// Other messages without a connection are of one that is gone: there is nobody to tell.
func (s *session) connectionFor(req *jsonrpc.Request) (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errSessionClosed
	}
	handshake := req != nil && req.Method == "initialize"
	if s.live != nil && !handshake {
		return s.live, nil
	}
	if req == nil || !req.IsCall() {
		return nil, nil
	}
	if s.live != nil {
		s.live.shut()
	}
	var err error
	s.live, err = connect(s.server, s.send, !handshake)
	return s.live, err
}

func (s *session) close() {
	s.mu.Lock()
	live := s.live
	s.live, s.closed = nil, true
	s.mu.Unlock()
	if live != nil {
		live.shut()
	}
}

// manifest does the handshake with the server on a connection of its own.
func manifest(server *sdk.Server) (*claude.MCPManifest, error) {
	refuse := func(context.Context, json.RawMessage) error { return errSessionClosed }
	s := &session{server: server, send: refuse}
	defer s.close()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	initialized, err := s.ask(ctx, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+handshakeVersion+
		`","capabilities":{},"clientInfo":{"name":"claude-code","version":"0"}}}`)
	if err != nil {
		return nil, err
	}
	if _, err := s.handle(ctx, json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return nil, err
	}
	tools, err := s.ask(ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if err != nil {
		return nil, err
	}
	var page struct {
		NextCursor string `json:"nextCursor"`
	}
	if err := json.Unmarshal(tools, &page); err != nil || page.NextCursor != "" {
		return nil, err // more than one page: leave it to the CLI to read them
	}
	return &claude.MCPManifest{InitializeResult: initialized, ToolsListResult: tools}, nil
}

// ask gives the result of a request.
func (s *session) ask(ctx context.Context, request string) (json.RawMessage, error) {
	raw, err := s.handle(ctx, json.RawMessage(request))
	if err != nil {
		return nil, err
	}
	msg, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil, err
	}
	resp, ok := msg.(*jsonrpc.Response)
	if !ok {
		return nil, errors.New("mcp: the server's answer is no response")
	}
	return resp.Result, resp.Error
}
