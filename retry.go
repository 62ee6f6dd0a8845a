// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// A RetryPolicy says when an evaluation that failed is tried again. The zero value is ready to use.
//
// It is tried again if the same may succeed without any change: the agent did not start in time or ended in
// the middle, or the model's service could not serve for now. If the agent has called tools, its
// conversation is resumed and it is told to go on; if that cannot be, the prompt is said once more, but only
// if every call was of a tool that is read-only. What was tried before counts toward the budget, and no wait
// goes beyond the deadline.
//
// The agent and the gateway repeat requests to the model on their own; what comes here has outlasted that.
type RetryPolicy struct {
	// MaxAttempts is how often it is tried in all. Zero means 5.
	MaxAttempts int
	// BaseDelay is the wait before the second attempt, about doubled before each further one up to MaxDelay.
	// Delays are jittered by 50 %. Zero means 500 milliseconds, and 8 seconds. A wait is never shorter than
	// what the service asks for.
	BaseDelay, MaxDelay time.Duration
	// MaxTotalDelay bounds all waits together: it is not tried again if the next one goes beyond. Zero means
	// 30 seconds.
	MaxTotalDelay time.Duration
}

const (
	defaultMaxAttempts   = 5
	defaultBaseDelay     = 500 * time.Millisecond
	defaultMaxDelay      = 8 * time.Second
	defaultMaxTotalDelay = 30 * time.Second
)

func (p RetryPolicy) filled() RetryPolicy {
	p.MaxAttempts = cmp.Or(p.MaxAttempts, defaultMaxAttempts)
	p.BaseDelay = cmp.Or(p.BaseDelay, defaultBaseDelay)
	p.MaxDelay = cmp.Or(p.MaxDelay, defaultMaxDelay)
	p.MaxTotalDelay = cmp.Or(p.MaxTotalDelay, defaultMaxTotalDelay)
	return p
}

// delay is the wait after an attempt, counted from 1.
func (p RetryPolicy) delay(attempt int, atLeast time.Duration) time.Duration {
	most := p.MaxDelay
	if shift := attempt - 1; shift < 32 && p.BaseDelay<<shift > 0 {
		most = min(most, p.BaseDelay<<shift)
	}
	return max(most/2+rand.N(most/2+1), atLeast)
}

// A RetryAdvice says whether to try again what failed.
type RetryAdvice struct {
	// Worthwhile says that the same may succeed later without any change.
	Worthwhile bool
	// Safe says that nothing was done that another try would do again: no tool was called, or only tools
	// that are read-only. Where it is false, resume the conversation instead, if Summary.ResumeToken is
	// there.
	Safe bool
	// After is how long to wait at least. Zero means that nobody said.
	After time.Duration
}

// worthwhile are the kinds of failures that may go away.
var worthwhile = map[agent.FailureKind]bool{
	agent.FailureStart: true, agent.FailureProcess: true, agent.FailureNoResult: true, agent.FailureRateLimit: true,
	agent.FailureOverloaded: true, agent.FailureTimeout: true, agent.FailureServer: true,
}

func (e *evaluation) advice(kind agent.FailureKind) RetryAdvice {
	return RetryAdvice{Worthwhile: worthwhile[kind], Safe: e.past.safe(), After: e.past.retryAfter}
}

// goOn is the message to a model whose turn broke off.
const goOn = "Your work was interrupted by a technical failure. Continue where you stopped. First check what is already done; do not repeat it."

// attempts tries until there is an answer, or no sense in trying again.
func (e *evaluation) attempts(ctx context.Context, say func() string, emit emitFunc) (*outcome, error) {
	began, forks := e.resumeToken(), e.forks
	var waited time.Duration
	for {
		e.summary.Attempts++
		before := e.past.count()
		o, err := e.attempt(ctx, say, emit)
		if token := e.summary.ResumeToken; token != "" || e.past.count() > before {
			e.past.token = token
		}
		if err == nil || e.opts.Retry == nil {
			return o, err
		}
		failure := e.failed(err)
		wait, again := e.again(ctx, failure, waited)
		if !again {
			return nil, err
		}
		waited += wait
		e.announce(ctx, failure, wait, emit)
		e.discard()
		if !pause(ctx, wait) {
			return nil, stopCause(ctx)
		}
		e.restart(began, forks)
		e.run.Attempt++
	}
}

// again says whether to try once more after a failure, and after which wait.
func (e *evaluation) again(ctx context.Context, failure *EvaluationError, waited time.Duration) (time.Duration, bool) {
	policy := e.opts.Retry.filled()
	wait := policy.delay(e.summary.Attempts, failure.Retry.After)
	switch {
	case !failure.Retry.Worthwhile, e.summary.Attempts >= policy.MaxAttempts, waited+wait > policy.MaxTotalDelay:
		return 0, false
	case !failure.Retry.Safe && e.resumable() == "":
		return 0, false
	case ctx.Err() != nil, wait >= e.deadline.Remaining(), e.tracker.Check() != nil:
		return 0, false
	}
	return wait, true
}

// resumable is the token of what the last attempt has left, if it has called tools.
func (e *evaluation) resumable() string {
	if e.past.count() == 0 {
		return ""
	}
	return e.past.token
}

// restart makes the next attempt go on where the last one was, or else begin as the first one did.
func (e *evaluation) restart(began string, forks bool) {
	token := e.resumable()
	if token == "" {
		e.returnTo(began, forks)
		return
	}
	e.goOn = goOn
	e.returnTo(token, forks && token == began)
}

// CodeRetry is the code of the [event.Error] that tells that an evaluation is tried again.
const CodeRetry = "RETRY"

// announce tells that it is tried again.
func (e *evaluation) announce(ctx context.Context, failure *EvaluationError, wait time.Duration, emit emitFunc) {
	next := e.summary.Attempts + 1
	e.opts.Logger.WarnContext(ctx, "drover: an attempt failed; another one follows", "prompt", e.prompt.Name(), "run", e.run.RunID, "attempt", next, "wait", wait, "error", failure.Message)
	told := e.made(event.Error{
		Code: CodeRetry, Recoverable: true, Cause: failure,
		Message: fmt.Sprintf("attempt %d of %d follows in %s: %s", next, e.opts.Retry.filled().MaxAttempts, wait.Round(time.Millisecond), failure.Message),
	})
	emit(told)
}

// pause waits, and reports false if the context ends meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pastCalls are the tool calls of an evaluation, as far as they matter to another attempt.
type pastCalls struct {
	open       []openCall    // those without a result
	made       int           // those with one, but for the denied ones
	changing   int           // of them, those that may have changed something
	token      string        // continues the conversation in which they were made
	retryAfter time.Duration // what the model's service has asked for last
}

type openCall struct {
	id       event.CallID
	readOnly bool
}

// ended notes the result of a call. One of an earlier evaluation does not count.
func (c *pastCalls) ended(r event.ToolResult) {
	i := slices.IndexFunc(c.open, func(o openCall) bool { return o.id == r.ID })
	if i < 0 {
		return
	}
	if r.Status != event.ToolDenied {
		c.made++
		if !c.open[i].readOnly {
			c.changing++
		}
	}
	c.open = slices.Delete(c.open, i, i+1)
}

func (c *pastCalls) count() int { return c.made + len(c.open) }

// safe reports whether nothing can have been changed.
func (c *pastCalls) safe() bool {
	return c.changing == 0 && !slices.ContainsFunc(c.open, func(o openCall) bool { return !o.readOnly })
}

// readOnly reports whether a call is of a tool that changes nothing. Of a tool that nobody knows, one that
// is another program's, nothing is known.
func (e *evaluation) readOnly(call event.ToolCall) bool {
	if name, ours := e.opts.ownTool(call.Name); ours {
		if e.live == nil {
			return false
		}
		t, ok := e.live.Registry().Lookup(name)
		return ok && t.Risks() == tool.ReadOnly
	}
	native, ok := e.adapter.Catalogue().Native(call.Name)
	return ok && native.Risk == tool.ReadOnly
}
