// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"errors"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

// Codes of errors that end a run without a result. The others are the CLI's own: see [event.Error].
const (
	// CodeStream: the conversation with the CLI broke.
	CodeStream = "SDK_STREAM_ERROR"
	// CodeEnded: the CLI ended in the middle of the run.
	CodeEnded = "CLI_ENDED"
)

// patience is how long an interrupted turn may take to give its result. It is a little less than an
// [agent.Runner] waits, so that the done event comes from here, with a token to resume with.
const patience = 400 * time.Millisecond

// A run is one run of an [Adapter].
type run struct {
	adapter *Adapter
	prompt  string
	opts    claude.Options
	normal  normaliser
	denials denials
	session continuity
	release func()

	end     *claude.TurnEnd         // the last one that came
	results []*claude.ResultMessage // those without a TurnEnd yet
}

// newRun makes the options of a run. Nothing is started.
func (a *Adapter) newRun(req agent.Request) (*run, error) {
	r := &run{adapter: a, prompt: req.Prompt, opts: a.base}
	if err := overlay(&r.opts, req); err != nil {
		return nil, err
	}
	r.session = continueConversation(&r.opts, req)
	release, err := serveTools(&r.opts, req)
	if err != nil {
		return nil, err
	}
	r.release = release
	if err := errors.Join(bind(&r.opts, req), r.opts.Validate()); err != nil {
		release()
		return nil, err
	}
	r.denials.observe(&r.opts)
	req.Dir, req.Model = r.opts.Dir, r.opts.Model
	r.normal = normaliser{req: req, denied: r.denials.has}
	return r, nil
}

type yieldFunc = func(event.Event, error) bool

// stream has the conversation and yields what it tells.
func (r *run) stream(ctx context.Context, yield yieldFunc) {
	talk := r.converse(ctx)
	defer talk.leave()
	stopped := ctx.Done()
	var timeUp <-chan time.Time
	for {
		select {
		case next, more := <-talk.said:
			if !more {
				r.finish(ctx, nil, yield)
				return
			}
			if over := r.take(ctx, next, yield); over {
				return
			}
		case <-stopped:
			if !talk.interrupt() {
				r.finish(ctx, nil, yield)
				return
			}
			stopped = nil
			timer := time.NewTimer(patience)
			defer timer.Stop()
			timeUp = timer.C
		case <-timeUp:
			r.finish(ctx, nil, yield)
			return
		}
	}
}

// take yields the events of a message and reports whether the run is over.
func (r *run) take(ctx context.Context, next said, yield yieldFunc) (over bool) {
	switch {
	case next.refused != nil && ctx.Err() == nil:
		yield(event.Event{}, next.refused)
		return true
	case next.refused != nil:
		r.finish(ctx, nil, yield)
		return true
	case next.failed != nil:
		r.finish(ctx, next.failed, yield)
		return true
	}
	r.remember(next.message)
	for _, e := range r.normal.events(next.message) {
		if !yield(e, nil) {
			return true
		}
	}
	return false
}

// remember keeps what the done event is made of.
func (r *run) remember(m claude.Message) {
	switch m := m.(type) {
	case *claude.ResultMessage:
		r.results = append(r.results, m)
	case *claude.TurnEnd:
		r.end, r.results = m, nil
	}
}

// turnEnd is the end of the turn, made of what has come if the CLI did not get that far.
func (r *run) turnEnd() *claude.TurnEnd {
	if r.end != nil && len(r.results) == 0 {
		return r.end
	}
	end := &claude.TurnEnd{Results: r.results}
	for _, result := range r.results {
		if result.IsAnswer() {
			end.Answer = result
		}
	}
	return end
}

// finish yields the end of the run: an error event if there is one, and the done event. failed is why
// no more messages come, if that is not in order.
func (r *run) finish(ctx context.Context, failed error, yield yieldFunc) {
	if result, ok := errors.AsType[*claude.ResultError](failed); ok && r.end == nil && len(r.results) == 0 {
		r.remember(result.Message)
	}
	end := r.turnEnd()
	ending := newEnding(r.normal.done(end))
	resulted := end.Answer != nil
	if !resulted && failed != nil && !errors.Is(failed, claude.ErrNoAnswer) {
		ending.fail(breakCode(failed), failed)
	}
	if ctx.Err() != nil {
		ending.interrupt(context.Cause(ctx))
	}
	ending.done.ResumeToken = r.session.token(&r.normal, resulted && ending.done.Status != event.DoneInterrupted)
	for _, e := range ending.events() {
		if !yield(e, nil) {
			return
		}
	}
}

func breakCode(err error) string {
	if _, ended := errors.AsType[*claude.ProcessError](err); ended {
		return CodeEnded
	}
	return CodeStream
}

// An ending is the last events of a run: errors, and the done event.
type ending struct {
	errors []event.Event
	last   event.Event
	done   event.Done
}

func newEnding(events []event.Event) *ending {
	n := len(events) - 1
	e := &ending{errors: events[:n], last: events[n]}
	e.done, _ = e.last.Payload.(event.Done)
	return e
}

// fail makes it the ending of a run that broke.
func (e *ending) fail(code string, cause error) {
	failure := e.last
	failure.Kind = event.KindError
	failure.Payload = event.Error{Code: code, Message: cause.Error(), Cause: cause}
	e.errors = []event.Event{failure}
	e.done.Status, e.done.Result = event.DoneError, cause.Error()
}

// interrupt makes it the ending of a run that was stopped, unless it had come to an end of its own
// before. An error is no such end: it is how stopped turns end.
func (e *ending) interrupt(cause error) {
	switch e.done.Status {
	case event.DoneError:
		e.errors, e.done.Result = nil, ""
		e.done.Status = event.DoneInterrupted
	case event.DoneInterrupted:
	default:
		return
	}
	e.done.Reason = cause.Error()
}

func (e *ending) events() []event.Event {
	e.last.Payload = e.done
	return append(e.errors, e.last)
}
