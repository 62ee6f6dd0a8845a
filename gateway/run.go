// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safetext"
)

// errStopped is why a run was ended by [Run.Stop] without an error.
var errStopped = errors.New("gateway: the run was stopped")

// ErrClosed is returned by [Run.Serve] after [Run.Close].
var ErrClosed = errors.New("gateway: the run is closed")

// A Run is the gateway of one agent run: an [http.Handler] that opens with its token alone. It is safe for concurrent use.
//
// When a limit of its trackers is reached, or [Run.Stop] is called, the run is over: answers under way end with an error,
// unless the model has reported their end, and all later requests get status 402, which ends the agent.
type Run struct {
	gateway  *Gateway
	o        RunOptions
	lane     *lane
	share    laneShare // guarded by the lane
	wire     *Wire
	prices   *Prices
	token    string
	isToken  func(token string) bool // made once: each request is asked
	server   *http.Server
	ledger   ledger
	redactor *safetext.Redactor

	// life ends with Close; over ends when the run is stopped, with the reason as its cause.
	life, over  context.Context
	die         context.CancelFunc
	stop        context.CancelCauseFunc
	stopEmitted atomic.Bool  // that the run is over
	warmUps     atomic.Int64 // how often WarmUp has not ended
	refused     atomic.Int64 // requests
	conns       atomic.Int64 // open connections
	reached     atomic.Bool  // the upstream, at least once
	held        atomic.Int64 // bytes of requests under way

	mu      sync.Mutex
	closed  bool
	turns   turnCount
	left    map[*call]chan struct{} // calls whose answer is read on without their agent
	running sync.WaitGroup          // connections, handlers and the watch
}

func newRun(g *Gateway, o RunOptions, token string) *Run {
	r := &Run{gateway: g, o: o, lane: g.laneOf(o.Upstream.Name()), wire: o.Upstream.Wire(), token: token}
	r.prices = g.pricesOf(r.wire)
	r.isToken = func(got string) bool { return sameToken(got, token) }
	r.life, r.die = context.WithCancel(context.Background())
	r.over, r.stop = context.WithCancelCause(r.life)
	r.ledger.prices = r.prices
	r.redactor = safetext.NewRedactor(token)
	r.server = &http.Server{
		Handler:           r,
		ReadHeaderTimeout: time.Minute,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return r.life },
		ConnState:         r.connState,
		ErrorLog:          log.New(io.Discard, "", 0), // a disconnect of an agent is not an error
	}
	return r
}

// watch ends the run when a tracker is spent or its deadline comes, also while no call is made.
func (r *Run) watch() {
	ctx, release := limits(r.life, r.o.Trackers)
	r.running.Go(func() {
		defer release()
		<-ctx.Done()
		if r.life.Err() == nil {
			r.end(context.Cause(ctx))
		}
	})
}

// Token gives access to this run only. It is invalid once the run is closed.
func (r *Run) Token() string { return r.token }

// Usage is what the run has consumed so far.
func (r *Run) Usage() Usage { return r.ledger.usage() }

// Stopped returns why the run was ended: an error that matches [guard.ErrBudgetExhausted] or [guard.ErrDeadlineExceeded],
// or the one given to [Run.Stop]. It is nil for a run that was not, also after [Run.Close].
func (r *Run) Stopped() error {
	if stop, ok := errors.AsType[stopError](context.Cause(r.over)); ok {
		return stop.error
	}
	return nil
}

// Stop ends the run as a limit would. The first reason stays.
func (r *Run) Stop(err error) {
	if err == nil {
		err = errStopped
	}
	r.end(err)
}

// end is the only function that ends a run. Waiting calls have ended before the event is emitted.
func (r *Run) end(err error) {
	r.stop(stopError{err})
	reason := r.Stopped()
	if reason == nil {
		return // closed
	}
	if r.stopEmitted.CompareAndSwap(false, true) {
		r.emitLimit(reason)
	}
}

// A stopError keeps the reason apart from the cancellation of a closed run, whatever it is.
type stopError struct{ error }

// spent asks the trackers, and ends the run if one of them is spent.
func (r *Run) spent() error {
	if err := r.Stopped(); err != nil {
		return err
	}
	for _, t := range r.o.Trackers {
		if err := t.Spent(); err != nil {
			r.end(err)
			return r.Stopped()
		}
	}
	return nil
}

// begin counts a request with all trackers, or ends the run. A request that one tracker refuses may
// be counted by those before it: the request is not sent then, and the run is over.
func (r *Run) begin() error {
	if err := r.spent(); err != nil {
		return err
	}
	for _, t := range r.o.Trackers {
		if err := t.BeginRequest(); err != nil {
			r.end(err)
			return r.Stopped()
		}
	}
	return nil
}

func (r *Run) record(u guard.Usage) {
	for _, t := range r.o.Trackers {
		t.Record(u)
	}
}

// Settle waits until the calls whose agent has disconnected are counted, for at most d.
func (r *Run) Settle(d time.Duration) {
	late := time.After(d)
	for {
		r.mu.Lock()
		var counted chan struct{}
		for _, counted = range r.left {
			break
		}
		r.mu.Unlock()
		if counted == nil {
			return
		}
		select {
		case <-counted:
		case <-late:
			return
		}
	}
}

// leaving and settled notify Settle of a call whose agent has disconnected, and that it is counted.
func (r *Run) leaving(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil {
		r.left = map[*call]chan struct{}{}
	}
	r.left[c] = make(chan struct{})
}

func (r *Run) settled(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if counted := r.left[c]; counted != nil {
		close(counted)
		delete(r.left, c)
	}
}

// Serve answers the connections of l until Close; then it returns [ErrClosed]. It may be called for
// several listeners, which it closes. At most 256 connections are open at once; others are refused.
func (r *Run) Serve(l net.Listener) error {
	if !r.join() {
		_ = l.Close()
		return ErrClosed
	}
	defer r.running.Done()
	if err := r.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ErrClosed
}

// ServeHTTP answers one request of the agent. For an answer that breaks off it panics with [http.ErrAbortHandler].
func (r *Run) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !r.join() {
		r.wire.writeError(w, http.StatusForbidden, textClosed)
		return
	}
	defer r.running.Done()
	r.serve(w, req)
}

// join counts one more that Close waits for, unless the run is closed.
func (r *Run) join() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.running.Add(1)
	return true
}

func (r *Run) connState(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		r.running.Add(1) // Serve is counted while this happens
		many := r.conns.Add(1) > maxConnections
		if many {
			r.emitRefused(Refused{Reason: fmt.Sprintf("there are more than %d connections", maxConnections)})
		}
		if many || r.life.Err() != nil {
			_ = conn.Close() // it may have come while the server was being closed, which has not seen it
		}
	case http.StateClosed, http.StateHijacked:
		r.conns.Add(-1)
		r.running.Done()
	}
}

// Close drops all connections, ends the calls that are under way, and waits until they have ended.
func (r *Run) Close() error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	r.die()
	err := r.server.Close()
	if errors.Is(err, net.ErrClosed) { // the caller may have closed its listener
		err = nil
	}
	r.running.Wait()
	if first {
		r.lane.leave(r.o.Upstream)
	}
	return err
}

// firstLine is the part of an error for the agent: without the advice for its owner.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// safe is the text of an error without the token and without what looks like a secret.
func (r *Run) safe(err error) string { return r.redactor.String(firstLine(err)) }
