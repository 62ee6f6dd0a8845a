// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/safelog"
)

// mcpGrace is how long close waits for handlers that it has cancelled.
const mcpGrace = 5 * time.Second

type mcpSendFunc func(ctx context.Context, server string, msg json.RawMessage) error

// An mcpMux hands the CLI's MCP messages to the in-process servers of one client and keeps the
// calls in flight, by server and id: two servers may use the same ids.
//
// A handler runs on the goroutine that serves its message; the mux starts none of its own.
type mcpMux struct {
	logger *slog.Logger

	mu      sync.Mutex
	servers map[string]*mcpConn
	calls   map[mcpCallKey]context.CancelFunc
	send    mcpSendFunc // nil until attached
	closed  bool
	idle    chan struct{} // made by close, closed when the last call has ended
}

type mcpCallKey struct {
	server string
	id     string // the JSON of the id: 2 and "2" differ
}

// An mcpConn is one server as one client has it.
type mcpConn struct {
	server *MCPInProcess
	handle func(context.Context, json.RawMessage) (json.RawMessage, error)
	send   func(context.Context, json.RawMessage) error
	detach func() // nil until attached
	lists  relisting
}

func newMCPMux(servers map[string]*MCPInProcess, logger *slog.Logger) *mcpMux {
	logger = safelog.Logger(logger)
	m := &mcpMux{logger: logger, servers: map[string]*mcpConn{}, calls: map[mcpCallKey]context.CancelFunc{}}
	for name, s := range servers {
		m.servers[name] = &mcpConn{server: s, handle: s.Handle}
	}
	return m
}

// attach gives the servers their way to the CLI. It is called once, before the first serve.
func (m *mcpMux) attach(send mcpSendFunc) {
	m.mu.Lock()
	m.send = send
	conns := maps.Clone(m.servers)
	m.mu.Unlock()
	for name, c := range conns {
		m.attachOne(name, c, send)
	}
}

// attachOne runs without the lock: it calls the server.
func (m *mcpMux) attachOne(name string, c *mcpConn, toCLI mcpSendFunc) {
	send := func(ctx context.Context, msg json.RawMessage) error {
		line, err := oneLine(msg)
		if err != nil {
			return fmt.Errorf("claude: message of MCP server %q: %w", name, err)
		}
		if m.isClosed() {
			return ErrClosed
		}
		return c.lists.notify(ctx, func() error { return toCLI(ctx, name, line) })
	}
	handle, detach := c.server.Handle, func() {}
	switch {
	case c.server.Session != nil:
		session := c.server.Session(send)
		handle = session.Handle
		if session.Close != nil {
			detach = session.Close
		}
	case c.server.Attach != nil:
		if d := c.server.Attach(send); d != nil {
			detach = d
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.send, c.handle, c.detach = send, handle, detach
}

func (m *mcpMux) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// add adds a server while the client runs; it replaces a server of the same name.
func (m *mcpMux) add(name string, s *MCPInProcess) error {
	c := &mcpConn{server: s, handle: s.Handle}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	toCLI := m.send
	m.mu.Unlock()
	m.remove(name)
	if toCLI != nil {
		m.attachOne(name, c, toCLI)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.servers[name] = c
	return nil
}

// remove takes a server out and cancels its calls.
func (m *mcpMux) remove(name string) {
	detach := func() {}
	m.mu.Lock()
	if c := m.servers[name]; c != nil {
		c.lists.end()
		if c.detach != nil {
			detach = c.detach
		}
	}
	delete(m.servers, name)
	for key, cancel := range m.calls {
		if key.server == name {
			cancel()
		}
	}
	m.mu.Unlock()
	detach()
}

// keep removes every server that is not among servers.
func (m *mcpMux) keep(servers map[string]MCPServer) {
	for name := range m.inProcess() {
		if _, ours := servers[name].(*MCPInProcess); !ours {
			m.remove(name)
		}
	}
}

func (m *mcpMux) inProcess() map[string]*MCPInProcess {
	m.mu.Lock()
	defer m.mu.Unlock()
	servers := make(map[string]*MCPInProcess, len(m.servers))
	for name, c := range m.servers {
		servers[name] = c.server
	}
	return servers
}

func (m *mcpMux) manifests() (map[string]*MCPManifest, error) {
	m.mu.Lock()
	conns := maps.Clone(m.servers)
	m.mu.Unlock()
	out := map[string]*MCPManifest{}
	for name, c := range conns {
		if c.server.Manifest == nil {
			continue
		}
		manifest, err := c.server.Manifest()
		if err != nil {
			return nil, fmt.Errorf("claude: manifest of MCP server %q: %w", name, err)
		}
		if manifest != nil {
			out[name] = manifest
		}
	}
	return out, nil
}

// An mcpServing answers a message of the CLI with the JSON of mcp_response. Its run never panics and always answers.
type mcpServing struct {
	run      func() json.RawMessage // must be called
	answered func()                 // is called when the answer is on its way to the CLI
}

// begin notes the call, or cancels one, in the order of the messages. It does not block.
func (m *mcpMux) begin(ctx context.Context, server string, raw json.RawMessage) mcpServing {
	msg, err := parseRPC(raw)
	if err != nil {
		return answer(rpcError(nil, rpcInvalidRequest, "not a JSON-RPC message: "+err.Error()))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	conn := m.servers[server]
	switch {
	case conn == nil:
		return answer(m.unknownLocked(server, msg))
	case m.closed:
		return answer(refusal(msg, rpcInternal, serverClosing, server))
	case conn.handle == nil:
		return answer(refusal(msg, rpcInternal, serverNotAttached, server))
	case !msg.isRequest():
		if msg.Method == "notifications/cancelled" {
			m.cancelLocked(server, msg.Params.RequestID)
		}
		return serving(func() json.RawMessage {
			m.pass(ctx, server, conn, msg, raw)
			return rpcAck
		})
	case !validID(msg.ID):
		return answer(refusal(msg, rpcInvalidRequest, "the id of a request to MCP server %q must be a string or a number", server))
	}
	return m.beginCallLocked(ctx, server, conn, msg, raw)
}

func answer(reply json.RawMessage) mcpServing {
	return serving(func() json.RawMessage { return reply })
}

func serving(run func() json.RawMessage) mcpServing { return mcpServing{run, func() {}} }

// refusal is an error for requests; other messages get none in JSON-RPC.
func refusal(msg *rpcMessage, code int, format, server string) json.RawMessage {
	if !msg.isRequest() {
		return rpcAck
	}
	return rpcError(msg.ID, code, fmt.Sprintf(format, server))
}

func (m *mcpMux) unknownLocked(server string, msg *rpcMessage) json.RawMessage {
	if !msg.isRequest() {
		return rpcAck
	}
	names := slices.Sorted(maps.Keys(m.servers))
	return rpcError(msg.ID, rpcNoMethod, fmt.Sprintf(unknownServer, server, strings.Join(names, ", ")))
}

func (m *mcpMux) cancelLocked(server string, id json.RawMessage) {
	if cancel := m.calls[mcpCallKey{server, string(id)}]; cancel != nil {
		cancel() // ids that are unknown or done are ignored: older CLIs send those too
	}
}

func (m *mcpMux) beginCallLocked(ctx context.Context, server string, conn *mcpConn, msg *rpcMessage, raw json.RawMessage) mcpServing {
	key := mcpCallKey{server, string(msg.ID)}
	if m.calls[key] != nil {
		return answer(rpcError(msg.ID, rpcInvalidRequest, fmt.Sprintf("request %s to MCP server %q is still running", msg.ID, server)))
	}
	inner, cancel := context.WithCancel(ctx)
	m.calls[key] = cancel
	call := &mcpContext{inner, toolCall{msg.Params.Meta.ToolUseID, msg.Params.Meta.ProgressToken, conn.send}}
	s := serving(func() json.RawMessage {
		defer m.endCall(key, cancel)
		return m.pass(call, server, conn, msg, raw)
	})
	if msg.Method == "tools/list" {
		s.noteListing(&conn.lists)
	}
	return s
}

// noteListing counts the server's answer as a listing of the tools at the time when it is made. It
// counts from the time when it is sent.
func (s *mcpServing) noteListing(lists *relisting) {
	run, listed := s.run, func() {}
	s.run = func() json.RawMessage {
		listed = lists.begin()
		return run()
	}
	s.answered = func() { listed() }
}

func (m *mcpMux) endCall(key mcpCallKey, cancel context.CancelFunc) {
	cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.calls, key)
	if m.idle != nil && len(m.calls) == 0 {
		close(m.idle)
		m.idle = nil
	}
}

// pass gives the message to the server and returns a valid reply in every case.
func (m *mcpMux) pass(ctx context.Context, server string, conn *mcpConn, msg *rpcMessage, raw json.RawMessage) (reply json.RawMessage) {
	defer func() {
		if p := recover(); p != nil {
			m.logger.Error("MCP server panicked", "server", server, "method", msg.Method, "panic", p, "stack", string(debug.Stack()))
			reply = rpcError(msg.ID, rpcInternal, fmt.Sprintf(serverFailed, server, fmt.Sprint("panic: ", p)))
		}
	}()
	if conn.server.direct != nil {
		return conn.server.direct(ctx, msg)
	}
	out, err := conn.handle(ctx, raw)
	if err == nil && len(out) > 0 {
		out, err = oneLine(out)
	}
	switch {
	case err != nil:
		if !msg.isRequest() {
			m.logger.Warn("MCP server refused a message", "server", server, "method", msg.Method, "error", err)
		}
		return rpcError(msg.ID, rpcInternal, fmt.Sprintf(serverFailed, server, advice.Text(err)))
	case len(out) == 0:
		return rpcError(msg.ID, rpcInternal, fmt.Sprintf(serverNotAnswered, server, msg.Method))
	}
	return out
}

// close cancels all calls, waits for them at most mcpGrace or until ctx ends, and detaches the servers.
// The error names the calls that still run.
func (m *mcpMux) close(ctx context.Context) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	for _, cancel := range m.calls {
		cancel()
	}
	var idle chan struct{}
	if len(m.calls) > 0 {
		idle = make(chan struct{})
		m.idle = idle
	}
	var detach []func()
	for _, name := range slices.Sorted(maps.Keys(m.servers)) {
		c := m.servers[name]
		c.lists.end()
		if c.detach != nil {
			detach = append(detach, c.detach)
		}
	}
	m.mu.Unlock()
	err := m.await(ctx, idle)
	for _, d := range detach {
		d()
	}
	return err
}

func (m *mcpMux) await(ctx context.Context, idle <-chan struct{}) error {
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-time.After(mcpGrace):
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var left []string
	for key := range m.calls {
		left = append(left, key.server+"#"+key.id)
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	return errors.New("claude: in-process MCP calls did not end when cancelled: " + strings.Join(left, ", "))
}
