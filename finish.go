// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

// output is where the events of an evaluation go.
type output struct {
	*evaluation
	emit  emitFunc
	leave func()
	left  bool
	// held is an error that ended a turn. Whether it ended the evaluation too is known when something
	// follows, or nothing does.
	held *event.Event
}

// take passes an event on, until the reader leaves.
func (o *output) take(ev event.Event) bool {
	o.release(true)
	if failure, ok := ev.Payload.(event.Error); ok && !failure.Recoverable {
		o.held = &ev
		return !o.left
	}
	return o.give(ev)
}

// release passes on the error that is held back, which the evaluation has survived or not.
func (o *output) release(survived bool) {
	if o.held == nil {
		return
	}
	ev := *o.held
	o.held = nil
	if failure, ok := ev.Payload.(event.Error); ok {
		failure.Recoverable = survived
		ev.Payload = failure
	}
	o.give(ev)
}

// give numbers an event.
func (o *output) give(ev event.Event) bool {
	if o.left {
		return false
	}
	o.seq++
	ev.Seq, ev.RunID = o.seq, o.run.RunID
	if !o.deliver(ev) {
		o.left = true
		o.leave()
	}
	return !o.left
}

// deliver gives an event to the reader, whose loop may panic.
func (o *output) deliver(ev event.Event) bool {
	o.deliveries.Add(1)
	defer o.deliveries.Add(1)
	return o.emit(ev)
}

// finish records the end, whatever it is, and tells of it.
func (e *evaluation) finish(ctx context.Context, out *output, o *outcome, err error) error {
	err = because(ctx, err)
	ctx = context.WithoutCancel(ctx)
	e.summary.Duration = time.Since(e.began)
	var failure *EvaluationError
	if err != nil {
		failure = e.failed(err)
		e.summary.Status = endStatus(e.summary.Status, failure.Kind)
		failure.Summary = e.summary
	} else {
		e.dispatchValue(ctx, o.value)
	}
	if _, kept := e.opts.Session.Dispatch(ctx, e.executed(failure)); kept != nil {
		failure = e.unrecorded(failure, kept)
	}
	err = nil
	if failure != nil {
		err = failure
	}
	e.logEnd(ctx, failure)
	e.observed(failure)
	e.tellEnd(out, failure)
	if failure == nil {
		o.Summary = e.summary
	}
	return err
}

// unrecorded is the error of an evaluation whose end could not be recorded.
func (e *evaluation) unrecorded(failure *EvaluationError, kept error) *EvaluationError {
	if failure == nil {
		e.summary.Status = event.DoneError
		return e.failed(fmt.Errorf("the end could not be recorded: %w", kept))
	}
	failure.Err = errors.Join(failure.Err, kept)
	return failure
}

// tellEnd gives the last events: why it failed, if it did, and the done.
func (e *evaluation) tellEnd(out *output, failure *EvaluationError) {
	done := event.Done{
		Status: event.DoneSuccess, Result: e.summary.Text, Output: e.summary.Structured, Usage: e.summary.Usage,
		ResumeToken: e.summary.ResumeToken, Duration: e.summary.Duration,
	}
	if failure != nil {
		done.Status, done.Result, done.Output, done.Cause = failure.Summary.Status, failure.Message, nil, failure
		if done.Status == event.DoneInterrupted {
			done.Result, done.Reason = "", failure.Message
		}
		if e.summary.NotStored != "" { // of a run that was stopped the agent tells nothing but the done
			done.Reason = strings.TrimPrefix(done.Reason+"; "+e.summary.NotStored, "; ")
		}
		if out.held == nil && done.Status == event.DoneError {
			out.held = new(e.made(event.Error{Code: codeEvaluation, Message: failure.Message, Cause: failure}))
		}
	}
	out.release(false)
	out.give(e.made(done))
}

// codeEvaluation is the code of an error that the agent has not told itself.
const codeEvaluation = "EVALUATION_ERROR"

// made is an event of ours.
func (e *evaluation) made(p event.Payload) event.Event {
	ev := event.New(p)
	ev.Agent, ev.SessionID = e.adapter.Agent(), e.summary.SessionID
	return ev
}

// endStatus is the status of an evaluation that failed. One may be stopped when no turn is under way: while the
// agent starts, or before another attempt.
func endStatus(turn event.DoneStatus, kind agent.FailureKind) event.DoneStatus {
	switch {
	case kind == agent.FailureInterrupted:
		return event.DoneInterrupted
	case turn == "", turn == event.DoneSuccess:
		return event.DoneError
	}
	return turn
}

// executed is the terminal event of the session.
func (e *evaluation) executed(failure *EvaluationError) session.PromptExecuted {
	s := &e.summary
	x := session.PromptExecuted{
		Namespace: e.prompt.Namespace(), Key: e.prompt.Key(), Name: e.prompt.Name(), Adapter: e.adapter.Agent(), RunID: e.run.RunID,
		Text: s.Text, Output: s.Structured, Usage: s.Usage, Duration: s.Duration, APIDuration: s.APIDuration,
		SessionID: s.SessionID, Turns: s.Turns, Status: s.Status, StopReason: s.StopReason,
	}
	if failure != nil {
		x.Error = failure.Error()
	}
	return x
}

// dispatchValue gives an answer that is a struct of a named type to its slice, so that reducers hear of it.
// The methods of the value are others' code.
func (e *evaluation) dispatchValue(ctx context.Context, value any) {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || v.Type().Name() == "" {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			e.opts.Logger.ErrorContext(ctx, "drover: dispatching the answer panicked", "prompt", e.prompt.Name(), "run", e.run.RunID, "panic", p)
		}
	}()
	if _, err := e.opts.Session.Dispatch(ctx, value); err != nil {
		e.opts.Logger.WarnContext(ctx, "drover: the answer could not be given to its slice", "prompt", e.prompt.Name(), "run", e.run.RunID, "error", err)
	}
}

// count adds what a turn has consumed.
func (s *Summary) count(t *turn) {
	end := agent.EndOf(t.ended)
	s.Usage = s.Usage.Plus(t.Usage)
	s.APIDuration += time.Duration(end.APIDurationMS * float64(time.Millisecond))
	s.StopReason = end.StopReason
	s.NotStored = end.NotStored
	if t.Status == event.DoneSuccess {
		s.StopReason = cmp.Or(s.StopReason, stopEnd)
	}
}
