// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/workspace"
)

// Codes of errors that end a run without a result.
const (
	codeStream = "SDK_STREAM_ERROR" // the conversation with the CLI broke
	codeEnded  = "CLI_ENDED"        // the CLI ended in the middle of the run
)

// patience is how long an interrupted turn may take to give its result. It is a little less than an
// [agent.Runner] waits, so that the done event comes from here, with a token to resume with.
const patience = 350 * time.Millisecond

// A run is one run of an [Adapter].
type run struct {
	adapter *Adapter
	prompt  string
	opts    claude.Options
	normal  normaliser
	denials denials
	session continuity
	release func()
	cell    *isolation.Cell
	asides  *asides
	place   *workspace.Binding // nil without a workspace

	results   []*claude.ResultMessage // those since the last TurnEnd
	cancelled bool                    // the CLI says that it did not do what the prompt says
}

// newRun makes the options of a run. Nothing is started.
func (a *Adapter) newRun(ctx context.Context, req agent.Request) (*run, error) {
	r := &run{adapter: a, prompt: req.Prompt, opts: a.base, asides: newAsides()}
	if err := errors.Join(a.checkPlace(req), overlay(&r.opts, req)); err != nil {
		return nil, err
	}
	if req.Workspace != nil {
		r.opts.AddDirs = append(slices.Clone(r.opts.AddDirs), req.Workspace.Root())
	}
	r.opts.ForwardSubagentText = true // else nobody hears of the tool calls of subagents of subagents
	r.session = continueConversation(&r.opts, req)
	release, err := serveTools(&r.opts, req)
	if err != nil {
		return nil, err
	}
	r.release = release
	if err := errors.Join(bindAll(&r.opts, req, r.asides.tell), r.opts.Validate()); err != nil {
		release()
		return nil, err
	}
	r.denials.observe(&r.opts)
	if req.Host != nil {
		newVouchers(req.Host, r.opts.Dir).observe(&r.opts)
	}
	correlate(&r.opts, req)
	if r.place, err = bindWorkspace(ctx, &r.opts, req, r.asides.tell); err != nil {
		release()
		return nil, err
	}
	req.Dir, req.Model, req.Resume = r.opts.Dir, r.opts.Model, r.opts.Resume
	r.normal = normaliser{req: req, denied: r.denials.has, wrapped: wrapsOutput(r.opts.OutputSchema)}
	return r, nil
}

type yieldFunc = func(event.Event, error) bool

// stream has the conversation and yields what it tells.
func (r *run) stream(ctx context.Context, yield yieldFunc) {
	if ctx.Err() != nil { // there is nothing to start
		r.breakOff(ctx, nil, yield)
		return
	}
	talk := r.converse(ctx)
	defer talk.leave()
	stopped := ctx.Done()
	var timeUp <-chan time.Time
	for {
		var told <-chan struct{} // the init comes first, then what was told before it
		if r.normal.inited {
			told = r.asides.told
			if !r.tellAsides(yield) {
				return
			}
		}
		select {
		case <-told: // it is taken above
		case next, more := <-talk.said:
			if over := r.take(ctx, next, more, yield); over {
				return
			}
		case <-stopped:
			if !talk.interrupt() {
				r.breakOff(ctx, nil, yield)
				return
			}
			stopped = nil
			timer := time.NewTimer(patience)
			defer timer.Stop()
			timeUp = timer.C
		case <-timeUp:
			r.breakOff(ctx, nil, yield)
			return
		}
	}
}

// take yields what has been said, and reports whether the run is over.
func (r *run) take(ctx context.Context, next said, more bool, yield yieldFunc) (over bool) {
	switch {
	case next.refused != nil && ctx.Err() == nil:
		yield(event.Event{}, next.refused)
		return true
	case !more || next.refused != nil || next.failed != nil:
		r.breakOff(ctx, next.failed, yield)
		return true
	}
	if r.place != nil {
		r.place.Saw(next.message)
	}
	for _, e := range r.normal.events(next.message) {
		if !yield(e, nil) {
			return true
		}
	}
	switch m := next.message.(type) {
	case *claude.ResultMessage:
		r.results = append(r.results, m)
	case *claude.CommandLifecycle:
		r.cancelled = r.cancelled || m.State == "cancelled"
	case *claude.TurnEnd:
		r.results = nil
		return r.endTurn(ctx, m, yield)
	}
	return false
}

// endTurn yields the end of the run if the turn was that of the prompt. Another one, which the CLI
// began by itself in a resumed session, is followed by that.
func (r *run) endTurn(ctx context.Context, end *claude.TurnEnd, yield yieldFunc) (over bool) {
	if end.Answer == nil && !end.Forced && ctx.Err() == nil {
		return false
	}
	last := r.normal.done(end)
	if len(last) == 0 && ctx.Err() == nil {
		return false
	}
	if len(last) == 0 {
		last = r.normal.done(nil)
	}
	r.finish(ctx, newEnding(last), end.Answer, yield)
	return true
}

// breakOff yields the end of a run that did not come to the end of its turn. Its result may have come
// all the same. failed is why no more messages come, if that is known.
func (r *run) breakOff(ctx context.Context, failed error, yield yieldFunc) {
	end := r.unfinished()
	last := r.normal.done(end)
	if len(last) == 0 {
		last = r.normal.done(nil)
	}
	e := newEnding(last)
	if end.Answer == nil && failed != nil {
		e.fail(brokenCode(failed), failed)
	}
	r.finish(ctx, e, end.Answer, yield)
}

// unfinished is the end of a turn made of what has come of it.
func (r *run) unfinished() *claude.TurnEnd {
	end := &claude.TurnEnd{Results: r.results}
	for _, result := range r.results {
		if result.IsAnswer() {
			end.Answer = result
		}
	}
	return end
}

func brokenCode(err error) string {
	if _, ended := errors.AsType[*claude.ProcessError](err); ended {
		return codeEnded
	}
	return codeStream
}

// finish yields the last events. answer is the result of the turn, if one came; that of a CLI which
// refused to start is not one of any session.
func (r *run) finish(ctx context.Context, e *ending, answer *claude.ResultMessage, yield yieldFunc) {
	if ctx.Err() != nil {
		e.interrupt(context.Cause(ctx), r.cancelled)
		e.partial() // also after the answer an agent in the background may have been at work
	}
	if err := r.stoppedBy(ctx); err != nil {
		e.limit(err)
	}
	if r.cell != nil {
		answered := r.asides.answered() // before the count of all, which is never less
		usage := r.cell.Usage()
		e.counted(usage)
		e.compare(answered, Tokens{usage.Total.AllInput(), usage.Total.Output})
	}
	resulted := answer != nil && answer.StartupFailureReason == "" && e.done.Status != event.DoneInterrupted
	e.done.ResumeToken = r.session.token(&r.normal, resulted)
	if ctx.Err() == nil && !r.tellAsides(yield) { // nothing but the end is told of a run that was stopped
		return
	}
	for _, e := range e.events() {
		if !yield(e, nil) {
			return
		}
	}
}

// An ending is the last events of a run, the done event apart.
type ending struct {
	before []event.Event
	last   event.Event
	done   event.Done
}

func newEnding(events []event.Event) *ending {
	n := len(events) - 1
	e := &ending{before: slices.Clone(events[:n]), last: events[n]}
	e.done, _ = e.last.Payload.(event.Done)
	return e
}

// fail makes it the ending of a run that broke.
func (e *ending) fail(code string, cause error) {
	e.dropError()
	failure := e.last
	failure.Kind = event.KindError
	failure.Payload = event.Error{Code: code, Message: cause.Error(), Cause: cause}
	e.before = append(e.before, failure)
	e.done.Status, e.done.Result = event.DoneError, cause.Error()
}

// interrupt makes it the ending of a run that was stopped, unless it had come to an end of its own
// before. An error is no such end: it is how stopped turns end. Nor is the success of a command of the
// CLI, such as /compact, that was cancelled.
func (e *ending) interrupt(cause error, cancelled bool) {
	switch {
	case e.done.Status == event.DoneError, e.done.Status == event.DoneSuccess && cancelled:
		e.dropError()
		e.done.Status, e.done.Result = event.DoneInterrupted, ""
	case e.done.Status == event.DoneInterrupted:
	default:
		return
	}
	e.done.Reason = cause.Error()
}

// partial says that something may not have been counted.
func (e *ending) partial() {
	if tokens := e.done.Usage.Tokens; tokens != nil {
		tokens.Coverage = event.CoveragePartial
	}
}

// dropError takes back the error that ended the run.
func (e *ending) dropError() {
	e.before = slices.DeleteFunc(e.before, func(e event.Event) bool {
		failure, ok := e.Payload.(event.Error)
		return ok && !failure.Recoverable
	})
}

func (e *ending) events() []event.Event {
	e.last.Payload = e.done
	return append(e.before, e.last)
}
