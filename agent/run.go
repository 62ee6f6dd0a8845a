// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// DroppedEvents is the key in the metadata of a done event with the number of events that were not delivered
// because the context of the run had ended.
const DroppedEvents = "droppedEvents"

type run struct {
	runner *Runner
	ctx    context.Context // of the adapter
	req    Request
	id     string
	merged *merged
	ended  chan struct{} // closed when the adapter has returned

	reported map[string]bool // tools that are in no catalogue; of the adapter's goroutine

	begun     time.Time
	seq       int64
	sessionID string // the last one that was delivered
	dropped   int    // events that were taken and not delivered
	over      bool   // the done was delivered
}

func newRun(ctx context.Context, r *Runner) *run {
	return &run{runner: r, ctx: ctx, id: r.opts.NewRunID(), merged: newMerged(ctx), ended: make(chan struct{})}
}

type yieldFunc = func(event.Event, error) bool

// stream runs the adapter and yields events until done. cancel ends the context of the run.
func (x *run) stream(cancel context.CancelFunc, yield yieldFunc) {
	x.begun = x.runner.opts.Now()
	if x.ctx.Err() != nil { // the adapter is not called
		x.deliver(x.interrupted(situation{}), yield)
		return
	}
	// Also while the reader is busy: the time for a done counts from here.
	stop := context.AfterFunc(x.ctx, func() { x.merged.drain() })
	go x.drive()
	defer func() {
		stop()
		x.merged.close()
		cancel()
		x.awaitAdapter()
	}()
	x.read(yield)
}

var errMissingDone = errors.New("the adapter ended without saying done")

// drive runs the adapter. Its end is always reported to the reader.
func (x *run) drive() {
	err := errors.New("the adapter ended its goroutine")
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the adapter panicked: %v", p)
			x.log("the adapter panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		x.merged.end(err)
		close(x.ended)
	}()
	x.consume()
	err = errMissingDone
}

// consume hands over the events of the adapter. It calls the stream with a function of its own, since
// the body of a loop would panic in an adapter that goes on after the end.
func (x *run) consume() {
	events := x.runner.adapter.Run(x.ctx, x.req)
	if events == nil {
		x.merged.end(errors.New("the adapter returned no stream"))
		return
	}
	events(func(e event.Event, err error) bool {
		if err == nil {
			err = normalise(&e)
		}
		if err == nil {
			return x.merged.put(e) && x.reportUnknown(e)
		}
		if !x.merged.end(err) {
			x.log("the adapter failed after its end", "error", err)
		}
		return false
	})
}

// reportUnknown reports, once for each, that a tool of the agent has been called that its catalogue does not have:
// its needs are unknown. A gate denies it where there are rules that could be about it.
func (x *run) reportUnknown(e event.Event) bool {
	result, ok := e.Payload.(event.ToolResult)
	of := x.runner.adapter.Catalogue()
	if !ok || of == nil || result.Name == "" || result.Status == event.ToolDenied || x.reported[result.Name] {
		return true
	}
	_, native := of.Native(result.Name)
	_, served := tool.ParseMCPName(result.Name)
	if !native && !served && x.req.Registry != nil {
		_, served = x.req.Registry.Lookup(result.Name)
	}
	if native || served {
		return true
	}
	if x.reported == nil {
		x.reported = map[string]bool{}
	}
	x.reported[result.Name] = true
	return x.merged.put(event.New(event.Error{
		Code: event.CodeUnknownTool, Recoverable: true,
		Message: fmt.Sprintf("the agent called %s, a tool that the catalogue of %s does not have: nothing is known of what it needs", result.Name, x.runner.agent),
		Next:    "set Permissions or Tools to have such tools denied",
	}))
}

// normalise makes an event one whose payload can be relied on.
func normalise(e *event.Event) error {
	if e.Payload == nil {
		return errors.New("the adapter yielded an event without a payload")
	}
	e.Payload, e.Position = pointedTo(e.Payload), event.Position{}
	e.Kind = e.Payload.EventKind()
	if _, isDone := e.Payload.(event.Done); !isDone && e.Kind == event.KindDone {
		return fmt.Errorf("the adapter yielded a done event that is a %T", e.Payload)
	}
	return nil
}

// pointedTo is the value of a payload that is a pointer to one: adapters may yield pointers, and readers look for values.
func pointedTo(p event.Payload) event.Payload {
	if v := reflect.ValueOf(p); v.Kind() == reflect.Pointer {
		if value, ok := reflect.TypeAssert[event.Payload](v.Elem()); ok {
			return value
		}
	}
	return p
}

// read yields the events of the adapter and the host, and then the end.
func (x *run) read(yield yieldFunc) {
	var now situation
	var timeUp <-chan time.Time
	for expired := false; ; {
		now = x.merged.take(now.events)
		if !x.deliverAll(now.events, yield) || x.finish(now, expired, yield) {
			return
		}
		if len(now.events) > 0 {
			continue // there may be more by now
		}
		if timeUp == nil && x.ctx.Err() != nil {
			timeUp = time.After(x.runner.opts.DrainTimeout - time.Since(x.merged.drain()))
		}
		select {
		case <-x.merged.ready:
		case <-timeUp:
			expired = true
		}
	}
}

// deliverAll yields events until the context ends. It reports false when the reader leaves.
func (x *run) deliverAll(events []event.Event, yield yieldFunc) bool {
	for i, e := range events {
		if x.ctx.Err() != nil {
			x.dropped += len(events) - i
			return true
		}
		if !x.deliver(e, yield) {
			return false
		}
	}
	return true
}

// finish yields the end of the run if it has come. The token of an adapter's done is remembered before
// it is delivered, so that a reader that leaves then does not lose the conversation.
func (x *run) finish(now situation, expired bool, yield yieldFunc) bool {
	stopped := x.ctx.Err() != nil
	switch {
	case now.done != nil:
		x.runner.remember(resumeToken(now.done))
		x.deliver(x.withDropped(*now.done, now), yield)
	case stopped && (now.err != nil || expired): // what fails after a stop fails because of it
		x.deliver(x.withDropped(x.interrupted(now), now), yield)
	case now.err != nil:
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

// fail yields what went wrong and a done. The conversation is lost. It uses Sprint: an adapter's Error method may panic.
func (x *run) fail(now situation, yield yieldFunc) {
	failure := event.Error{Code: event.CodeAdapter, Message: fmt.Sprint(now.err), Next: advice.Safe(now.err), Cause: now.err}
	if errors.Is(now.err, errMissingDone) {
		failure.Code = event.CodeMissingDone
	}
	if x.deliver(event.Event{Kind: event.KindError, Payload: failure}, yield) {
		x.deliver(x.made(event.Done{Status: event.DoneError, Result: failure.Message}, now), yield)
	}
}

// interrupted is the done of a run that was stopped before it yielded one itself. The token of the request stays valid.
func (x *run) interrupted(now situation) event.Event {
	reason := context.Cause(x.ctx).Error()
	return x.made(event.Done{Status: event.DoneInterrupted, Reason: reason, ResumeToken: x.req.Resume}, now)
}

// made completes a done that the adapter did not make.
func (x *run) made(done event.Done, now situation) event.Event {
	done.Usage.ToolUses = now.toolUses
	done.Duration = x.runner.opts.Now().Sub(x.begun)
	return event.Event{Kind: event.KindDone, SessionID: now.sessionID, Payload: done}
}

// withDropped adds to a done the number of events that were dropped before it.
func (x *run) withDropped(e event.Event, now situation) event.Event {
	n := now.dropped + x.dropped
	if n == 0 {
		return e
	}
	all := map[string]json.RawMessage{}
	for key, value := range e.Metadata {
		all[key] = value
	}
	all[DroppedEvents] = json.RawMessage(strconv.Itoa(n))
	e.Metadata = all
	return e
}

func (x *run) deliver(e event.Event, yield yieldFunc) bool {
	if e.SessionID != "" {
		x.sessionID = e.SessionID
	}
	if e.Agent == "" {
		e.Agent = x.runner.agent
	}
	if e.Time.IsZero() {
		e.Time = x.runner.opts.Now()
	}
	x.seq++
	e.SessionID, e.RunID, e.Seq, e.Role = x.sessionID, x.id, x.seq, x.runner.opts.Role
	_, x.over = e.Payload.(event.Done)
	return yield(e, nil)
}

// awaitAdapter waits until the adapter has returned, but not for ever. A done that comes now, because
// the reader has left, still has the token that continues the conversation.
func (x *run) awaitAdapter() {
	timer := time.NewTimer(x.runner.opts.CloseTimeout)
	defer timer.Stop()
	select {
	case <-x.ended:
	case <-timer.C:
		x.log("the adapter does not return; it is left behind", "waited", x.runner.opts.CloseTimeout)
	}
	if now := x.merged.take(nil); now.done != nil && !x.over {
		x.runner.remember(resumeToken(now.done))
	}
}

func (x *run) log(what string, args ...any) {
	x.runner.opts.Logger.Error("agent: "+what, append([]any{"agent", x.runner.agent, "run", x.id}, args...)...)
}
