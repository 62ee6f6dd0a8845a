// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
)

// A Phase is the part of an evaluation that an error belongs to. Errors of one phase are handled alike.
type Phase string

// The phases.
const (
	// PhaseRequest: the model has not answered. The evaluation could not begin, the agent could not be
	// started or ended early, or the model's service refused the request.
	PhaseRequest Phase = "request"
	// PhaseResponse: what came back is not an answer that can be used.
	PhaseResponse Phase = "response"
	// PhaseTool: the tools of the prompt could not be given to the agent, or hidden sections were opened
	// without end. A failed call is not an error of the evaluation: the model reads it.
	PhaseTool Phase = "tool"
	// PhaseBudget: the budget is spent.
	PhaseBudget Phase = "budget"
)

// An EvaluationError is why a prompt has no answer. Its cause is available to [errors.Is] and [errors.As]:
// [guard.ErrDeadlineExceeded], [guard.ErrBudgetExhausted], [context.Canceled], [agent.ErrUnavailable], a
// [*ThrottleError], a [*prompt.OutputError], and the errors of the adapter.
type EvaluationError struct {
	// Prompt is the name of the prompt.
	Prompt string
	// Phase is the part that failed, for programs that handle errors, and Stage how far the evaluation had come.
	Phase Phase
	Stage Stage
	// Kind is the kind of failure: agent.FailureRateLimit and the others. It is never empty.
	Kind agent.FailureKind
	// Message is what failed, and Next what to do about it; that may be empty.
	Message, Next string
	// Err is the cause.
	Err error
	// Payload has details for programs and logs. All of it has a JSON form. Of an agent: "exit_code", "stderr", "subtype",
	// "api_error_status"; of its turn: "status", "stop_reason", "message_count", "events" by kind, "output_type".
	Payload map[string]any
	// Retry states whether to try again.
	Retry RetryAdvice
	// Summary is what became of the evaluation, with its usage and cost.
	Summary Summary

	answer any // of the prompt's type, if the completion check did not hold
}

// IncompleteResponse returns the response that is inside an error of the kind [agent.FailureIncomplete]: the agent has
// answered, and the completion check did not hold. It reports false for any other error, and for another type than the prompt's.
func IncompleteResponse[T any](err error) (*Response[T], bool) {
	failure, ok := errors.AsType[*EvaluationError](err)
	if !ok || failure.Kind != agent.FailureIncomplete {
		return nil, false
	}
	answer, ok := failure.answer.(T)
	return &Response[T]{Output: answer, Summary: failure.Summary}, ok
}

func (e *EvaluationError) Error() string {
	text := fmt.Sprintf("drover: %s: %s: %s", e.Prompt, e.Stage, cmp.Or(e.Message, fmt.Sprint(e.Err)))
	if e.Summary.Cleanup != nil {
		text += "; the cleanup failed too: " + e.Summary.Cleanup.Error()
	}
	return text
}

// Advice implements [advice.Adviser].
func (e *EvaluationError) Advice() string { return e.Next }

// Unwrap returns the cause.
func (e *EvaluationError) Unwrap() error { return e.Err }

// withCleanup is the error with a failure of the cleanup after it. The original may be in use by a reader.
func (e *EvaluationError) withCleanup(failure error) *EvaluationError {
	if failure == nil {
		return e
	}
	own := *e
	own.Err, own.Summary.Cleanup = errors.Join(e.Err, failure), errors.Join(e.Summary.Cleanup, failure)
	return &own
}

// Is reports whether target is [guard.ErrBudgetExhausted] and a budget is spent, whichever component counted the usage.
func (e *EvaluationError) Is(target error) bool {
	return e.Phase == PhaseBudget && target == guard.ErrBudgetExhausted
}

// A ThrottleKind is why a service was not available.
type ThrottleKind string

// The kinds of throttling.
const (
	ThrottleRateLimit  ThrottleKind = "rate_limit" // too many requests
	ThrottleQuota      ThrottleKind = "quota"      // the account is out of credit
	ThrottleTimeout    ThrottleKind = "timeout"    // it could not be reached, or did not answer in time
	ThrottleOverloaded ThrottleKind = "overloaded" // it has no capacity
)

// A ThrottleError is the cause of an [EvaluationError] where an agent or a model's service is temporarily not available.
type ThrottleError struct {
	Kind ThrottleKind
	// RetryAfter is the minimum wait. Zero means that the service set none.
	RetryAfter time.Duration
	// Attempts is how often the evaluation was tried, beside the retries of the agent and the gateway.
	Attempts int
	// RetrySafe is true if a retry repeats no side effect.
	RetrySafe bool
	// Err is the error of the agent.
	Err error
}

func (e *ThrottleError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ThrottleError) Unwrap() error { return e.Err }

// throttles are the kinds of failures that are throttling.
var throttles = map[agent.FailureKind]ThrottleKind{
	agent.FailureRateLimit: ThrottleRateLimit, agent.FailureQuota: ThrottleQuota, agent.FailureOverloaded: ThrottleOverloaded,
	agent.FailureTimeout: ThrottleTimeout, agent.FailureStart: ThrottleTimeout,
}

// failed makes any error one of the evaluation.
func (e *evaluation) failed(err error) *EvaluationError {
	ended, _ := errors.AsType[*turnError](err)
	f := e.classify(err)
	failure := &EvaluationError{
		Prompt: e.prompt.Name(), Phase: e.phase(err, f.Kind, ended != nil), Stage: e.stage, Kind: f.Kind,
		Err: err, Payload: e.payload(f, ended), Retry: e.advice(f.Kind), Summary: e.summary,
	}
	failure.Message, failure.Next = err.Error(), advice.Of(err)
	failure.Message = cmp.Or(f.Message, failure.Message)
	failure.Next = cmp.Or(f.Next, failure.Next, nextStep[f.Kind])
	if kind, ok := throttles[f.Kind]; ok {
		failure.Err = &ThrottleError{Kind: kind, RetryAfter: failure.Retry.After, Attempts: max(1, e.summary.Attempts), RetrySafe: failure.Retry.Safe, Err: err}
	}
	if unfinished, ok := errors.AsType[*incompleteError](err); ok {
		failure.answer = unfinished.value
	}
	if e.summary.Cleanup != nil {
		failure.Err = errors.Join(failure.Err, e.summary.Cleanup)
	}
	return failure
}

// refused is the error of what could not even begin. It touches nothing that another turn is using.
func (e *evaluation) refused(err error) *EvaluationError {
	failure := notBegun(e.prompt.Name(), err)
	if errors.Is(err, agent.ErrBusy) { // which names a runner, and the caller has none
		failure.Message, failure.Next = "the conversation has a turn under way", "wait until that is over, interrupt it, or fork the conversation"
	}
	return failure
}

func notBegun(prompt string, err error) *EvaluationError {
	return &EvaluationError{
		Prompt: prompt, Phase: PhaseRequest, Stage: StagePrepare, Kind: agent.FailureRequest,
		Message: err.Error(), Next: advice.Of(err), Err: err, Retry: RetryAdvice{Safe: true},
	}
}

// nextStep is the advice for kinds of failures whose errors have none.
var nextStep = map[agent.FailureKind]string{
	agent.FailureUnavailable:    "run drover doctor, which lists what is missing",
	agent.FailureAuthentication: "check the key or the token that the adapter was given",
	agent.FailureProtocol:       "check the version of the agent, and report it if it is a supported one",
	agent.FailureRequest:        "change what is asked for; it would fail each time",
	agent.FailureInterrupted:    "begin again, or resume with Summary.ResumeToken",
	agent.FailureRateLimit:      "try again later, or set Options.Retry",
	agent.FailureOverloaded:     "try again later, or set Options.Retry",
	agent.FailureTimeout:        "check the connection to the model, or set Options.Retry",
	agent.FailureServer:         "try again later, or set Options.Retry",
	agent.FailureStart:          "try again, or set Options.Retry",
	agent.FailureProcess:        "see what it wrote to standard error, or set Options.Retry",
	agent.FailureNoResult:       "try again; Summary.Transcript shows how far it came",
	agent.FailureQuota:          "check the account that pays for the model",
	agent.FailureRefusal:        "change what the prompt asks for; the model refuses to do it",
	agent.FailureTooLarge:       "show the agent less at a time, or begin a new conversation",
	agent.FailureExecution:      "see Payload and the transcript for what went before",
	agent.FailureIncomplete:     "see what is missing, then raise MaxRounds or the limits, or correct the check; IncompleteResponse has the answer",
	agent.FailureMaxTurns:       "raise Options.MaxTurns, or ask for less",
	agent.FailureMaxBudget:      "raise the budget, or ask for less",
	agent.FailureNoOutput:       "describe the fields of the output type, or make it easier to fill",
	agent.FailureOutputRetries:  "make the output type easier to fill, or describe its fields",
}

func (e *evaluation) classify(err error) agent.Failure {
	switch _, unfinished := errors.AsType[*incompleteError](err); {
	case unfinished:
		return agent.Failure{Kind: agent.FailureIncomplete}
	case errors.Is(err, errNoOutput), errors.Is(err, prompt.ErrOutput):
		return agent.Failure{Kind: agent.FailureNoOutput}
	case errors.Is(err, guard.ErrBudgetExhausted):
		return agent.Failure{Kind: agent.FailureMaxBudget}
	case e.summary.Attempts == 0 && errors.Is(err, guard.ErrDeadlineExceeded):
		return agent.Failure{Kind: agent.FailureInterrupted, Message: "Deadline expired before SDK invocation: it was " + e.deadline.String()}
	case stopped(err):
		return agent.Failure{Kind: agent.FailureInterrupted}
	}
	if c, ok := e.adapter.(agent.Classifier); ok {
		if f := c.Classify(err); f.Kind != "" {
			return f
		}
	}
	if errors.Is(err, agent.ErrUnavailable) {
		return agent.Failure{Kind: agent.FailureUnavailable}
	}
	if ended, ok := errors.AsType[*turnError](err); ok && ended.kind() != "" {
		return agent.Failure{Kind: ended.kind()}
	}
	switch e.stage {
	case StagePrepare, StageRender, StageBind: // the agent was not asked
		return agent.Failure{Kind: agent.FailureRequest}
	}
	if e.runner == nil { // it could not be started
		return agent.Failure{Kind: agent.FailureRequest}
	}
	return agent.Failure{Kind: agent.FailureExecution}
}

// stopped reports whether an error comes from a cancellation or a deadline.
func stopped(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, guard.ErrDeadlineExceeded)
}

// asked are the kinds of failures in which the model has not answered.
var asked = map[agent.FailureKind]bool{
	agent.FailureUnavailable: true, agent.FailureRequest: true, agent.FailureStart: true, agent.FailureProcess: true,
	agent.FailureAuthentication: true, agent.FailureRateLimit: true, agent.FailureOverloaded: true, agent.FailureQuota: true,
	agent.FailureTimeout: true, agent.FailureServer: true, agent.FailureTooLarge: true, "": true,
}

func (e *evaluation) phase(err error, kind agent.FailureKind, ended bool) Phase {
	_, expansions := errors.AsType[*tooManyExpansions](err)
	switch {
	case kind == agent.FailureMaxBudget:
		return PhaseBudget
	case expansions, e.stage == StageBind:
		return PhaseTool
	case e.stage == StagePrepare, e.stage == StageRender, asked[kind] && e.stage == StageRun:
		return PhaseRequest
	case !ended && e.stage == StageRun && kind != agent.FailureInterrupted:
		return PhaseRequest
	}
	return PhaseResponse
}

func (e *evaluation) payload(f agent.Failure, ended *turnError) map[string]any {
	all := map[string]any{}
	if ended != nil {
		ended.describe(all)
	}
	if ended != nil && e.live != nil && e.live.Rendered().Output != nil {
		none, _ := e.parse(nil)
		all["output_type"] = fmt.Sprintf("%T", none)
	}
	for key, value := range f.Details {
		all[key] = value
	}
	return all
}

// A turnError is the failure of a turn. It adds nothing to the text of its cause.
type turnError struct {
	turn  *turn
	cause error
}

func (e *turnError) Error() string { return e.cause.Error() }
func (e *turnError) Unwrap() error { return e.cause }

// kind is the kind of failure by the end of the turn alone, or "".
func (e *turnError) kind() agent.FailureKind {
	t := e.turn
	switch {
	case t.Status == event.DoneMaxTurns:
		return agent.FailureMaxTurns
	case t.Status == event.DoneMaxBudget:
		return agent.FailureMaxBudget
	case t.Status == event.DoneInterrupted:
		return agent.FailureInterrupted
	case t.Status == "", t.Failure != nil && t.Failure.Code == event.CodeMissingDone:
		return agent.FailureNoResult
	}
	return ""
}

func (e *turnError) describe(all map[string]any) {
	t := e.turn
	end := agent.EndOf(t.ended)
	count := 0
	kinds := map[string]int{}
	for kind, n := range t.Kinds {
		kinds[string(kind)], count = n, count+n
	}
	all["events"], all["message_count"], all["status"] = kinds, count, string(t.Status)
	if t.Failure != nil && t.Failure.Code != "" {
		all["code"] = t.Failure.Code
	}
	if end.StopReason != "" {
		all["stop_reason"] = end.StopReason
	}
	if end.Stderr != "" {
		all["stderr"] = end.Stderr
	}
}

func (e *evaluation) turnCause(ctx context.Context, t *turn) error {
	var failure error
	if t.Failure != nil {
		failure = cmp.Or(t.Failure.Cause, error(*t.Failure))
	}
	cause := cmp.Or(t.Cause, failure)
	switch {
	case t.Status == event.DoneMaxBudget:
		return cmp.Or(cause, e.tracker.Check(), e.unexplained(t))
	case ctx.Err() != nil:
		return stopCause(ctx)
	}
	return cmp.Or(cause, e.unexplained(t))
}

// unexplained is the error of a turn that failed without a cause.
func (e *evaluation) unexplained(t *turn) error {
	if t.Status == "" {
		return advice.Wrap(errors.New("no result was received from the agent"), "try again; see the log of the agent for why it ended")
	}
	return fmt.Errorf("the run ended with %s: %s", t.Status, cmp.Or(t.Result, t.Reason, "no reason was given"))
}

// stopCause is why a context has ended. It matches the error of the context as well as the cause.
func stopCause(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return &stopError{cause, ctx.Err()}
}

// because adds the cause of the context to an error of a stopped operation. It matches the error of the context too.
func because(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case stopped(err) && !errors.Is(err, cause):
		return &stopError{cause, err}
	case !stopped(err) && errors.Is(err, cause):
		return &stopError{err, ctx.Err()}
	}
	return err
}

// An incompleteError is why the answer of an agent does not count: the completion check did not hold.
type incompleteError struct {
	value  any
	rounds int
	found  guard.Completion
	spent  error // the limits because of which the check was skipped
}

func (e *incompleteError) Error() string {
	if e.found.Skipped {
		return "the completion check was skipped, because the limits are spent"
	}
	return fmt.Sprintf("the completion check does not hold (rounds: %d): %s", e.rounds, e.found.Missing())
}

func (e *incompleteError) Unwrap() error { return e.spent }

// A stopError is the reason why something ended, and the error with which it did.
type stopError struct{ cause, err error }

func (e *stopError) Error() string   { return e.cause.Error() }
func (e *stopError) Unwrap() []error { return []error{e.cause, e.err} }

// tooManyExpansions is the error of a model that opens sections without end.
type tooManyExpansions struct {
	max  int
	last *prompt.ExpansionRequired
}

func (e *tooManyExpansions) Error() string {
	return fmt.Sprintf("the prompt was restarted %d times to show hidden sections, and the model asks for %v", e.max, e.last.SectionKeys)
}

func (e *tooManyExpansions) Advice() string {
	return "raise MaxExpansions, or show them from the start"
}
