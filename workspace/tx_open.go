// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/tool"
)

// openCalls are the transactions of calls that hooks have begun.
type openCalls struct {
	mu     sync.Mutex
	calls  map[string]*openCall
	closed bool // no more are begun
}

type openCall struct {
	ctx    context.Context
	cancel context.CancelFunc // gives up waiting
	ready  chan struct{}      // closed when tx and err are there
	tx     *Tx
	err    error
}

var errRunIsOver = errors.New("workspace: the run is over")

// begin begins the transaction of a call, once: who comes second waits for the first. If the call is made
// with another input than the first knew of, the transaction is begun again.
func (o *openCalls) begin(ctx context.Context, b *Binding, call Call, rewritten bool) error {
	open, mine, err := o.enter(ctx, call.ID, nil)
	if err != nil || mine {
		return o.start(open, b, call, err)
	}
	select {
	case <-open.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if open.err != nil || !rewritten || open.tx.call.Paths == nil {
		return open.err
	}
	open.tx.Commit() // nothing was done in it
	again, mine, err := o.enter(ctx, call.ID, open)
	if err != nil || mine {
		return o.start(again, b, call, err)
	}
	return nil
}

// enter makes a call known, in the place of another if there is one. Mine is false if it is known already.
func (o *openCalls) enter(ctx context.Context, id string, instead *openCall) (open *openCall, mine bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, false, errRunIsOver
	}
	if there := o.calls[id]; there != instead {
		return there, false, nil
	}
	open = &openCall{ready: make(chan struct{})}
	open.ctx, open.cancel = context.WithCancel(ctx)
	if o.calls == nil {
		o.calls = map[string]*openCall{}
	}
	o.calls[id] = open
	return open, true, nil
}

func (o *openCalls) start(open *openCall, b *Binding, call Call, refused error) error {
	if refused != nil {
		return refused
	}
	defer close(open.ready)
	defer open.cancel()
	ctx := open.ctx
	if b.outer != nil {
		ctx = txKey.With(ctx, b.outer)
	}
	if _, open.tx, open.err = b.w.Begin(ctx, call); open.err != nil {
		o.remove(call.ID, open)
		return open.err
	}
	open.tx.emit = b.emit
	return nil
}

// remove takes a call out: the one that is named, or with nil whichever has the id.
func (o *openCalls) remove(id string, only *openCall) *openCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	open := o.calls[id]
	if only == nil || open == only {
		delete(o.calls, id)
	}
	return open
}

// end takes the transaction of a call out, or nil. One that still waits for its turn gives up.
func (o *openCalls) end(id string) *Tx {
	open := o.remove(id, nil)
	if open == nil {
		return nil
	}
	open.cancel()
	<-open.ready
	return open.tx
}

// close has no more calls begin, and returns those that are open, sorted.
func (o *openCalls) close() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return slices.Sorted(maps.Keys(o.calls))
}

// transactions are the calls of a workspace.
type transactions struct {
	turns turns

	mu       sync.Mutex
	bindings []*Binding
	restored []Restored
}

// join is the open transaction of a call that a hook has begun, or nil.
func (w *Workspace) join(call *tool.Call) *Tx {
	w.txs.mu.Lock()
	bindings := slices.Clone(w.txs.bindings)
	w.txs.mu.Unlock()
	for _, b := range bindings {
		if tx := b.calls.join(call); tx != nil {
			return tx
		}
	}
	return nil
}

// join is the open transaction of a call of a tool of this program. A call without a known id is that of
// the same tool, which is alone.
func (o *openCalls) join(call *tool.Call) *Tx {
	o.mu.Lock()
	defer o.mu.Unlock()
	if open, there := o.calls[call.ID]; there && isClosed(open.ready) {
		return open.tx
	}
	for _, open := range o.calls {
		if isClosed(open.ready) && open.tx != nil && !open.tx.joined && open.tx.call.Paths == nil && isTool(open.tx.call.Tool, call) {
			open.tx.joined = true
			return open.tx
		}
	}
	return nil
}

// isTool reports whether the CLI's name of a tool is that of the one called.
func isTool(full string, call *tool.Call) bool {
	bare := full
	if parts := strings.SplitN(full, "__", 3); len(parts) == 3 && parts[0] == "mcp" {
		bare = parts[2]
	}
	return bare == call.Name || bare == call.As || full == call.As
}
