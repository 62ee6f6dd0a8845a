// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/workspace"
)

// A transaction is that of a call, which may still wait for its turn.
type transaction struct {
	ctx    context.Context
	cancel context.CancelFunc // gives up waiting
	ready  chan struct{}      // closed when tx and err are there
	tx     *workspace.Tx
	err    error
}

var (
	errNoID      = errors.New("agent: the call has no id")
	errRunIsOver = errors.New("agent: the run is over")
)

// begin begins the transaction of a call that may change files, once: a second passage waits for the first. A call that was
// denied, before or meanwhile, has none. After an error the call is not made: what it changes could not be put back.
func (l *Ledger) begin(ctx context.Context, p *passage) error {
	l.mu.Lock()
	opts, denied := l.opts, p.record.denied
	l.mu.Unlock()
	if opts.Workspace == nil || !p.replaced && (!p.Waits || p.by == byQuestion) || denied {
		return nil
	}
	made := p.ToolCall
	if p.replaced {
		made.Input = p.answer.Input
	}
	call, changes := opts.Workspace.CallOf(opts.Catalogue, made, opts.ReadOnly)
	if !changes {
		return nil
	}
	call.Agent, call.Emit = true, opts.Emit
	err := l.await(ctx, p.record, opts.Workspace, call, p.replaced)
	if l.Denied(p.record) {
		l.deny(p.record) // also what has begun meanwhile
		return nil
	}
	if err == nil {
		return nil
	}
	p.answer = CallDecision{Verdict: event.Deny, Reason: noCheckpoint(err)}
	l.refuse(p)
	return nil
}

// await waits until the transaction of a call has begun. It is begun again if the call has another input than it knew of.
func (l *Ledger) await(ctx context.Context, r *Record, w *workspace.Workspace, call workspace.Call, replaced bool) error {
	for instead := (*transaction)(nil); ; {
		open, mine, err := l.enter(ctx, r, instead)
		switch {
		case mine:
			return l.start(r, w, open, call)
		case err != nil || instead != nil:
			return err
		}
		select {
		case <-open.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if open.err != nil || !replaced || open.tx.Call().Paths == nil {
			return open.err
		}
		open.tx.Commit() // nothing was done in it
		instead = open
	}
}

// enter makes a transaction known, instead of another if there is one. Mine is false if it is known already.
func (l *Ledger) enter(ctx context.Context, r *Record, instead *transaction) (open *transaction, mine bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case r.ID == "": // its end could not be found
		return nil, false, errNoID
	case l.closed || r.runs != l.run:
		return nil, false, errRunIsOver
	case r.tx != instead:
		return r.tx, false, nil
	}
	open = &transaction{ready: make(chan struct{})}
	open.ctx, open.cancel = context.WithCancel(workspace.WithTx(ctx, l.outer))
	r.tx = open
	return open, true, nil
}

func (l *Ledger) start(r *Record, w *workspace.Workspace, open *transaction, call workspace.Call) error {
	defer close(open.ready)
	defer open.cancel()
	if _, open.tx, open.err = w.Begin(open.ctx, call); open.err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.tx == open {
			r.tx = nil
		}
	}
	return open.err
}

// takeTx takes the transaction out of a record, or nil. A transaction that still waits for its turn is cancelled.
func (l *Ledger) takeTx(r *Record) *workspace.Tx {
	l.mu.Lock()
	open := r.tx
	r.tx = nil
	l.mu.Unlock()
	if open == nil {
		return nil
	}
	open.cancel()
	<-open.ready
	return open.tx
}
