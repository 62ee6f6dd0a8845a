// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

// Codes of errors that end a run without a result.
const (
	codeStream = "SDK_STREAM_ERROR" // the conversation with the CLI broke
	codeEnded  = "CLI_ENDED"        // the CLI ended in the middle of the run, or before it
)

// patience is how long an interrupted turn may take to give its result. It is a little less than an
// [agent.Runner] waits, so that the done event comes from here, with a token to resume with.
const patience = 350 * time.Millisecond

// restTime is how long the next prompt waits for the end of a turn that was interrupted in vain.
const restTime = 2 * time.Second

// A turn is what a run does about one prompt.
type turn struct {
	*run
	prompt string

	sent      bool                    // the prompt is on its way
	ended     bool                    // the CLI has come to rest
	results   []*claude.ResultMessage // those since the last TurnEnd
	cancelled bool                    // the CLI reports that it did not carry out the prompt
}

type yieldFunc = func(event.Event, error) bool

func (t *turn) stream(ctx context.Context, yield yieldFunc) {
	if ctx.Err() != nil || t.stoppedBy(ctx) != nil { // there is nothing to begin
		t.breakOff(ctx, nil, yield)
		return
	}
	if err := t.catchUp(ctx); err != nil {
		t.breakOff(ctx, err, yield)
		return
	}
	started, stopped := t.conversation.started, ctx.Done()
	var timeUp <-chan time.Time
	for {
		var signal <-chan struct{} // the init comes first, then earlier events
		if t.normal.inited {
			signal = t.cellEvents.signal
			if !t.yieldLate(yield) || !t.yieldCellEvents(yield) {
				return
			}
		}
		select {
		case <-signal: // they are taken above
		case <-started:
			started = nil
			t.begin()
		case next, more := <-t.conversation.outputs:
			if over := t.take(ctx, next, more, yield); over {
				return
			}
		case <-stopped:
			if !t.sent {
				t.breakOff(ctx, nil, yield)
				return
			}
			t.conversation.interrupt()
			stopped = nil
			timer := time.NewTimer(patience)
			defer timer.Stop()
			timeUp = timer.C
		case <-timeUp:
			t.breakOff(ctx, nil, yield)
			return
		}
	}
}

// begin sends the prompt to a CLI that has started. A CLI that has not started reports why itself.
func (t *turn) begin() {
	if t.conversation.refused == nil {
		t.sent = true
		if t.cell != nil {
			t.cell.BeginPrompt()
		}
		t.cellEvents.newTurn()
		t.conversation.send(t.prompt)
	}
}

// take yields the events of the messages so far, and reports whether the turn is over.
func (t *turn) take(ctx context.Context, next cliOutput, more bool, yield yieldFunc) (over bool) {
	switch {
	case next.refused != nil && ctx.Err() == nil:
		t.broken = next.refused
		yield(event.Event{}, next.refused)
		return true
	case !more || next.refused != nil || next.failed != nil:
		t.broken = gone(next.failed)
		t.breakOff(ctx, next.failed, yield)
		return true
	}
	for _, e := range t.normal.events(next.message) {
		if e.Kind != event.KindInit && !t.yieldLate(yield) || !yield(e, nil) {
			return true
		}
	}
	switch m := next.message.(type) {
	case *claude.SystemInit:
		if t.init == nil {
			t.init = m
			t.session = t.session.named(m.SessionID, "")
		}
	case *claude.ResultMessage:
		t.results = append(t.results, m)
	case *claude.CommandLifecycle:
		t.cancelled = t.cancelled || m.State == "cancelled"
	case *claude.TurnEnd:
		t.results = nil
		return t.endTurn(ctx, m, yield)
	}
	return false
}

// endTurn yields the end of the prompt's turn. A turn that the CLI began by itself is followed by that of the prompt.
func (t *turn) endTurn(ctx context.Context, end *claude.TurnEnd, yield yieldFunc) (over bool) {
	if end.Answer == nil && !end.Forced && !has[*claude.ProtocolError](end.Err()) && ctx.Err() == nil {
		return false
	}
	last := t.normal.done(end)
	if len(last) == 0 && ctx.Err() == nil {
		return false
	}
	t.ended = true
	if len(last) == 0 {
		last = t.normal.done(nil)
	}
	t.finish(ctx, newEnding(last), end.Answer, yield)
	return true
}

// breakOff yields the end of a turn that has not come to its own. Its result may have come all the same.
// failed is why no more messages come, if that is known.
func (t *turn) breakOff(ctx context.Context, failed error, yield yieldFunc) {
	end := &claude.TurnEnd{Results: t.results}
	for _, result := range t.results {
		if result.IsAnswer() {
			end.Answer = result
		}
	}
	last := t.normal.done(end)
	if len(last) == 0 {
		last = t.normal.done(nil)
	}
	e := newEnding(last)
	if end.Answer == nil && failed != nil {
		code := codeStream
		if has[*claude.ProcessError](failed) || errors.Is(failed, errGone) {
			code = codeEnded
		}
		e.fail(cmp.Or(startRefusal(failed), code), failed)
	}
	t.finish(ctx, e, end.Answer, yield)
}

// finish yields the last events. answer is the result of the turn, if one came; that of a CLI which
// refused to start is not one of any session.
func (t *turn) finish(ctx context.Context, e *ending, answer *claude.ResultMessage, yield yieldFunc) {
	if ctx.Err() != nil {
		e.interrupt(context.Cause(ctx), t.cancelled)
		e.partial() // also after the answer an agent in the background may have been at work
	}
	if err := t.stoppedBy(ctx); err != nil {
		e.limit(err)
	}
	if err := t.unproven(e, answer); err != nil {
		e.fail(codeUnproven, err)
	}
	t.count(e)
	if answer != nil && t.normal.written { // then the stop reason is the CLI's too
		e.amend(func(end *agent.End) { end.StopReason = t.modelStopReason(ctx) })
	}
	t.session = t.session.named(t.normal.session, t.prompt)
	resulted := answer != nil && answer.StartupFailureReason == "" && e.done.Status != event.DoneInterrupted
	e.done.ResumeToken = t.session.token(&t.normal, resulted)
	if err := t.notKept(ctx, e.done.ResumeToken); err != nil {
		e.done.ResumeToken = ""
		e.amend(func(end *agent.End) { end.NotStored = advice.Text(err) })
		if ctx.Err() != nil { // only the done is reported then
			e.done.Reason = strings.TrimPrefix(e.done.Reason+"; "+advice.Text(err), "; ")
		}
		t.cellEvents.add(event.Error{Code: codeNotKept, Recoverable: true, Cause: err, Message: err.Error(), Next: advice.Of(err)})
	}
	t.session.resumed = e.done.ResumeToken
	// Of a stopped run only the end is reported.
	if ctx.Err() == nil && (!t.yieldLate(yield) || !t.yieldCellEvents(yield)) {
		return
	}
	for _, e := range e.events() {
		if !yield(e, nil) {
			return
		}
	}
}

// settleTime is how long the end of a turn waits for the count of calls that the agent has left.
const settleTime = time.Second

// codeUnproven is the error of a run whose CLI reports a success that the gateway has not seen.
const codeUnproven = "UNPROVEN_RESULT"

// answerWait bounds the wait for the gateway to report a call whose answer the CLI has read already.
const answerWait = 2 * time.Second

var errUnproven = advice.Wrap(errors.New("claudecode: the CLI reports an answer, and no answer of the model came to its end: the result is not the model's"), "look at the events of the model calls, and at the commands that ran before")

// unproven is an error if the CLI reports an answer of the model where the gateway saw none: every model call of the turn
// failed, or asked for tools. Commands of the CLI, structured answers and deferred calls end a turn without another answer.
func (t *turn) unproven(e *ending, answer *claude.ResultMessage) error {
	if t.cell == nil || e.done.Status != event.DoneSuccess || answer == nil || answer.Result == "" || answer.LocalCommand != "" ||
		answer.StructuredOutput != nil || answer.DeferredToolUse != nil || strings.HasPrefix(strings.TrimSpace(t.prompt), "/") {
		return nil
	}
	// Without a model call no command has run that could have reached the CLI.
	if t.cell.Usage().Total.Requests == 0 || t.cellEvents.awaitAnswer(answerWait) {
		return nil
	}
	return errUnproven
}

// modelStopReason returns the stop reason of the model's last answer, or "" if no gateway knows it.
func (t *turn) modelStopReason(ctx context.Context) string {
	limit := answerWait
	if t.cell == nil || ctx.Err() != nil {
		limit = 0
	}
	return t.cellEvents.stopReason(t.normal.turn, limit)
}

// codeNotKept is the error of a run whose conversation could not be stored.
const codeNotKept = "CONVERSATION_NOT_KEPT"

// storeTime is how long the store may take for the end of a turn. A store that refuses is asked again for a second.
const storeTime = 5 * time.Second

// notKept is why the conversation of a token is not stored.
func (t *turn) notKept(ctx context.Context, token string) error {
	if token == "" || t.conversation == nil || t.conversation.client.Load() == nil {
		return nil
	}
	limit := storeTime
	if ctx.Err() != nil {
		limit = patience / 2 // a run that is stopped does not wait
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	err := t.conversation.client.Load().Stored(within)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return advice.Wrap(fmt.Errorf("the conversation could not be stored, so it cannot be continued: %w", err),
		"make room where conversations are stored; the answer is not affected")
}

// count adds what the gateway has counted since the last turn.
func (t *turn) count(e *ending) {
	complete := e.done.Usage.Tokens != nil && e.done.Usage.Tokens.Coverage == event.CoverageComplete
	defer func() { t.uncounted = !complete }()
	if t.cell == nil {
		return
	}
	if e.done.Status != event.DoneInterrupted { // an interrupted run does not wait
		t.cell.Settle(settleTime)
	}
	whole, aborted := t.cellEvents.answered() // before the count of all, which is never less
	usage := t.cell.Usage()
	since := usageSince(usage, t.counted)
	e.describe(GatewayUsage, since)
	// Tokens that the last turn did not report may be in this one.
	e.meter(since, whole.since(tokensOf(t.counted)), aborted.since(t.aborted), !t.uncounted)
	t.counted, t.aborted = usage, aborted
}

// catchUp takes the messages since the last turn, and waits until the CLI is idle.
func (t *turn) catchUp(ctx context.Context) error {
	if t.broken == nil && !t.conversation.isUp() {
		return nil
	}
	rested := t.settle(ctx, restTime)
	t.normal.begun = time.Time{} // by the first message of this turn
	switch {
	case t.broken != nil:
		return t.broken
	case !rested && ctx.Err() == nil:
		return errRestless
	}
	return nil
}
