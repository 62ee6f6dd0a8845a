// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/recent"
	"github.com/drover-agents/drover/tool"
)

// CallsOptions configures [NewCalls]. Nil and the zero value are ready to use.
type CallsOptions struct {
	// Emit receives each rollback, as [Restored]. Nil means that rollbacks are not reported.
	Emit func(event.Payload)
	// Within is the context that the run is made in. In that of a [Tx], or of a tool's call that is one,
	// the calls of the run are part of it: without it they would wait for its end. Nil means none.
	Within context.Context
}

// Calls makes the tool calls of one run transactions of a workspace, whatever the agent: its adapter reports by
// their ids how they begin and end. A call that fails leaves the files as they were before it. A call whose paths
// are not known begins when no other is at work.
//
// Calls that change no files, and calls that only have others made, such as those of a subagent, are not
// reported. Deny, Commit and Rollback do nothing for a call that is not open.
type Calls struct {
	w     *Workspace
	emit  func(event.Payload)
	outer *Tx // nil if the run is part of no transaction

	mu     sync.Mutex
	open   map[string]*openCall
	closed bool // no more are begun
	denied recent.Map[string, bool]
}

// rememberedDenials is how many denied calls are known. A denial comes within moments of its call.
const rememberedDenials = 256

type openCall struct {
	ctx    context.Context
	cancel context.CancelFunc // gives up waiting
	ready  chan struct{}      // closed when tx and err are there
	tx     *Tx
	err    error
}

// NewCalls makes the calls of a run transactions of the workspace. Call [Calls.End] at the end of the run.
func NewCalls(w *Workspace, opts *CallsOptions) *Calls {
	c := &Calls{w: w, open: map[string]*openCall{}, denied: recent.Map[string, bool]{Size: rememberedDenials}}
	if opts != nil {
		c.emit = opts.Emit
		if opts.Within != nil {
			c.outer, _ = txKey.From(opts.Within)
		}
	}
	w.txs.mu.Lock()
	defer w.txs.mu.Unlock()
	w.txs.runs = append(w.txs.runs, c)
	return c
}

// Serves reports whether the calls of a run in ctx are part of the same transaction as these, or like these of
// none.
func (c *Calls) Serves(ctx context.Context) bool {
	outer, _ := txKey.From(ctx)
	return outer == c.outer
}

var (
	errNoID      = errors.New("workspace: the call has no id")
	errRunIsOver = errors.New("workspace: the run is over")
)

// Begin begins the transaction of a call before it is made, once: a second Begin waits for the first. It waits
// as [Workspace.Begin] does. A call that was denied, before or meanwhile, has no transaction, which is no error.
// After an error the call must not be made: what it changes could not be rolled back.
func (c *Calls) Begin(ctx context.Context, call Call) error {
	switch {
	case c.isDenied(call.ID):
		return nil
	case call.ID == "": // its end could not be reported
		return errNoID
	}
	err := c.begin(ctx, call)
	if c.isDenied(call.ID) {
		c.Commit(call.ID)
		return nil
	}
	return err
}

func (c *Calls) isDenied(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	denied, _ := c.denied.Get(id)
	return denied
}

func (c *Calls) setDenied(id string, denied bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied.Put(id, denied)
}

// Deny ends the transaction of a call that is not made. A Begin that comes later, or still waits, begins nothing.
func (c *Calls) Deny(id string) {
	c.setDenied(id, true)
	c.Commit(id)
}

// Commit ends the transaction of a call: the files stay as they are.
func (c *Calls) Commit(id string) {
	if tx := c.take(id); tx != nil {
		tx.Commit()
	}
}

// Rollback rolls back a call that has failed, and returns what the model is to know, or "". Commands keep their
// files with [Options.KeepFailedShell]. The end of ctx does not leave files half restored.
func (c *Calls) Rollback(ctx context.Context, id string) (text string) {
	switch tx := c.take(id); {
	case tx == nil:
		return ""
	case c.w.opts.KeepFailedShell && tx.call.Shell:
		tx.Commit()
		return ""
	default:
		return tx.undo(context.WithoutCancel(ctx))
	}
}

// Settle is Rollback for a call that can no longer be made or end. Afterwards another call may have its id, also if
// this one was denied: some services count from the beginning with each answer.
func (c *Calls) Settle(ctx context.Context, id string) (text string) {
	defer c.setDenied(id, false)
	return c.Rollback(ctx, id)
}

// End rolls back the calls that have not ended, and has no more begin. Call it when nothing of the run is left that
// could write.
func (c *Calls) End() {
	c.mu.Lock()
	c.closed = true
	open := slices.Sorted(maps.Keys(c.open))
	c.mu.Unlock()
	for _, id := range open {
		c.Rollback(context.Background(), id)
	}
	c.w.txs.mu.Lock()
	defer c.w.txs.mu.Unlock()
	c.w.txs.runs = slices.DeleteFunc(c.w.txs.runs, func(other *Calls) bool { return other == c })
}

// begin begins the transaction of a call that is not denied. If the call is made with another input than an earlier
// Begin knew of, the transaction is begun again.
func (c *Calls) begin(ctx context.Context, call Call) error {
	for instead := (*openCall)(nil); ; {
		open, mine, err := c.enter(ctx, call.ID, instead)
		switch {
		case mine:
			return c.start(open, call)
		case err != nil || instead != nil:
			return err
		}
		select {
		case <-open.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if open.err != nil || !call.Rewritten || open.tx.call.Paths == nil {
			return open.err
		}
		open.tx.Commit() // nothing was done in it
		instead = open
	}
}

// enter makes a call known, in the place of another if there is one. Mine is false if it is known already.
func (c *Calls) enter(ctx context.Context, id string, instead *openCall) (open *openCall, mine bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, errRunIsOver
	}
	if there := c.open[id]; there != instead {
		return there, false, nil
	}
	open = &openCall{ready: make(chan struct{})}
	open.ctx, open.cancel = context.WithCancel(ctx)
	c.open[id] = open
	return open, true, nil
}

func (c *Calls) start(open *openCall, call Call) error {
	defer close(open.ready)
	defer open.cancel()
	ctx := open.ctx
	if c.outer != nil {
		ctx = txKey.With(ctx, c.outer)
	}
	if _, open.tx, open.err = c.w.Begin(ctx, call); open.err != nil {
		c.remove(call.ID, open)
		return open.err
	}
	open.tx.emit = c.emit
	return nil
}

// remove takes a call out: the one that is named, or with nil whichever has the id.
func (c *Calls) remove(id string, only *openCall) *openCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.open[id]
	if only == nil || open == only {
		delete(c.open, id)
	}
	return open
}

// take takes the transaction of a call out, or nil. One that still waits for its turn gives up.
func (c *Calls) take(id string) *Tx {
	open := c.remove(id, nil)
	if open == nil {
		return nil
	}
	open.cancel()
	<-open.ready
	return open.tx
}

// transactions are the calls of a workspace.
type transactions struct {
	turns turns

	mu       sync.Mutex
	runs     []*Calls
	restored []Restored
}

// join is the open transaction of a call that an adapter has begun, or nil.
func (w *Workspace) join(call *tool.Call) *Tx {
	w.txs.mu.Lock()
	runs := slices.Clone(w.txs.runs)
	w.txs.mu.Unlock()
	for _, c := range runs {
		if tx := c.join(call); tx != nil {
			return tx
		}
	}
	return nil
}

// join is the open transaction of a call of a tool of this program. A call without a known id is that of
// the same tool, which is alone.
func (c *Calls) join(call *tool.Call) *Tx {
	c.mu.Lock()
	defer c.mu.Unlock()
	if open, there := c.open[call.ID]; there && isClosed(open.ready) {
		return open.tx
	}
	for _, open := range c.open {
		if isClosed(open.ready) && open.tx != nil && !open.tx.joined && open.tx.call.Paths == nil && isTool(open.tx.call.Tool, call) {
			open.tx.joined = true
			return open.tx
		}
	}
	return nil
}

// isTool reports whether the agent's name of a tool is that of the one called.
func isTool(full string, call *tool.Call) bool {
	bare := full
	if parts := strings.SplitN(full, "__", 3); len(parts) == 3 && parts[0] == "mcp" {
		bare = parts[2]
	}
	return bare == call.Name || bare == call.As || full == call.As
}
