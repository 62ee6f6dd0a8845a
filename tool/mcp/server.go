// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/tool"
)

// ServeOptions configures a [Server]. Nil and the zero value are ready to use.
type ServeOptions struct {
	// Name and Version introduce the server. Empty means [tool.DefaultServerName] and [tool.DefaultServerVersion].
	Name, Version string
	// Instructions tell the model of a client what the tools are for. Empty means none.
	Instructions string
	// In and Out are the streams of [Server.ServeStdio]. Nil means os.Stdin and os.Stdout. In is
	// closed at the end, if it can be, so that nothing reads from it any longer.
	In  io.Reader
	Out io.Writer
	// Logger receives tools that cannot be served, and problems with clients. Nil discards. It must not write to Out.
	Logger *slog.Logger
}

var errServerClosed = errors.New("mcp: the server is closed")

// A Server offers the tools of a registry to MCP clients. It is an [http.Handler] that speaks streamable HTTP, and serves
// standard streams with [Server.ServeStdio]; it may do both, for any number of clients.
//
// Of several tools with one name it serves the one that [tool.Registry.Lookup] finds. Tools without a
// handler are not served. Changes of the registry do not wait for clients, which are notified soon
// after; a server of agent/claudecode gives the model a tool in its very next request.
//
// Over HTTP it does not authenticate clients: put it behind a server that does. It refuses requests of other sites' pages.
type Server struct {
	registry *tool.Registry
	opts     ServeOptions
	server   *sdk.Server
	web      http.Handler
	life     context.Context // of calls; ends with Close
	end      context.CancelFunc
	unwatch  func()

	running sync.Map // *runningCall -> nil

	mu     sync.Mutex
	listed map[string]*tool.Tool
}

// A runningCall can be ended from outside.
type runningCall struct {
	session string
	cancel  context.CancelCauseFunc
}

// NewServer makes a server of a registry, which it follows until it is closed.
func NewServer(registry *tool.Registry, opts *ServeOptions) *Server {
	s := &Server{registry: registry, listed: map[string]*tool.Tool{}}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.Logger = safelog.Logger(s.opts.Logger)
	if s.opts.In == nil {
		s.opts.In = os.Stdin
	}
	if s.opts.Out == nil {
		s.opts.Out = os.Stdout
	}
	s.life, s.end = context.WithCancel(context.Background())
	about := &sdk.Implementation{Name: cmp.Or(s.opts.Name, tool.DefaultServerName), Version: cmp.Or(s.opts.Version, tool.DefaultServerVersion)}
	s.server = sdk.NewServer(about, &sdk.ServerOptions{
		Instructions: s.opts.Instructions, Logger: s.opts.Logger,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	web := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.server }, &sdk.StreamableHTTPOptions{Logger: s.opts.Logger})
	s.web = http.NewCrossOriginProtection().Handler(web)
	s.unwatch = registry.Watch(s.follow)
	s.follow()
	return s
}

// Serve serves a registry over standard streams until the client closes them or the context ends. A
// program that does nothing else is an MCP server that every client can start.
func Serve(ctx context.Context, registry *tool.Registry, opts *ServeOptions) error {
	s := NewServer(registry, opts)
	defer s.Close()
	return s.ServeStdio(ctx)
}

func (s *Server) follow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.servable()
	var gone []string
	for name := range s.listed {
		if now[name] == nil {
			gone = append(gone, name)
			delete(s.listed, name)
		}
	}
	if len(gone) > 0 {
		s.server.RemoveTools(gone...)
	}
	for name, t := range now {
		if s.listed[name] == t { // a tool in a registry is never changed, only replaced
			continue
		}
		if err := s.list(t); err != nil {
			s.opts.Logger.Error("a tool cannot be served", "tool", t.ID(), "error", err)
			s.server.RemoveTools(name)
			delete(s.listed, name)
			continue
		}
		s.listed[name] = t
	}
}

// servable gives the tools that a call by name reaches.
func (s *Server) servable() map[string]*tool.Tool {
	now := map[string]*tool.Tool{}
	for _, t := range s.registry.Tools() {
		if found, _ := s.registry.Lookup(t.Name); found == t && t.Served() {
			now[t.Name] = t
		}
	}
	return now
}

// list adds a tool to the SDK's server, which panics over schemas that it does not like.
func (s *Server) list(t *tool.Tool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	s.server.AddTool(describe(t), s.handler(t))
	return nil
}

func (s *Server) handler(t *tool.Tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := within(ctx, s.life, errServerClosed)
		defer cancel(nil)
		running := &runningCall{req.Session.ID(), cancel}
		s.running.Store(running, nil)
		defer s.running.Delete(running)
		if token := req.Params.GetProgressToken(); token != nil {
			ctx = tool.WithProgress(ctx, progressTo(req.Session, token))
		}
		call := tool.Call{ID: ToolUseID(req), Name: t.Name, Input: req.Params.Arguments, Doubles: true}
		r := s.registry.Execute(ctx, call)
		keepPromise(t, &r)
		return callResult(r), nil
	}
}

func progressTo(session *sdk.ServerSession, token any) func(context.Context, float64, float64, string) error {
	return func(ctx context.Context, done, total float64, message string) error {
		return session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: total, Message: message})
	}
}

// within ends a context also when another one ends, with a cause of its own.
func within(ctx, other context.Context, cause error) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(other, func() { cancel(cause) })
	return ctx, func(cause error) {
		unhook()
		cancel(cause)
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.life.Err() != nil {
		http.Error(w, errServerClosed.Error(), http.StatusServiceUnavailable)
		return
	}
	if session := r.Header.Get("Mcp-Session-Id"); r.Method == http.MethodDelete && session != "" {
		s.cancelCalls(session)
	}
	s.web.ServeHTTP(w, r)
}

// cancelCalls cancels the calls of a session that its client ends. The SDK waits for them, and keeps the client waiting.
func (s *Server) cancelCalls(session string) {
	for key := range s.running.Range {
		if call := key.(*runningCall); call.session == session {
			call.cancel(errSessionClosed)
		}
	}
}

// ServeStdio serves one client over In and Out, until it closes In, the context ends, or the server
// is closed; none of these is an error. Calls that are running then are cancelled, and waited for.
func (s *Server) ServeStdio(ctx context.Context) error {
	streams := &streams{IOTransport: sdk.IOTransport{Reader: closing(s.opts.In), Writer: keepOpen{s.opts.Out}}}
	session, err := s.server.Connect(context.WithoutCancel(ctx), streams, nil)
	if err != nil {
		return fmt.Errorf("mcp: serving: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = streams.stop(ended)
	case <-s.life.Done():
		err = streams.stop(ended)
	}
	if err != nil {
		return fmt.Errorf("mcp: serving: %w", err)
	}
	return nil
}

// streams is a transport that can be ended from our side. The SDK's own way of closing a session
// waits for its calls; the end of the input cancels them.
type streams struct {
	sdk.IOTransport
	conn sdk.Connection
}

// Connect implements sdk.Transport.
func (s *streams) Connect(ctx context.Context) (sdk.Connection, error) {
	var err error
	s.conn, err = s.IOTransport.Connect(ctx)
	return s.conn, err
}

// stop ends the input and waits for the session, within a limit.
func (s *streams) stop(ended <-chan error) error {
	_ = s.conn.Close() // its only failure is that of closing In
	select {
	case <-ended:
		return nil
	case <-time.After(closeGrace):
		return fmt.Errorf("calls are still running %s after they were cancelled", closeGrace)
	}
}

func closing(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// Close ends all sessions and cancels their calls. It waits for them, within a limit.
func (s *Server) Close() {
	s.unwatch()
	s.end()
	_, inTime := withinGrace(func() {
		var all sync.WaitGroup
		for _, session := range slices.Collect(s.server.Sessions()) {
			all.Go(func() { _ = session.Close() }) // how a session ends that we end is of no interest
		}
		all.Wait()
	})
	if !inTime {
		s.opts.Logger.Warn("calls are still running after they were cancelled", "grace", closeGrace)
	}
}
