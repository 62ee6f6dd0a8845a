// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/schema"
)

// mcpProtocol is the protocol version of the newest CLI that was tried, and the one that manifests must name.
const mcpProtocol = "2025-11-25"

var mcpProtocols = []string{mcpProtocol, "2025-06-18", "2025-03-26", "2024-11-05"}

// notifyTimeout bounds how long a change of the tools waits for the attached clients.
const notifyTimeout = 5 * time.Second

// ToolServerOptions configures a [ToolServer]. Nil and the zero value are ready to use.
type ToolServerOptions struct {
	// Instructions are put into the model's context, under the name of the server.
	Instructions string
	// Logger receives panics of handlers and malformed results. Nil discards them.
	Logger *slog.Logger
}

// A ToolServer serves tools of [NewTool] to the CLI as one in-process MCP server; use claudecode.SDKServer for
// tools of package tool.
//
// It answers the CLI itself, without an MCP library between. It may serve several clients at once.
//
// Every failure of a call (unknown tool, invalid arguments, error, panic, malformed result) becomes a
// failed tool result that the model can read, never a protocol error.
//
// Its tools may be changed at any time, also by a handler of one of them. A change returns when every
// attached client has listed the new tools. So if a handler adds a tool and then returns, the model has
// the tool in its next request, in the same turn:
//
//   - With tool search on, the tool is one to search for, even with AlwaysLoad. The model reads its
//     name, and a call by the name works.
//   - The model still sees removed tools and old descriptions for the rest of the conversation. A call
//     of a removed tool fails; give a tool with a new description a new name.
//   - A client that does not list the tools delays one change by two seconds, and no further change
//     until it lists again. The oldest tested CLI is such a client: it ignores a change until it
//     connects the server again.
type ToolServer struct {
	name, version string
	opts          ToolServerOptions

	mu      sync.RWMutex
	tools   map[string]*Tool
	order   []string
	listing json.RawMessage // the result of tools/list
	clients map[int]*toolClient
	nextID  int
}

type toolClient struct {
	send       func(context.Context, json.RawMessage) error
	lastNotice *notifiedChange // the last change; nil before the first
}

// NewToolServer makes a server. The name is that of its MCP handshake; tool names have the one in Options.MCPServers.
func NewToolServer(name, version string, opts *ToolServerOptions, tools ...Tool) (*ToolServer, error) {
	s := &ToolServer{name: name, version: version, clients: map[int]*toolClient{}}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.Logger = safelog.Logger(s.opts.Logger)
	return s, s.replace(tools)
}

// Server returns the entry for Options.MCPServers. Its Timeout and Tools may be set by the caller.
func (s *ToolServer) Server() *MCPInProcess {
	return &MCPInProcess{Handle: s.handleRaw, Attach: s.attach, Manifest: s.Manifest, direct: s.handle}
}

// Set replaces all tools, notifies the attached clients, and waits until they have listed them: at most
// five seconds, and two after they acknowledge the notice. A client that has not listed them by then is
// not an error, see [ToolServer.Listed]. A failed notice is, unless the client is closing; the tools are changed anyway.
func (s *ToolServer) Set(tools ...Tool) error {
	if err := s.replace(tools); err != nil {
		return err
	}
	return s.notifyChange()
}

// Add adds tools, or replaces those of the same name, and waits for the attached clients as [ToolServer.Set] does.
func (s *ToolServer) Add(tools ...Tool) error {
	err := s.change(func(all []Tool) []Tool {
		for _, t := range tools {
			if i := slices.IndexFunc(all, func(old Tool) bool { return old.Name == t.Name }); i >= 0 {
				all[i] = t
			} else {
				all = append(all, t)
			}
		}
		return all
	})
	if err != nil {
		return err
	}
	return s.notifyChange()
}

// Remove removes tools by name and waits for the attached clients as [ToolServer.Set] does. Unknown names are ignored.
func (s *ToolServer) Remove(names ...string) error {
	err := s.change(func(all []Tool) []Tool {
		return slices.DeleteFunc(all, func(t Tool) bool { return slices.Contains(names, t.Name) })
	})
	if err != nil {
		return err
	}
	return s.notifyChange()
}

func (s *ToolServer) change(edit func([]Tool) []Tool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Tool, 0, len(s.order))
	for _, name := range s.order {
		all = append(all, *s.tools[name])
	}
	return s.replaceLocked(edit(all))
}

func (s *ToolServer) replace(tools []Tool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaceLocked(tools)
}

func (s *ToolServer) replaceLocked(tools []Tool) error {
	byName := make(map[string]*Tool, len(tools))
	order := make([]string, 0, len(tools))
	described := make([]describedTool, 0, len(tools))
	var errs []error
	for _, t := range tools {
		if err := t.check(); err != nil {
			errs = append(errs, err)
		}
		if byName[t.Name] != nil {
			errs = append(errs, fmt.Errorf("claude: tool %q is given twice", t.Name))
		}
		byName[t.Name] = &t
		order = append(order, t.Name)
		described = append(described, t.describe())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	listing, err := plainjson.Marshal(map[string]any{"tools": described})
	if err != nil {
		return fmt.Errorf("claude: describing the tools of %s: %w", s.name, err)
	}
	s.tools, s.order, s.listing = byName, order, listing
	return nil
}

func (s *ToolServer) attach(send func(context.Context, json.RawMessage) error) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID
	s.nextID++
	s.clients[id] = &toolClient{send: send}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.clients, id)
	}
}

func (s *ToolServer) notifyChange() error {
	s.mu.RLock()
	clients := slices.Collect(maps.Values(s.clients))
	s.mu.RUnlock()
	limited, cancel := context.WithTimeout(context.Background(), notifyTimeout)
	defer cancel()
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			notice := &notifiedChange{}
			errs[i] = c.send(untilListed(limited, notice), json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
			s.noteNotice(c, notice)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("claude: the tools of %s are changed, but a client was not notified: %w", s.name, err)
	}
	return nil
}

// noteNotice keeps the last change that a client was notified of. Of two at once the earlier may end last.
func (s *ToolServer) noteNotice(c *toolClient, notice *notifiedChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.lastNotice == nil || notice.change > c.lastNotice.change {
		c.lastNotice = notice
	}
}

// Listed reports whether every attached client has listed the tools since they were last changed. After
// a change, true means that the model has the new tools.
func (s *ToolServer) Listed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.clients {
		if !c.lastNotice.isListed() {
			return false
		}
	}
	return true
}

// Manifest returns the content of the MCP handshake.
func (s *ToolServer) Manifest() (*MCPManifest, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &MCPManifest{InitializeResult: s.initializeResult(mcpProtocol), ToolsListResult: s.listing}, nil
}

func (s *ToolServer) initializeResult(asked string) json.RawMessage {
	version := mcpProtocol
	if slices.Contains(mcpProtocols, asked) {
		version = asked
	}
	b := append([]byte(nil), `{"protocolVersion":`...)
	b = appendJSONText(b, version)
	b = append(b, `,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":`...)
	b = appendJSONText(b, s.name)
	b = appendJSONText(append(b, `,"version":`...), s.version)
	b = append(b, '}')
	b = appendField(b, "instructions", s.opts.Instructions)
	return append(b, '}')
}

func (s *ToolServer) handleRaw(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	msg, err := parseRPC(raw)
	if err != nil {
		return nil, err
	}
	return s.handle(ctx, msg), nil
}

// handle answers one message. The handshake may come any number of times.
func (s *ToolServer) handle(ctx context.Context, msg *rpcMessage) json.RawMessage {
	if !msg.isRequest() {
		return nil
	}
	if !validID(msg.ID) {
		return rpcError(nil, rpcInvalidRequest, "the id of a request must be a string or a number")
	}
	switch msg.Method {
	case "tools/call":
		return s.call(ctx, msg)
	case "initialize":
		return rpcResult(msg.ID, s.initializeResult(msg.Params.ProtocolVersion))
	case "tools/list":
		s.mu.RLock()
		defer s.mu.RUnlock()
		return rpcResult(msg.ID, s.listing)
	case "ping":
		return rpcResult(msg.ID, json.RawMessage("{}"))
	}
	return rpcError(msg.ID, rpcNoMethod, fmt.Sprintf("method %q is not supported by MCP server %q", msg.Method, s.name))
}

func (s *ToolServer) call(ctx context.Context, msg *rpcMessage) json.RawMessage {
	if msg.badParams || msg.Params.Name == "" {
		return rpcError(msg.ID, rpcInvalidParams, "tools/call needs the name of a tool, and an object of arguments")
	}
	s.mu.RLock()
	tool := s.tools[msg.Params.Name]
	s.mu.RUnlock()
	result := s.run(ctx, tool, msg)
	b, err := result.appendTo(rpcReply(msg.ID, 256))
	if err != nil {
		s.opts.Logger.Error("tool gave a malformed result", "tool", msg.Params.Name, "error", err)
		failed := ErrorResult(fmt.Sprintf(resultMalformed, msg.Params.Name, err))
		b, _ = failed.appendTo(rpcReply(msg.ID, 256)) // one text always encodes
	}
	return append(b, '}')
}

// run always gives a result; failures become failed results.
func (s *ToolServer) run(ctx context.Context, tool *Tool, msg *rpcMessage) (result ToolResult) {
	if tool == nil {
		return ErrorResult(fmt.Sprintf(unknownTool, msg.Params.Name, s.name))
	}
	args := msg.Params.Arguments
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	switch {
	case tool.CheckedByHandler:
	case tool.InputSchema == nil && args[0] != '{':
		return ErrorResult(fmt.Sprintf(argumentsNoObject, tool.Name))
	default:
		if err := cmp.Or(tool.InputSchema, anyObject()).ValidateDoubles(args); err != nil {
			return ErrorResult(fmt.Sprintf(argumentsInvalid, tool.Name, err))
		}
	}
	defer func() {
		if p := recover(); p != nil {
			s.opts.Logger.Error("tool panicked", "tool", tool.Name, "panic", p, "stack", string(debug.Stack()))
			result = ErrorResult(fmt.Sprintf(toolPanicked, tool.Name, p))
		}
	}()
	result, err := tool.Handler(withCall(ctx, msg), args)
	if err != nil {
		return ErrorResult(advice.Text(err))
	}
	return tool.checkResult(result)
}

// withCall adds the call to the context. Behind a client the context has it already, perhaps without the id of the tool use.
func withCall(ctx context.Context, msg *rpcMessage) context.Context {
	id := msg.Params.Meta.ToolUseID
	switch call := callFrom(ctx); {
	case call == nil:
		return &mcpContext{ctx, toolCall{toolUseID: id}}
	case call.toolUseID == "" && id != "":
		known := *call
		known.toolUseID = id
		return &mcpContext{ctx, known}
	}
	return ctx
}

var anyObject = sync.OnceValue(func() *schema.Schema { return schema.MustParse(`{"type":"object"}`) })

func (t *Tool) checkResult(r ToolResult) ToolResult {
	if r.IsError {
		if len(r.Content) == 0 {
			r.Content = []ToolContent{ToolText(fmt.Sprintf(toolFailed, t.Name))}
		}
		return r
	}
	rounds := plainjson.Rounds(r.Structured) && plainjson.IsObject(r.Structured)
	switch {
	case t.OutputSchema == nil && rounds: // the CLI leaves a text as it is
		r.Content, r.Structured = []ToolContent{ToolText(r.Structured)}, nil
		return r
	case t.OutputSchema == nil:
		return r
	case rounds:
		return ErrorResult(fmt.Sprintf(outputRounded, t.Name, plainjson.MaxWhole))
	}
	if r.Structured == nil {
		return ErrorResult(fmt.Sprintf(outputMissing, t.Name))
	}
	if err := t.OutputSchema.Validate(r.Structured); err != nil {
		return ErrorResult(fmt.Sprintf(outputInvalid, t.Name, err))
	}
	return r
}
