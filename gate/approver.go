// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// An Approver answers questions about calls for which the verdict of a gate is Ask. It is called by several goroutines, and
// at most once for each call. Its context ends when the answer is no longer needed: the time is over,
// the call was withdrawn, or the answer to another question covers this one. Late answers are ignored. An error denies.
//
// No policy can allow what another asks about, since a question beats a permission. An approver can: it
// may look at rules before it asks a person. See the example of [ApproverFunc].
type Approver interface {
	Approve(ctx context.Context, q Question) (Answer, error)
}

// An ApproverFunc is an [Approver] made of a function.
type ApproverFunc func(ctx context.Context, q Question) (Answer, error)

// Approve calls the function.
func (f ApproverFunc) Approve(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }

// AnsweredElsewhere is the cause with which the context of an approver ends whose question was answered elsewhere, as on a page in a
// browser. A program that asks in both places sets it, with [context.WithCancelCause].
type AnsweredElsewhere struct {
	// Where is the place or the person, with its preposition: "on the page".
	Where string
	// Verdict is the answer.
	Verdict event.Verdict
}

// Error is "answered on the page: allowed".
func (a AnsweredElsewhere) Error() string {
	if a.Verdict == event.Allow {
		return "answered " + a.Where + ": allowed"
	}
	return "answered " + a.Where + ": denied"
}

// A Question is about one call.
type Question struct {
	// Call is the call, with the input that would run.
	Call event.ToolCall
	// Reason is why there is a question, Policy which policy asks it.
	Reason, Policy string
	// Risk and Needs are what is known of the tool.
	Risk  tool.Risk
	Needs tool.Capability
}

// An Answer is the decision of an approver about a call. The zero value denies this one call.
type Answer struct {
	// Verdict is [event.Allow] or [event.Deny]; everything else denies.
	Verdict event.Verdict
	// Reason is the text of a denial that the model reads.
	Reason string
	// Input replaces the input of an allowed call. It is judged by the gate, and must not be denied. Nil leaves it as it is.
	Input json.RawMessage
	// Remember sets which later questions the answer covers, never a denial of the gate or another tool. Zero means none.
	Remember Scope
	// Until is when Remember ends. Zero means with the engine.
	Until time.Time
}

// A Scope is the set of calls that an answer covers.
type Scope uint8

// The scopes.
const (
	// Once is for the call that was asked about.
	Once Scope = iota
	// SameInput is for calls of the same tool with the same input. Of an answer with a new input it is the new one.
	SameInput
	// SameTool is for all calls of the same tool.
	SameTool
)

const policyApprover = "approver"

// ask makes a decision of a question: from an earlier answer, or by asking.
func (e *Engine) ask(ctx context.Context, c Call, d event.Decision) event.Decision {
	if d.Input != nil {
		c.Input, c.Again = d.Input, true
	}
	key := answerKey{e.gate.identity(c), c.Risk, c.Needs, inputDigest(c.Input)}
	if a, ok := e.answers.find(key, time.Now()); ok {
		return c.decided(a.decision(d))
	}
	q := Question{Call: c.ToolCall, Reason: d.Reason, Policy: d.Policy, Risk: c.Risk, Needs: c.Needs}
	if !e.emit(ctx, event.PermissionRequest{ID: c.ID, Name: c.Name, Input: c.Input, Reason: d.Reason}) {
		return c.decided(unapproved(q, questionUnsaved))
	}
	if e.opts.Approver == nil {
		return c.decided(unapproved(q, noApprover))
	}
	r := e.consult(ctx, q, key)
	switch {
	case r.earlier != nil:
		d = c.decided(r.earlier.decision(d))
	case r.problem != "":
		d = c.decided(unapproved(q, r.problem))
	default:
		d = e.follow(ctx, c, d, key, r.answer)
	}
	d.Asked = true
	return d
}

// decision is what the answer makes of a question that the gate asks.
func (a answer) decision(asked event.Decision) event.Decision {
	return event.Decision{Verdict: a.verdict, Reason: a.reason, Policy: policyApprover, Input: inputIf(a.verdict, asked.Input), Remembered: true}
}

func inputIf(v event.Verdict, input json.RawMessage) json.RawMessage {
	if v != event.Allow {
		return nil
	}
	return input
}

func unapproved(q Question, why string) event.Decision {
	reason := ""
	if q.Reason != "" {
		reason = " (" + q.Reason + ")"
	}
	return event.Decision{Policy: policyApprover, Reason: fmt.Sprintf(unapprovedCall, q.Call.Name, reason, why)}
}

// follow makes a decision of an answer, and remembers it for the scope of the answer.
func (e *Engine) follow(ctx context.Context, c Call, asked event.Decision, key answerKey, got Answer) event.Decision {
	d := event.Decision{Verdict: got.Verdict, Reason: got.Reason, Policy: policyApprover, Input: asked.Input}
	if got.Verdict != event.Allow {
		d.Verdict, d.Input = event.Deny, nil
		d.Reason = cmp.Or(got.Reason, fmt.Sprintf(notApproved, c.Name))
	} else if got.Input != nil && !plainjson.IsObject(got.Input) {
		return c.decided(event.Decision{Policy: policyApprover, Reason: fmt.Sprintf(badApprovedInput, c.Name)})
	}
	c.chain.add(&c, &d)
	if d.Verdict == event.Allow && got.Input != nil {
		input, denied := e.rewritten(ctx, c, got.Input)
		if denied != nil {
			return *denied
		}
		d.Input, key.input = input, inputDigest(input)
	}
	switch got.Remember {
	case SameInput:
		e.answers.keep(key, answer{d.Verdict, d.Reason, got.Until})
	case SameTool:
		key.input = ""
		e.answers.keep(key, answer{d.Verdict, d.Reason, got.Until})
	}
	return d
}

// rewritten has the gate judge the input that the approver wrote. It returns the input that runs, or the denial.
func (e *Engine) rewritten(ctx context.Context, c Call, input json.RawMessage) (json.RawMessage, *event.Decision) {
	c.Input, c.Again = input, true
	d := e.decideInput(ctx, c)
	if d.Verdict != event.Ask && d.Verdict != event.Allow {
		return nil, &d
	}
	if d.Input != nil {
		input = d.Input
	}
	return input, nil
}

// A reply is the result of a question: an answer, an answer to another question that holds for this
// one too, or the reason why the answer is missing, to follow "needs approval, and".
type reply struct {
	answer  Answer
	earlier *answer
	problem string
}

// consult asks the approver and waits for as long as that may take, or until another answer holds. Late answers are ignored.
func (e *Engine) consult(ctx context.Context, q Question, key answerKey) reply {
	wait, cancel := e.limited(ctx)
	defer cancel()
	replies := make(chan reply, 1) // an approver that ignores its context must not block for ever
	go func() {
		r := reply{problem: approverExited}
		defer func() { replies <- r }()
		r = e.callApprover(wait, q)
	}()
	r := e.firstReply(wait, replies, key)
	switch {
	case ctx.Err() != nil:
		return reply{problem: fmt.Sprintf(questionWithdrawn, context.Cause(ctx))}
	case wait.Err() != nil:
		return reply{problem: fmt.Sprintf(answerLate, e.opts.ApprovalTimeout)}
	}
	return r
}

func (e *Engine) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.opts.ApprovalTimeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, e.opts.ApprovalTimeout)
}

func (e *Engine) firstReply(ctx context.Context, replies <-chan reply, key answerKey) reply {
	for {
		more := e.answers.more()
		if a, ok := e.answers.find(key, time.Now()); ok {
			return reply{earlier: &a}
		}
		select {
		case r := <-replies:
			return r
		case <-more:
		case <-ctx.Done():
			return reply{}
		}
	}
}

func (e *Engine) callApprover(ctx context.Context, q Question) (r reply) {
	defer func() {
		if p := recover(); p != nil {
			e.logPanic(ctx, "the approver panicked", q.Call, p)
			r = reply{problem: approverPanicked}
		}
	}()
	answer, err := e.opts.Approver.Approve(ctx, q)
	if err != nil {
		e.opts.Logger.ErrorContext(ctx, "approver failed", "tool", q.Call.Name, "call", q.Call.ID, "error", err)
		return reply{problem: approverFailed}
	}
	return reply{answer: answer}
}
