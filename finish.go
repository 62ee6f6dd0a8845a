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

// output records the events of an evaluation, and gives them to telemetry and to the reader.
type output struct {
	*evaluation
	ctx   context.Context
	emit  emitFunc
	leave func()
	left  bool
	// held is an error that ended a turn. Whether it ended the evaluation too is known when something
	// follows, or nothing does.
	held *event.Event
	part event.Position // of the last part of a text
}

// take passes an event on, until the reader leaves.
func (o *output) take(ev event.Event) bool {
	if o.held != nil {
		o.give(o.release(true))
		o.held = nil
	}
	if failure, ok := ev.Payload.(event.Error); ok && !failure.Recoverable {
		o.held = &ev
		return !o.left
	}
	return o.give(ev)
}

// release is the error that was held, which the evaluation has survived or not.
func (o *output) release(survived bool) event.Event {
	ev := *o.held
	if failure, ok := ev.Payload.(event.Error); ok {
		failure.Recoverable = survived
		ev.Payload = failure
	}
	return ev
}

// give records an event and delivers it.
func (o *output) give(ev event.Event) bool {
	ev, err := o.record(ev)
	if err != nil && o.host != nil {
		o.host.lose(err)
	}
	return o.deliver(ev)
}

// record puts an event into the log of the session, unless it was recorded when it happened, and gives it its position.
// Parts of a text are not recorded: the text follows.
func (o *output) record(ev event.Event) (event.Event, error) {
	if _, isPart := ev.Payload.(event.TextDelta); isPart {
		if last := o.opts.Session.Last(); last != o.part.Entry {
			o.part = event.Position{Entry: last}
		}
		o.part.Part++
		ev.Position = o.part
	}
	if ev.Position.Entry != 0 {
		return ev, nil
	}
	entry, err := o.opts.Session.Dispatch(o.ctx, ev)
	ev.Position.Entry = entry
	return ev, err
}

// deliver gives an event to telemetry, and to the reader until it leaves. The reader's loop may panic.
func (o *output) deliver(ev event.Event) bool {
	o.follow(o.ctx, ev)
	if o.left {
		return false
	}
	o.deliveries.Add(1)
	defer o.deliveries.Add(1)
	if !o.emit(ev) {
		o.left = true
		o.leave()
	}
	return !o.left
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
	before := e.seq
	last := e.lastEvents(out, failure)
	if kept := e.recordEnd(out, last, failure); kept != nil {
		e.seq, failure = before, e.unrecorded(failure, kept)
		last = e.lastEvents(out, failure)
	}
	e.logEnd(ctx, failure)
	e.observed(failure)
	for _, ev := range last {
		out.deliver(ev)
	}
	if failure != nil {
		return failure
	}
	o.Summary = e.summary
	return nil
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

// recordEnd records the last events, and how the prompt was executed. The error says what could not be recorded.
func (e *evaluation) recordEnd(out *output, last []event.Event, failure *EvaluationError) (err error) {
	for i := range last {
		if last[i], err = out.record(last[i]); err != nil {
			return err
		}
	}
	_, err = e.opts.Session.Dispatch(out.ctx, e.executed(failure))
	return err
}

// lastEvents are why it failed, if it did, and the done.
func (e *evaluation) lastEvents(out *output, failure *EvaluationError) []event.Event {
	var last []event.Event
	switch {
	case out.held != nil:
		last = append(last, out.release(false))
	case failure != nil && failure.Summary.Status == event.DoneError:
		last = append(last, e.made(event.Error{Code: codeEvaluation, Message: failure.Message, Cause: failure}))
	}
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
	}
	return append(last, e.made(done))
}

// codeEvaluation is the code of an error that the agent has not told itself.
const codeEvaluation = "EVALUATION_ERROR"

// made is the next event of the run, and one of ours.
func (e *evaluation) made(p event.Payload) event.Event {
	e.seq++
	ev := event.New(p)
	ev.Agent, ev.SessionID, ev.RunID, ev.Seq = e.adapter.Agent(), e.summary.SessionID, e.run.RunID, e.seq
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
