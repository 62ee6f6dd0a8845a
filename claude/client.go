// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/internal/spill"
)

// A Client is a conversation with one CLI process. Its methods are safe to call from several
// goroutines, except that messages have one reader at a time: a loop over [Client.Messages], [Client.Lines]
// or [Client.Turn] gets [ErrReading] while there is another one.
//
// A client must be closed. Close is also implied by breaking out of an iteration over messages.
type Client struct {
	opts *Options
	conn *conn
	log  *slog.Logger
	mux  *mcpMux
	init atomic.Pointer[InitializeResult]

	recorder Recorder // never nil

	mirror  *transcript.Mirror
	lost    atomic.Pointer[error] // why the store lacks something
	store   *lockedStore          // nil without Options.Store
	flushes sync.WaitGroup
	resumed *transcript.Resumed
	awaits  bool // the CLI is to wait for the handshake

	initMu     sync.Mutex // one handshake at a time
	generation int        // of the hooks, in their ids; guarded by initMu

	hooksMu sync.RWMutex
	hooks   map[string]*Hook // by the id given in the handshake

	reader  sync.Mutex       // held by the goroutine that reads messages
	batch   []spill.Item     // taken from the queue and not delivered; guarded by reader
	space   [64]spill.Item   // what batch is made of
	results []*ResultMessage // those since the last TurnEnd; guarded by reader
	torn    error            // the last line since then that could not be read; guarded by reader
	fed     *streamEnd       // set by feed, read after it came through the queue

	warnTools sync.Once
	closeOnce sync.Once
	closeErr  error
}

// Connect starts the CLI and does the handshake. The context covers the start alone: only
// [Client.Close] ends the conversation. Nil options mean the zero value.
//
// Errors are an [OptionError] for an invalid option and a [LaunchError] for a CLI that cannot be
// started. A CLI that ends before it answers is a [ResultError] if it gave a reason, else a [ProcessError].
func Connect(ctx context.Context, opts *Options) (*Client, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil { // a CLI that answers fast would be connected all the same
		return nil, fmt.Errorf("claude: connecting: %w", err)
	}
	c := &Client{opts: &o, log: safelog.Logger(o.Logger), recorder: noRecorder{}}
	if o.Recorder != nil {
		c.recorder = o.Recorder
	}
	if err := c.start(ctx); err != nil {
		_ = c.cleanUp()
		return nil, err
	}
	if err := c.handshake(ctx); err != nil {
		if o.resumes() { // at the end of its input it would go on without hooks
			_ = c.conn.proc.Kill()
		}
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// handshake sends initialize and checks that the CLI can do what the options ask for.
func (c *Client) handshake(ctx context.Context) error {
	limit := c.opts.InitializeTimeout
	if limit == 0 {
		limit = 60 * time.Second
	}
	init, err := c.initialize(ctx, c.opts, limit)
	if err != nil {
		return c.opts.startError(err)
	}
	if err := c.opts.checkSupport(init); err != nil {
		return err
	}
	if err := errors.Join(c.checkSandbox(ctx), c.setServersWithPolicies(ctx)); err != nil {
		return err
	}
	c.redeliver(init.Pending)
	c.warnShadowed()
	return nil
}

// redeliver answers the questions that the CLI had open before the handshake.
func (c *Client) redeliver(pending []json.RawMessage) {
	for _, raw := range pending {
		if head, err := peekLine(raw); err == nil && head.typ == "control_request" {
			c.conn.request(head)
		}
	}
}

// warnShadowed logs where other options keep CanUseTool from being asked.
func (c *Client) warnShadowed() {
	if c.opts.CanUseTool == nil {
		return
	}
	skillsAll := c.opts.Skills != nil && c.opts.Skills.All
	for _, warning := range shadowWarnings(c.opts.PermissionMode, c.opts.AllowedTools, skillsAll) {
		c.log.Warn("claude: " + warning)
	}
}

// Initialized returns the CLI's answer to the handshake: commands, models, account, version and capabilities.
func (c *Client) Initialized() *InitializeResult { return c.init.Load() }

// Request sends a control request that has no method here and returns the payload of its answer. The fields must encode as a
// JSON object; nil means none. A refusal is a [ControlError]. Without a deadline in ctx the CLI has 60 seconds.
func (c *Client) Request(ctx context.Context, subtype string, fields any) (json.RawMessage, error) {
	reply, err := c.conn.call(ctx, subtype, fields, defaultCallTimeout)
	return reply.Response, err
}

// SetHooks replaces the hooks of the running conversation. A running call is finished by the hook it
// began with. A CLI that cannot do it is [ErrTooOld], and the hooks stay as they were.
func (c *Client) SetHooks(ctx context.Context, hooks []Hook) error {
	if err := validateHooks(hooks); err != nil {
		return err
	}
	c.conn.queue.Hurry()
	o := *c.opts
	o.Hooks = hooks
	_, err := c.initialize(ctx, &o, defaultCallTimeout)
	return err
}

// initialize sends the handshake for o. A CLI that has taken one before replaces its hooks; until
// it has answered, the old ones may still be called.
func (c *Client) initialize(ctx context.Context, o *Options, limit time.Duration) (*InitializeResult, error) {
	c.initMu.Lock()
	defer c.initMu.Unlock()
	c.generation++
	hooks, table := initializeHooks(o.Hooks, c.generation)
	if hooks == nil && c.generation > 1 {
		hooks = struct{}{} // without the field the CLI keeps the hooks it has
	}
	manifests, err := c.mux.manifests()
	if err != nil {
		return nil, err
	}
	c.addHooks(table)
	reply, err := c.conn.call(ctx, "initialize", o.initialize(hooks, c.mux.inProcess(), manifests), limit)
	if err != nil {
		return nil, err
	}
	init, err := decodeInitializeResult(reply.raw)
	if err != nil {
		return nil, err
	}
	if err := init.checkHooks(o.Hooks); err != nil {
		return nil, err
	}
	if c.generation > 1 && init.HooksApplied == nil {
		return nil, fmt.Errorf("%w: it does not replace hooks while it runs; they are as they were", ErrTooOld)
	}
	c.setHooks(table)
	c.init.Store(init)
	return init, nil
}

func (c *Client) setHooks(table map[string]*Hook) {
	c.hooksMu.Lock()
	defer c.hooksMu.Unlock()
	c.hooks = table
}

func (c *Client) addHooks(table map[string]*Hook) {
	c.hooksMu.Lock()
	defer c.hooksMu.Unlock()
	all := make(map[string]*Hook, len(c.hooks)+len(table))
	for _, m := range []map[string]*Hook{c.hooks, table} {
		for id, h := range m {
			all[id] = h
		}
	}
	c.hooks = all
}

func (c *Client) hook(id string) *Hook {
	c.hooksMu.RLock()
	defer c.hooksMu.RUnlock()
	return c.hooks[id]
}

// Interrupt ends the turn under way. The result of the broken turn comes as a message like any
// other; the conversation goes on with the next Send. Without a turn it does nothing.
func (c *Client) Interrupt(ctx context.Context) (InterruptReceipt, error) {
	return c.requestInterrupt(ctx, false)
}

// InterruptAll is Interrupt that also drops the prompts that wait for their turn.
func (c *Client) InterruptAll(ctx context.Context) (InterruptReceipt, error) {
	return c.requestInterrupt(ctx, true)
}

// SetMCPServers replaces the servers that were given with Options.MCPServers or an earlier call. The
// model may still be shown the tools of those that are gone; the CLI refuses calls of them.
func (c *Client) SetMCPServers(ctx context.Context, servers map[string]MCPServer) (MCPServersChange, error) {
	v := &validator{}
	for _, name := range sortedKeys(servers) {
		v.server(fmt.Sprintf("servers[%q]", name), name, servers[name])
	}
	if err := errors.Join(v.errs...); err != nil {
		return MCPServersChange{}, err
	}
	c.conn.queue.Hurry()
	for _, name := range sortedKeys(servers) {
		if ours, ok := servers[name].(*MCPInProcess); ok {
			if err := c.mux.add(name, ours); err != nil {
				return MCPServersChange{}, err
			}
		}
	}
	configs, err := serverConfigs(servers)
	if err != nil {
		return MCPServersChange{}, err
	}
	change, err := c.requestSetMCPServers(ctx, configs)
	if err == nil {
		c.mux.keep(servers)
	}
	return change, err
}

func serverConfigs(servers map[string]MCPServer) (map[string]json.RawMessage, error) {
	configs := make(map[string]json.RawMessage, len(servers))
	for _, name := range sortedKeys(servers) {
		config, err := servers[name].configJSON(name)
		if err != nil {
			return nil, err
		}
		configs[name] = config
	}
	return configs, nil
}

// setServersWithPolicies sends the servers that the command line cannot carry. It names those in this
// process again, because the request replaces the servers of the handshake.
func (c *Client) setServersWithPolicies(ctx context.Context) error {
	servers := map[string]MCPServer{}
	for name, s := range c.opts.MCPServers {
		if hasPolicies(s) {
			servers[name] = s
		}
	}
	if len(servers) == 0 {
		return nil
	}
	for name, s := range c.opts.inProcess() {
		servers[name] = s
	}
	configs, err := serverConfigs(servers)
	if err != nil {
		return err
	}
	change, err := c.requestSetMCPServers(ctx, configs)
	for name, problem := range change.Errors {
		c.log.Warn("claude: an MCP server cannot be used", "server", name, "error", problem)
	}
	return err
}
