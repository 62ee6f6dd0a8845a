// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

// A RetryPolicy sets when a failed evaluation is retried. The zero value is ready to use.
//
// A failure is retried if the same request may succeed later: the agent did not start in time or ended in
// the middle, or the model's service was not available. If the agent has called tools, its conversation is
// resumed. If it cannot be resumed, the prompt is sent again, but only if every called tool is read-only.
// All attempts count toward the budget, and no wait goes beyond the deadline.
//
// The agent and the gateway retry requests to the model themselves; this policy handles the failures that remain.
type RetryPolicy struct {
	// MaxAttempts is the total number of attempts. Zero means 5.
	MaxAttempts int
	// BaseDelay is the wait before the second attempt, about doubled before each further one up to MaxDelay. Delays are
	// jittered by 50 %. Zero means 500 milliseconds, and 8 seconds. A wait is never shorter than the service asks for.
	BaseDelay, MaxDelay time.Duration
	// MaxTotalDelay bounds the sum of all waits. Zero means 30 seconds.
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

// A RetryAdvice states whether to retry a failed evaluation.
type RetryAdvice struct {
	// Worthwhile is true if the same request may succeed later.
	Worthwhile bool
	// Safe is true if a retry repeats no side effect: no tool was called, or only read-only tools. Where it is
	// false, resume the conversation instead, if Summary.ResumeToken is set.
	Safe bool
	// After is the minimum wait. Zero means that the service set none.
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

// attempts tries until there is an answer, or no sense in trying again.
func (e *evaluation) attempts(ctx context.Context, text func() string, emit emitFunc) (*outcome, error) {
	began, forks := e.resumeToken(), e.forks
	var waited time.Duration
	for {
		e.summary.Attempts++
		before := e.past.count()
		o, err := e.attempt(ctx, text, emit)
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

// again reports whether to retry after a failure, and after which wait.
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
	e.resumeText = resumePrompt
	e.returnTo(token, forks && token == began)
}

// CodeRetry is the code of the [event.Error] that reports a retry of an evaluation.
const CodeRetry = "RETRY"

func (e *evaluation) announce(ctx context.Context, failure *EvaluationError, wait time.Duration, emit emitFunc) {
	next := e.summary.Attempts + 1
	e.opts.Logger.WarnContext(ctx, "drover: an attempt failed; another one follows", "prompt", e.prompt.Name(), "run", e.run.RunID, "attempt", next, "wait", wait, "error", failure.Message)
	emit(e.made(event.Error{
		Code: CodeRetry, Recoverable: true, Cause: failure,
		Message: fmt.Sprintf("attempt %d of %d follows in %s: %s", next, e.opts.Retry.filled().MaxAttempts, wait.Round(time.Millisecond), failure.Message),
	}))
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

// readOnly reports whether a call's tool changes nothing. One that neither registry nor catalogue has counts as changing.
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

func (e *evaluation) first() string {
	if e.opts.Placement == AsUser {
		return e.host.opening(e.live.Rendered().Text)
	}
	return e.host.opening(e.opts.Input)
}

// more is a later message of the user. The prompt comes before it in an agent that has not read it: one that has begun
// again to show hidden sections, or the agent of a conversation that begins with this message.
func (e *evaluation) more(text string) string {
	if (e.summary.Expansions > 0 || e.resumeToken() == "") && e.opts.Placement == AsUser {
		return e.first() + "\n\n" + text
	}
	return text
}

// message is the next message of the user: the text that resumes a broken turn, or else that of the caller.
func (e *evaluation) message(otherwise func() string) string {
	if text := e.resumeText; text != "" {
		e.resumeText = ""
		return e.host.opening(text)
	}
	return otherwise()
}

// attempt runs the agent until it answers. It starts the prompt again each time the model asks for hidden sections.
func (e *evaluation) attempt(ctx context.Context, text func() string, emit emitFunc) (*outcome, error) {
	began, forks := e.resumeToken(), e.forks
	for {
		if err := e.ready(ctx); err != nil {
			return nil, err
		}
		own, cancel := e.host.expandable(ctx)
		o, err := e.rounds(own, e.message(text), emit)
		cancel()
		more := e.live.Expansion()
		if more == nil || ctx.Err() != nil || o != nil { // the first answer that fits ends the run
			return o, err
		}
		if e.summary.Expansions >= e.opts.MaxExpansions {
			return nil, &tooManyExpansions{e.opts.MaxExpansions, more}
		}
		e.summary.Expansions++
		e.discard()
		if err := more.Apply(ctx, e.opts.Session); err != nil {
			return nil, err
		}
		e.returnTo(began, forks)
	}
}

// returnTo makes the next run resume an earlier state of the conversation.
func (e *evaluation) returnTo(token string, forks bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.token, e.forks = token, forks
}

func (e *evaluation) ready(ctx context.Context) error {
	if e.runner != nil {
		return nil
	}
	return e.open(ctx)
}

// rounds sends messages to the agent until a turn is the last.
func (e *evaluation) rounds(ctx context.Context, text string, emit emitFunc) (*outcome, error) {
	e.logBegin(ctx)
	for {
		e.reach(ctx, StageRun)
		t, err := e.turn(ctx, text, emit)
		if err != nil {
			return nil, err
		}
		o, next, err := e.judge(ctx, t)
		if err == nil && next == "" {
			e.reach(ctx, StageComplete)
			if next = e.host.verify(ctx, t, func(f CompletionFailed) { emit(e.made(f)) }); next == "" {
				o, err = e.completed(o)
			}
		}
		if err != nil || next == "" {
			return o, err
		}
		text = next
	}
}

// completed is the outcome if the task is done. An answer whose completion check did not hold is part of the error.
func (e *evaluation) completed(o *outcome) (*outcome, error) {
	if found := e.summary.Completion; !found.Done || found.Skipped {
		return nil, &incompleteError{o.value, e.summary.Rounds, found, errors.Join(e.deadline.Check(), e.tracker.Check())}
	}
	return o, nil
}

// A turn is the agent's work on one message of the user.
type turn struct {
	event.Done
	SessionID string
	// Failure is why it failed, where the agent reports it.
	Failure *event.Error
	// Kinds counts the events.
	Kinds map[event.Kind]int
	ended event.Event
}

func (e *evaluation) turn(ctx context.Context, text string, emit emitFunc) (_ *turn, err error) {
	t := &turn{Kinds: map[event.Kind]int{}}
	e.beginTurn(text)
	e.noteBefore()
	defer func() {
		e.endTurn(ctx, t, err)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.before = ""
	}()
	ctx, end := e.host.begin(ctx)
	defer end()
	request := e.asked
	request.Prompt, request.Resume, request.Fork, request.LastSeq = text, e.resumeToken(), e.forks, e.seq
	for ev, err := range e.runner.Run(ctx, request) {
		if err != nil {
			return nil, errors.Join(err, e.host.settle(ctx, nil))
		}
		t.SessionID = cmp.Or(ev.SessionID, t.SessionID)
		t.Kinds[ev.Kind]++
		e.host.saw(ctx, ev)
		switch what := ev.Payload.(type) {
		case event.Error:
			if !what.Recoverable {
				t.Failure = &what
			}
		case event.Done:
			t.Done, t.ended = what, ev
			e.host.recordTurn(ctx, ev) // whether it is the end, we decide
			continue
		}
		e.seq = ev.Seq
		emit(ev)
	}
	err = e.host.settle(ctx, t)
	e.add(t)
	return t, err
}

func (e *evaluation) add(t *turn) {
	s := &e.summary
	s.Text, s.Status, s.Structured = t.Result, t.Status, t.Output
	s.SessionID, s.ResumeToken = cmp.Or(t.SessionID, s.SessionID), t.ResumeToken
	s.count(t)
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.ResumeToken != "" { // with a token of its own it is a conversation of its own
		e.token, e.forks = t.ResumeToken, e.forks && t.ResumeToken == cmp.Or(e.token, e.opts.Resume)
	}
}

// maxRepairs is how often a model is asked to repair its answer. The agent itself has asked it several times before.
const maxRepairs = 1

// judge returns the outcome if a turn was the last. If not, next is the next message of the user.
func (e *evaluation) judge(ctx context.Context, t *turn) (o *outcome, next string, err error) {
	value, err := e.answer(ctx, t)
	if err == nil {
		return &outcome{Summary: e.summary, value: value}, "", nil
	}
	if next := e.repair(ctx, err); next != "" {
		e.summary.Repairs++
		e.opts.Logger.InfoContext(ctx, "drover: the answer cannot be used; the model is asked to repair it", "prompt", e.prompt.Name(), "run", e.run.RunID)
		return nil, next, nil
	}
	return nil, "", err
}

// answer is the answer of a turn, as the prompt's type has it.
func (e *evaluation) answer(ctx context.Context, t *turn) (any, error) {
	if t.Status != event.DoneSuccess {
		return nil, &turnError{turn: t, cause: e.turnCause(ctx, t)}
	}
	e.reach(ctx, StageParse)
	raw := e.rawAnswer(t)
	if len(raw) == 0 {
		return nil, &turnError{turn: t, cause: errNoOutput}
	}
	value, err := e.parse(raw)
	if err != nil {
		return nil, &turnError{turn: t, cause: err}
	}
	return value, nil
}

var errNoOutput = advice.Wrap(errors.New("the agent has succeeded without a structured answer"), "state in the prompt that the answer must be given as structured output")

// rawAnswer is the answer as JSON. That of a prompt for plain text is its text.
func (e *evaluation) rawAnswer(t *turn) json.RawMessage {
	if e.live.Rendered().Output == nil {
		text, _ := json.Marshal(t.Result) // a string
		return text
	}
	e.summary.Structured = e.unwrapped(t.Output)
	return t.Output
}

// unwrapped is an answer as the prompt's type has it: agents can give only objects, so that others come inside of one.
func (e *evaluation) unwrapped(output json.RawMessage) json.RawMessage {
	wanted := e.live.Rendered().Output
	if wanted == nil || output == nil {
		return output
	}
	if _, wrapped, _ := schema.ForCLI(wanted); !wrapped {
		return output
	}
	return schema.Unwrap(output)
}

// repair is the message to a model whose answer cannot be used, or "" if a repair is not possible.
func (e *evaluation) repair(ctx context.Context, err error) string {
	wrong := e.repairable(err)
	if wrong == "" || e.summary.Repairs >= maxRepairs || ctx.Err() != nil || e.deadline.Check() != nil || e.tracker.Check() != nil {
		return ""
	}
	return repairPrompt(wrong)
}

// repairable is the fault of an answer that the model can repair, as the model reads it, or "".
func (e *evaluation) repairable(err error) string {
	if bad, ok := errors.AsType[*prompt.OutputError](err); ok {
		return bad.Err.Error()
	}
	if errors.Is(err, errNoOutput) || e.classify(err).Kind == agent.FailureNoOutput {
		return noStructuredAnswer
	}
	return ""
}
