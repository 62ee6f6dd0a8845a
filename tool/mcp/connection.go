// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// handshakeVersion is the version of the protocol with a handshake that every server knows, old or new.
const handshakeVersion = "2025-11-25"

// A connection is an SDK transport whose other end is a function. Answers go to the waiting call, all else to the client.
type connection struct {
	send    func(context.Context, json.RawMessage) error
	in      chan jsonrpc.Message
	done    chan struct{}
	end     sync.Once
	session *sdk.ServerSession

	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan *jsonrpc.Response
}

// connect starts a session of the server. An initialized one needs no handshake.
func connect(server *sdk.Server, send func(context.Context, json.RawMessage) error, initialized bool) (*connection, error) {
	c := &connection{send: send, in: make(chan jsonrpc.Message), done: make(chan struct{}), waiting: map[jsonrpc.ID]chan *jsonrpc.Response{}}
	var opts *sdk.ServerSessionOptions
	if initialized {
		opts = &sdk.ServerSessionOptions{State: &sdk.ServerSessionState{
			InitializeParams: &sdk.InitializeParams{
				ProtocolVersion: handshakeVersion, Capabilities: &sdk.ClientCapabilities{}, ClientInfo: &sdk.Implementation{Name: "drover", Version: "0"},
			},
			InitializedParams: &sdk.InitializedParams{},
		}}
	}
	var err error
	// The session outlives the message that opened it.
	if c.session, err = server.Connect(context.Background(), c, opts); err != nil {
		return nil, fmt.Errorf("mcp: connecting the server: %w", err)
	}
	return c, nil
}

// Connect implements sdk.Transport.
func (c *connection) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID implements sdk.Connection.
func (c *connection) SessionID() string { return "" }

// Read implements sdk.Connection.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.in:
		return msg, nil
	case <-c.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements sdk.Connection.
func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	if resp, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		waiter := c.waiting[resp.ID]
		delete(c.waiting, resp.ID)
		c.mu.Unlock()
		if waiter != nil { // else the call was given up
			waiter <- resp
		}
		return nil
	}
	raw, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	return c.send(ctx, raw)
}

// Close implements sdk.Connection.
func (c *connection) Close() error {
	c.end.Do(func() { close(c.done) })
	return nil
}

func (c *connection) deliver(ctx context.Context, msg jsonrpc.Message) error {
	select {
	case c.in <- msg:
		return nil
	case <-c.done:
		return errSessionClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *connection) call(ctx context.Context, req *jsonrpc.Request) (json.RawMessage, error) {
	reply := make(chan *jsonrpc.Response, 1)
	c.mu.Lock()
	c.waiting[req.ID] = reply
	c.mu.Unlock()
	defer c.forget(req.ID, reply)
	if err := c.deliver(ctx, req); err != nil {
		return nil, err
	}
	select {
	case resp := <-reply:
		return jsonrpc.EncodeMessage(resp)
	case <-c.done:
		return nil, errSessionClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forget drops a call whose caller has left, unless its id is in use again.
func (c *connection) forget(id jsonrpc.ID, reply chan *jsonrpc.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[id] == reply {
		delete(c.waiting, id)
	}
}

// shut ends the session: its handlers are cancelled and waited for, up to the grace.
func (c *connection) shut() {
	_ = c.Close()                                // never fails
	withinGrace(func() { _ = c.session.Wait() }) // how a session ends that we end is of no interest
}
