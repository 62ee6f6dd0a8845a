// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"errors"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

// output is where the events of an evaluation go.
type output struct {
	*evaluation
	emit  emitFunc
	leave func()
	left  bool
}

// take numbers an event and passes it on, until the reader leaves.
func (o *output) take(ev event.Event) bool {
	if o.left {
		return false
	}
	o.seq++
	ev.Seq, ev.RunID = o.seq, o.run.RunID
	if !o.emit(ev) {
		o.left = true
		o.leave()
	}
	return !o.left
}

// finish records the end, whatever it is, and tells of it. The error is one of the evaluation.
func (e *evaluation) finish(ctx context.Context, out *output, o *outcome, err error) error {
	e.summary.Duration = time.Since(e.began)
	done := event.Done{
		Status: event.DoneSuccess, Result: e.summary.Text, Output: e.summary.Structured, Usage: e.summary.Usage,
		ResumeToken: e.summary.ResumeToken, Duration: e.summary.Duration,
	}
	if err != nil {
		err = e.failed(err)
		done.Status, done.Result = endStatus(e.summary.Status), err.Error()
	}
	ev := event.Event{Kind: event.KindDone, Agent: e.adapter.Agent(), Time: time.Now(), SessionID: e.summary.SessionID, Payload: done}
	_, kept := e.opts.Session.Dispatch(context.WithoutCancel(ctx), e.executed(err))
	if kept != nil {
		err = errors.Join(err, kept)
	}
	e.conclude(ctx, err)
	e.observed(err)
	out.take(ev)
	if o != nil {
		o.Summary = e.summary
	}
	return err
}

// endStatus is the status of an evaluation that failed.
func endStatus(turn event.DoneStatus) event.DoneStatus {
	if turn == "" || turn == event.DoneSuccess {
		return event.DoneError
	}
	return turn
}

// executed is the terminal event of the session.
func (e *evaluation) executed(err error) session.PromptExecuted {
	s := &e.summary
	x := session.PromptExecuted{
		Namespace: e.prompt.Namespace(), Key: e.prompt.Key(), Name: e.prompt.Name(), Adapter: e.adapter.Agent(), RunID: e.run.RunID,
		Text: s.Text, Output: s.Structured, Usage: s.Usage, Duration: s.Duration, APIDuration: s.APIDuration,
		SessionID: s.SessionID, Turns: s.Turns, Status: s.Status,
	}
	if err != nil {
		x.Error, x.Status = err.Error(), endStatus(s.Status)
	}
	return x
}
