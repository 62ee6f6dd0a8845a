// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/event"
)

// closeGrace bounds how long the end of a session waits for its handlers.
const closeGrace = 5 * time.Second

// withinGrace calls f and waits for it, up to closeGrace. Channel ended is closed when f returns, also after that time.
func withinGrace(f func()) (ended <-chan struct{}, inTime bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return done, true
	case <-time.After(closeGrace):
		return done, false
	}
}

// InProcess is a server of the SDK for clients in this process, which exchange single JSON-RPC messages with it.
// The server may have several such clients, and serve other transports too. The SDK tells clients of changed
// tools some time after the change, so that the model may have them only in the request after the next.
type InProcess struct{ Server *sdk.Server }

// Open begins a session with a client. The client calls handle with each message and gets the answer of the server,
// which is empty for what is no request; send gets all other messages of the server. A handshake that is repeated
// opens a fresh session and ends the old one. close ends the session, and waits for its handlers within a limit.
func (p InProcess) Open(send func(ctx context.Context, msg json.RawMessage) error) (handle func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error), close func()) {
	s := &session{server: p.Server, send: send}
	return s.handle, s.close
}

// ToolUseID returns the id of the tool use that a handler is answering, or "". The same id is in
// the messages, the hooks and the permission questions about the call. A client sends it in _meta under its
// key "toolUseId". ToolUseID returns "" if the keys of several clients have different ids.
func ToolUseID(req *sdk.CallToolRequest) event.CallID {
	if req == nil || req.Params == nil {
		return ""
	}
	found := event.CallID("")
	for key, value := range req.Params.Meta {
		text, _ := value.(string)
		id := event.CallID(text)
		switch {
		case !strings.HasSuffix(key, "/toolUseId") || id == "":
		case found != "" && found != id:
			return ""
		default:
			found = id
		}
	}
	return found
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
// handshake comes from a client that has the manifest; it gets a connection that counts as initialized.
// Other messages without a connection are of one that is closed and has no receiver.
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

// Manifest does the handshake with the server on a session of its own, and returns the results of initialize and
// tools/list. A client that has them can do without the handshake. They are nil where the tools are more than one
// page: the client has to read them.
func (p InProcess) Manifest() (initialize, tools json.RawMessage, err error) {
	refuse := func(context.Context, json.RawMessage) error { return errSessionClosed }
	s := &session{server: p.Server, send: refuse}
	defer s.close()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	initialize, err = s.ask(ctx, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+handshakeVersion+
		`","capabilities":{},"clientInfo":{"name":"drover","version":"0"}}}`)
	if err != nil {
		return nil, nil, err
	}
	if _, err := s.handle(ctx, json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return nil, nil, err
	}
	if tools, err = s.ask(ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); err != nil {
		return nil, nil, err
	}
	var page struct {
		NextCursor string `json:"nextCursor"`
	}
	if err := json.Unmarshal(tools, &page); err != nil || page.NextCursor != "" {
		return nil, nil, err
	}
	return initialize, tools, nil
}

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
