// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/tool"
)

// refreshTimeout bounds how long a server may take to list its tools after it announced a change.
const refreshTimeout = 30 * time.Second

var errImportClosed = errors.New("mcp: the import is closed")

// ImportOptions configures [Import]. Nil and the zero value are ready to use.
type ImportOptions struct {
	// Name is the namespace of the tools. Empty means the name by which the server introduces itself.
	Name string
	// Prefix is put before the name of each tool. Empty means none.
	Prefix string
	// Trust takes the server's word for what its tools do not do. Without it every tool counts as mutating, dangerous and in
	// need of the network, as MCP assumes of a tool that gives no hints; what the server says can only add to that. With it
	// the hints readOnlyHint, destructiveHint and openWorldHint hold, and a hint that is missing means the worst.
	Trust bool
	// Adjust may change a tool before it is used: its risk, its timeout, its description, or AlwaysLoad if Claude Code is to
	// show it from the start. It is called for each tool, again when the server changes it. Nil leaves them.
	Adjust func(t *tool.Tool)
	// Registry gets the tools, follows the changes that the server announces, and loses the tools when
	// the import is closed. Nil leaves that to the caller.
	Registry *tool.Registry
	// Logger receives unreadable schemas, changes that cannot be taken over, and a command's standard error. Nil discards.
	Logger *slog.Logger
}

// Imported are the tools of an MCP server.
type Imported struct {
	opts    ImportOptions
	name    string
	link    *link
	session *sdk.ClientSession
	life    context.Context // of calls and of the follower; ends with Close
	end     context.CancelFunc
	closing sync.Once
	changed chan struct{} // holds one announcement that was not looked at yet
	follow  sync.WaitGroup

	tokens    atomic.Int64
	cancelled atomic.Int64 // calls of whose cancellation the SDK tells the server
	listeners sync.Map     // progress token -> context of the call

	refreshing sync.Mutex
	mu         sync.Mutex
	tools      []importedTool
	closed     bool // no call begins any more
	calls      sync.WaitGroup
}

type importedTool struct {
	remote string // as the server calls it
	form   string // its declaration by the server
	tool   *tool.Tool
}

// Import connects to an MCP server and makes tools of its tools. ctx is for that only; the connection lasts until Close.
//
// A name that a tool of ours cannot have is changed: other characters become "_", and what is over 64
// characters is cut and ends in a digest. Two tools that would then have the same name are an error.
// A schema that this side cannot read is put into the description and left to the server to check.
//
// Calls pass on cancellation, progress, the call's id, images and structured values. A server that
// ends, or cannot be reached, fails its calls with [CodeServerGone]; it is not started again. A
// report of progress that arrives together with the result may be lost.
func Import(ctx context.Context, from Source, opts *ImportOptions) (*Imported, error) {
	if from == nil {
		return nil, errors.New("mcp: importing: there is no source; give a Command or an HTTP")
	}
	im := &Imported{changed: make(chan struct{}, 1)}
	if opts != nil {
		im.opts = *opts
	}
	im.opts.Logger = safelog.Logger(im.opts.Logger)
	im.life, im.end = context.WithCancel(context.Background())
	if err := im.open(ctx, from); err != nil {
		im.end()
		return nil, fmt.Errorf("mcp: importing: %w", err)
	}
	if err := im.Refresh(ctx); err != nil {
		im.Close()
		return nil, err
	}
	im.follow.Go(im.followChanges)
	return im, nil
}

func (im *Imported) open(ctx context.Context, from Source) (err error) {
	if im.link, err = from.open(ctx, im.opts.Logger); err != nil {
		return err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "drover", Version: "0"}, &sdk.ClientOptions{
		Logger: im.opts.Logger, Capabilities: &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case im.changed <- struct{}{}:
			default: // one look at the list serves both announcements
			}
		},
		ProgressNotificationHandler: im.progress,
	})
	client.AddSendingMiddleware(collectTools)
	im.session, err = client.Connect(ctx, im.link.transport, &sdk.ClientSessionOptions{ProtocolVersion: handshakeVersion})
	if err != nil {
		return im.noHandshake(ctx, err)
	}
	im.name = im.opts.Name
	if info := im.session.InitializeResult().ServerInfo; info != nil {
		im.name = cmp.Or(im.name, info.Name)
	}
	return nil
}

// noHandshake ends a server with which nothing can be begun.
func (im *Imported) noHandshake(ctx context.Context, err error) error {
	what, late := im.link.gone(), ctx.Err() != nil
	im.link.end()
	if what != "" && !late {
		err = fmt.Errorf("%w (%s%s)", err, what, im.link.advice())
	}
	return fmt.Errorf("shaking hands with the server: %w", err)
}

// Tools returns the tools, in the order in which the server lists them. They must not be changed.
func (im *Imported) Tools() []*tool.Tool {
	im.mu.Lock()
	defer im.mu.Unlock()
	out := make([]*tool.Tool, 0, len(im.tools))
	for _, t := range im.tools {
		out = append(out, t.tool)
	}
	return out
}

// Refresh asks the server for its tools again. Announced changes need no call of it. An error leaves the tools as they were.
func (im *Imported) Refresh(ctx context.Context) error {
	im.refreshing.Lock()
	defer im.refreshing.Unlock()
	if im.life.Err() != nil {
		return errImportClosed
	}
	remote, err := im.list(ctx)
	if err != nil {
		return fmt.Errorf("mcp: listing the tools of %s: %w", im.name, err)
	}
	im.mu.Lock()
	before := im.tools
	im.mu.Unlock()
	now, err := im.convertAll(remote, before)
	if err != nil {
		return fmt.Errorf("mcp: tools of %s: %w", im.name, err)
	}
	if err := im.register(before, now); err != nil {
		return fmt.Errorf("mcp: registering the tools of %s: %w", im.name, err)
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	im.tools = now
	return nil
}

type collected struct{ tools []*sdk.Tool }

type collectedKey struct{}

// collectTools notes the tools that a server lists, because the SDK drops some of them and reports it only to its log.
func collectTools(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		if page, ok := result.(*sdk.ListToolsResult); ok && err == nil {
			if c, ok := ctx.Value(collectedKey{}).(*collected); ok {
				c.tools = append(c.tools, page.Tools...)
			}
		}
		return result, err
	}
}

func (im *Imported) list(ctx context.Context) ([]*sdk.Tool, error) {
	if caps := im.session.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return nil, nil // a server of other things
	}
	var all collected
	for _, err := range im.session.Tools(context.WithValue(ctx, collectedKey{}, &all), nil) {
		if err != nil {
			return nil, err
		}
	}
	return all.tools, nil
}

// convertAll makes tools of those that are listed. One that has not changed stays the same.
func (im *Imported) convertAll(remote []*sdk.Tool, before []importedTool) ([]importedTool, error) {
	var now []importedTool
	var errs []error
	remoteName := map[string]string{}
	for i, r := range remote {
		if r == nil {
			errs = append(errs, fmt.Errorf("the server lists null as tool %d", i))
			continue
		}
		t, err := im.convertOnce(r, before)
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %q: %w", r.Name, err))
			continue
		}
		if other, taken := remoteName[t.tool.Name]; taken {
			errs = append(errs, fmt.Errorf("tools %q and %q would both have the name %s", other, r.Name, t.tool.Name))
		}
		remoteName[t.tool.Name] = r.Name
		now = append(now, t)
	}
	return now, errors.Join(errs...)
}

func (im *Imported) convertOnce(r *sdk.Tool, before []importedTool) (importedTool, error) {
	form, err := json.Marshal(r)
	if err != nil {
		return importedTool{}, err
	}
	same := func(old importedTool) bool { return old.remote == r.Name && old.form == string(form) }
	if at := slices.IndexFunc(before, same); at >= 0 {
		return before[at], nil
	}
	t, err := im.convert(r)
	return importedTool{r.Name, string(form), t}, err
}

// register brings the registry to what the server has now.
func (im *Imported) register(before, now []importedTool) error {
	if im.opts.Registry == nil {
		return nil
	}
	var added, changed []*tool.Tool
	gone := map[string]bool{}
	known := map[string]*tool.Tool{}
	for _, t := range before {
		known[t.tool.ID()], gone[t.tool.ID()] = t.tool, true
	}
	for _, t := range now {
		id := t.tool.ID()
		delete(gone, id)
		switch known[id] {
		case nil:
			added = append(added, t.tool)
		case t.tool:
		default:
			changed = append(changed, t.tool)
		}
	}
	// Adding comes first, since only it can fail: another tool may have the id.
	if len(added) > 0 {
		if err := im.opts.Registry.Add(added...); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		if err := im.opts.Registry.Replace(changed...); err != nil {
			return err
		}
	}
	for id := range gone {
		im.opts.Registry.Remove(id)
	}
	return nil
}

func (im *Imported) followChanges() {
	for {
		select {
		case <-im.life.Done():
			return
		case <-im.changed:
		}
		ctx, cancel := context.WithTimeout(im.life, refreshTimeout)
		if err := im.Refresh(ctx); err != nil && im.life.Err() == nil {
			im.opts.Logger.Error("changed tools are not taken over; the last ones stay", "error", err)
		}
		cancel()
	}
}

// Close cancels the calls that are running, takes the tools out of the registry, and ends the connection; a command is ended
// with all that it started. It waits for all of that, and may be called again.
func (im *Imported) Close() { im.closing.Do(im.close) }

func (im *Imported) close() {
	im.mu.Lock()
	im.closed = true
	im.mu.Unlock()
	im.end()
	im.follow.Wait()
	im.leaveRegistry()
	ended, _ := withinGrace(im.endSession) // if the server does not read, its end frees the writer
	im.link.end()
	<-ended
}

// leaveRegistry takes the tools out of the registry, after a refresh that is under way.
func (im *Imported) leaveRegistry() {
	im.refreshing.Lock()
	defer im.refreshing.Unlock()
	_ = im.register(im.tools, nil) // removing does not fail
}

// endSession ends the session after its calls. The SDK tells the server of their cancellation after
// they return, and not at all once the session closes, so it gets the time for that.
func (im *Imported) endSession() {
	im.calls.Wait()
	if im.link.cancels != nil {
		ctx, cancel := context.WithTimeout(context.Background(), exitGrace)
		defer cancel()
		im.link.cancels.await(ctx, int(im.cancelled.Load()))
	}
	_ = im.session.Close() // how a session ends that we end is of no interest
}

// begin counts a call, unless the import is closed. The caller must say calls.Done.
func (im *Imported) begin() bool {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return false
	}
	im.calls.Add(1)
	return true
}
