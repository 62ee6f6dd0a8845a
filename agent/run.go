// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/drover-agents/drover/event"
)

// A run is one run of a [Runner].
type run struct {
	runner  *Runner
	req     Request
	id      string
	merged  *merged
	ended   chan struct{} // closed when the adapter has returned
	begun   time.Time
	seq     int64
	session string // the last one that the adapter named
	dropped int    // events that were taken and not delivered
	over    bool   // the done was delivered
}

func newRun(r *Runner, id string) *run {
	return &run{runner: r, id: id, merged: newMerged(), ended: make(chan struct{})}
}

type yieldFunc = func(event.Event, error) bool

// stream runs the adapter and yields its events until done.
func (x *run) stream(parent context.Context, yield yieldFunc) {
	x.begun = x.runner.opts.Now()
	if parent.Err() != nil { // the adapter never hears of it
		x.deliver(x.interrupted(parent, 0), yield)
		return
	}
	ctx, cancel := context.WithCancel(parent)
	stop := context.AfterFunc(parent, x.merged.drain)
	go x.drive(ctx, parent)
	defer func() {
		stop()
		x.merged.close()
		cancel()
		x.awaitAdapter()
	}()
	x.read(parent, yield)
}

// drive runs the adapter. Whatever becomes of it, the reader is told.
func (x *run) drive(ctx, parent context.Context) {
	err := errors.New("the adapter ended its goroutine")
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the adapter panicked: %v", p)
			x.runner.opts.Logger.Error("agent: the adapter panicked", "agent", x.runner.Agent(), "run", x.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		if parent.Err() != nil { // it failed because it was stopped, even if it was faster than drain
			x.merged.drain()
		}
		x.merged.end(err)
		close(x.ended)
	}()
	err = x.consume(ctx)
}

var errMissingDone = errors.New("the adapter ended without saying done")

// consume hands over the events of the adapter. It calls the stream with a function of its own, since
// the body of a loop would panic in an adapter that goes on after the end.
func (x *run) consume(ctx context.Context) error {
	var failed error
	x.runner.adapter.Run(ctx, x.req)(func(e event.Event, err error) bool {
		if failed != nil {
			return false
		}
		if err == nil {
			e, err = checked(e)
		}
		if err != nil {
			failed = err
			return false
		}
		return x.merged.put(ctx, e)
	})
	return cmp.Or(failed, errMissingDone)
}

// checked is an event whose payload can be relied on.
func checked(e event.Event) (event.Event, error) {
	switch p := e.Payload.(type) {
	case nil:
		return e, errors.New("the adapter yielded an event without a payload")
	case event.Done:
	case *event.Done:
		e.Payload = *p
	default:
		if p.EventKind() == event.KindDone {
			return e, fmt.Errorf("the adapter yielded a done event that is a %T", p)
		}
	}
	e.Kind = e.Payload.EventKind()
	return e, nil
}

// read yields what the adapter and the host say, and then the end.
func (x *run) read(parent context.Context, yield yieldFunc) {
	timeUp := lazyTimer{}
	defer timeUp.stop()
	var now situation
	for expired := false; ; {
		now = x.merged.take(now.events)
		for _, e := range now.events {
			if x.merged.draining.Load() {
				x.dropped++
			} else if !x.deliver(e, yield) {
				return
			}
		}
		if x.finish(parent, now, expired, yield) {
			return
		}
		if !now.drainedAt.IsZero() {
			timeUp.start(x.runner.opts.DrainTimeout - time.Since(now.drainedAt))
		}
		select {
		case <-x.merged.ready:
		case <-timeUp.expired:
			expired = true
		}
	}
}

// finish yields the end of the run if it has come. The token of an adapter's done is remembered before
// anybody sees it, so that a reader who leaves then does not lose the conversation.
func (x *run) finish(parent context.Context, now situation, expired bool, yield yieldFunc) bool {
	switch {
	case now.done != nil:
		x.runner.remember(resumeToken(now.done))
		x.deliver(withDropped(*now.done, now.dropped+x.dropped), yield)
	case !now.drainedAt.IsZero() && (now.returned || expired):
		x.deliver(withDropped(x.interrupted(parent, now.calls), now.dropped+x.dropped), yield)
	case now.returned:
		x.runner.remember("")
		x.fail(now, yield)
	default:
		return false
	}
	return true
}

func resumeToken(e *event.Event) string {
	done, _ := e.Payload.(event.Done)
	return done.ResumeToken
}

// fail yields what went wrong and a done. The conversation is lost.
func (x *run) fail(now situation, yield yieldFunc) {
	failure := event.Error{Code: event.CodeAdapter, Message: now.err.Error(), Cause: now.err}
	if errors.Is(now.err, errMissingDone) {
		failure.Code = event.CodeMissingDone
	}
	if x.deliver(event.Event{Payload: failure}, yield) {
		x.deliver(x.made(event.Done{Status: event.DoneError, Result: failure.Message}, now.calls), yield)
	}
}

// interrupted is the done of a run that was stopped before it said so itself. What was to be resumed
// still can be.
func (x *run) interrupted(parent context.Context, calls int) event.Event {
	reason := ""
	if cause := context.Cause(parent); cause != nil {
		reason = cause.Error()
	}
	return x.made(event.Done{Status: event.DoneInterrupted, Reason: reason, ResumeToken: x.req.Resume}, calls)
}

// made completes a done that the adapter did not make.
func (x *run) made(done event.Done, calls int) event.Event {
	done.Usage.ToolUses = calls
	done.Duration = x.runner.opts.Now().Sub(x.begun)
	return event.Event{Payload: done}
}

// withDropped says in a done how many events were dropped before it.
func withDropped(e event.Event, n int) event.Event {
	if n == 0 {
		return e
	}
	all := map[string]json.RawMessage{DroppedEvents: json.RawMessage(strconv.Itoa(n))}
	for key, value := range e.Metadata {
		all[key] = value
	}
	e.Metadata = all
	return e
}

// DroppedEvents is the key in the metadata of a done event that says how many events of the agent were
// not delivered because the run was stopped.
const DroppedEvents = "droppedEvents"

// deliver numbers an event and yields it.
func (x *run) deliver(e event.Event, yield yieldFunc) bool {
	x.session = cmp.Or(e.SessionID, x.session)
	x.seq++
	e.Kind, e.SessionID = e.Payload.EventKind(), x.session
	e.RunID, e.Seq, e.Role = x.id, x.seq, x.runner.opts.Role
	e.Agent = cmp.Or(e.Agent, x.runner.Agent())
	if e.Time.IsZero() {
		e.Time = x.runner.opts.Now()
	}
	_, x.over = e.Payload.(event.Done)
	return yield(e, nil)
}

// awaitAdapter waits until the adapter has returned, but not for ever. A done that comes now, because
// the reader has left, still says how the conversation can be continued.
func (x *run) awaitAdapter() {
	timer := time.NewTimer(x.runner.opts.CloseTimeout)
	defer timer.Stop()
	select {
	case <-x.ended:
	case <-timer.C:
		x.runner.opts.Logger.Error("agent: the adapter does not return; it is left behind", "agent", x.runner.Agent(), "run", x.id, "waited", x.runner.opts.CloseTimeout)
	}
	if now := x.merged.take(nil); now.done != nil && !x.over {
		x.runner.remember(resumeToken(now.done))
	}
}

// A lazyTimer is a timer that most runs never start.
type lazyTimer struct {
	timer   *time.Timer
	expired <-chan time.Time
}

func (t *lazyTimer) start(after time.Duration) {
	if t.timer == nil {
		t.timer = time.NewTimer(after)
		t.expired = t.timer.C
	}
}

func (t *lazyTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}
