// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/plainjson"
)

// Execute runs one call: it finds the tool, counts the call, checks its arguments, has it decided,
// and runs the handler. Whatever goes wrong is in the result. A call without an id gets one; one with
// the id of an earlier call is another call for the [Decider], and has a new id there.
func (r *Registry) Execute(ctx context.Context, call Call) Result {
	started := time.Now()
	if call.ID == "" {
		call.ID = event.CallID(ident.NewUUID())
	}
	call.Input = objectOr(call.Input)
	r.emit(call.Event())
	t, found := r.find(call.Name)
	name := call.Name
	if found {
		name = t.Name
	}
	result := r.around(candidateKey.With(ctx, t), name, &call, func(ctx context.Context) Result {
		if found {
			return r.executeFound(ctx, t, &call)
		}
		return r.unknownTool(&call)
	})
	result.CallID, result.DryRun, result.Duration = call.ID, call.DryRun, time.Since(started)
	r.digest(&call, &result)
	if r.opts.Emit != nil {
		done := result.Event()
		done.Name = call.Event().Name
		r.emit(done)
	}
	if found {
		r.after(ctx, t, call, result)
	}
	return result
}

// around runs next within what the options say, and finishes the result. A second call of next gets what the first one got.
func (r *Registry) around(ctx context.Context, name string, call *Call, next func(context.Context) Result) (result Result) {
	if r.opts.Around == nil {
		return next(ctx)
	}
	result = failed(&Error{Code: CodePanic, Category: CategoryInternal, Message: unprepared})
	ran := false
	defer func() {
		if p := recover(); p != nil {
			r.opts.Logger.ErrorContext(ctx, "Options.Around panicked", "call", call.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
		result.agree()
		if result.Tool == "" {
			result.Tool = name
		}
	}()
	return r.opts.Around(ctx, call, func(ctx context.Context) Result {
		if !ran {
			ran, result = true, next(ctx)
		}
		return result
	})
}

// executeFound takes a call through everything that may stop it, and runs it.
func (r *Registry) executeFound(ctx context.Context, t *Tool, call *Call) Result {
	if err := ctx.Err(); err != nil {
		return named(t, failed(notRun(ctx, err)))
	}
	problem := r.spend()
	if problem == nil {
		if problem = t.checkCall(call); problem != nil {
			r.step(call, "invalid", problem.Message)
		}
	}
	if problem != nil {
		return named(t, failed(problem))
	}
	r.step(call, "validated", "")
	if stop := r.permit(ctx, t, call); stop != nil {
		return named(t, *stop)
	}
	held, err := r.reserve(ctx, t)
	if err != nil {
		return named(t, failed(notRun(ctx, err)))
	}
	defer held.release()
	call.Timeout = stricter(call.Timeout, r.opts.Timeout)
	own, problem := r.contextFor(ctx, call, held)
	if problem != nil {
		return named(t, failed(problem))
	}
	r.step(call, "started", "")
	result := t.perform(own, call)
	r.step(call, "returned", "")
	return result
}

func named(t *Tool, r Result) Result {
	r.Tool = t.Name
	return r
}

func (r *Registry) unknownTool(call *Call) Result {
	message := fmt.Sprintf(unknownTool, call.Name, strings.Join(r.servedNames(), ", "))
	result := failed(&Error{Code: CodeUnknownTool, Category: CategoryNotFound, Message: message})
	result.Tool = call.Name
	return result
}

func (r *Registry) servedNames() []string {
	var names []string
	for _, t := range r.Tools() {
		if t.Served() {
			names = append(names, t.Name)
		}
	}
	return names
}

// find is Lookup for calls, which may also say "mcp__server__name".
func (r *Registry) find(name string) (*Tool, bool) {
	if t, ok := r.Lookup(name); ok {
		return t, true
	}
	n, isMCP := ParseMCPName(name)
	if !isMCP {
		return nil, false
	}
	return r.Lookup(n.Tool)
}

func (r *Registry) spend() *Error {
	calls, b := r.calls.Add(1), r.opts.Budget
	switch {
	case b.MaxCalls > 0 && calls > int64(b.MaxCalls):
		return &Error{Code: CodeBudget, Category: CategoryPermission, Message: fmt.Sprintf(callsExhausted, b.MaxCalls)}
	case b.MaxDuration > 0 && time.Since(r.created) >= b.MaxDuration:
		return &Error{Code: CodeBudget, Category: CategoryPermission, Message: fmt.Sprintf(timeExhausted, b.MaxDuration)}
	}
	return nil
}

// permit asks the policies, then the decider, which judges what would run. It returns the result of a refused call.
func (r *Registry) permit(ctx context.Context, t *Tool, call *Call) *Result {
	for _, before := range r.opts.Before {
		d, ok := askBefore(ctx, before, t, *call)
		if !ok {
			continue
		}
		d.CallID, d.Tool = call.ID, call.Event().Name
		r.emit(d)
		if stop := r.obey(t, call, d); stop != nil {
			return stop
		}
	}
	r.mu.RLock()
	decider := r.decider
	r.mu.RUnlock()
	if decider != nil {
		if stop := r.obey(t, call, r.decide(ctx, decider, t, call)); stop != nil {
			return stop
		}
	}
	r.step(call, "allowed", "")
	return nil
}

// decide names the tool as the caller does, or by its id where that name means another tool here: a
// tool must not be judged by what is known of another. The context has the tool itself.
func (r *Registry) decide(ctx context.Context, decider Decider, t *Tool, call *Call) (d event.Decision) {
	defer func() {
		if p := recover(); p != nil {
			r.opts.Logger.ErrorContext(ctx, "decider panicked", "tool", t.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			d = event.Decision{Reason: decisionFailed}
		}
	}()
	asked := call.Event()
	asked.ID = r.decided.unused(call.ID)
	if other, found := r.find(asked.Name); found && other != t {
		asked.Name = t.ID()
	}
	return decider.Decide(candidateKey.With(ctx, t), asked)
}

// askBefore makes a denial of a panic.
func askBefore(ctx context.Context, before Before, t *Tool, call Call) (d event.Decision, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			d, ok = event.Decision{Reason: fmt.Sprintf(policyFailed, p)}, true
		}
	}()
	return before(ctx, t, call)
}

// obey applies a decision: it returns the result of a call that may not run.
func (r *Registry) obey(t *Tool, call *Call, d event.Decision) *Result {
	switch d.Verdict {
	case event.Allow:
		return r.replaceInput(t, call, d)
	case event.Ask:
		r.step(call, "needs_approval", d.Reason)
		message := cmp.Or(d.Reason, fmt.Sprintf(needsApprovalFor, t.Name))
		return &Result{
			Outcome: NeedsApproval, Action: &Action{Type: "approval", Message: message},
			Err: &Error{Code: CodeNeedsApproval, Category: CategoryPermission, Message: message},
		}
	}
	r.step(call, "denied", d.Reason)
	stop := failed(&Error{Code: CodeDenied, Category: CategoryPermission, Message: cmp.Or(d.Reason, policyDenied)})
	return &stop
}

func (r *Registry) replaceInput(t *Tool, call *Call, d event.Decision) *Result {
	if d.Input == nil {
		return nil
	}
	call.Input, call.Doubles = d.Input, false // written in this program
	if problem := t.checkCall(call); problem != nil {
		problem.Message = fmt.Sprintf(replacedInput, problem.Err)
		stop := failed(problem)
		return &stop
	}
	return nil
}

// contextFor is what the handler gets. A panic of the function that adds to it ends the call.
func (r *Registry) contextFor(ctx context.Context, call *Call, at *reservation) (own context.Context, problem *Error) {
	if r.opts.Context == nil {
		return &running{Context: ctx, call: call, registry: r, reservation: at}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			r.opts.Logger.ErrorContext(ctx, "Options.Context panicked", "call", call.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			problem = &Error{Code: CodePanic, Category: CategoryInternal, Message: unprepared}
		}
	}()
	return &running{Context: r.opts.Context(ctx, *call), call: call, registry: r, reservation: at}, nil
}

func (r *Registry) digest(call *Call, result *Result) {
	if !r.opts.Digests {
		return
	}
	result.InputDigest = plainjson.Digest(call.Input)
	if !result.OK() {
		return
	}
	output := result.Structured
	if output == nil {
		output, _ = plainjson.TryMarshal(result.Render()) // a string always has a JSON form
	}
	result.OutputDigest = plainjson.Digest(output)
}

// after calls Options.After. They cannot change the result.
func (r *Registry) after(ctx context.Context, t *Tool, call Call, result Result) {
	for _, after := range r.opts.After {
		if err := askAfter(ctx, after, t, call, result); err != nil {
			r.opts.Logger.WarnContext(ctx, "after a tool call", "tool", t.Name, "call", call.ID, "error", err)
		}
	}
}

func askAfter(ctx context.Context, after After, t *Tool, call Call, result Result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return after(ctx, t, call, result)
}

// emit emits an event. An Emit that panics is logged; the call goes on.
func (r *Registry) emit(p event.Payload) {
	if r.opts.Emit == nil {
		return
	}
	defer func() {
		if got := recover(); got != nil {
			r.opts.Logger.Error("Options.Emit panicked", "event", p.EventKind(), "panic", fmt.Sprint(got), "stack", string(debug.Stack()))
		}
	}()
	r.opts.Emit(event.New(p))
}

func (r *Registry) step(call *Call, step, detail string) {
	if r.opts.Emit != nil {
		r.emit(event.ToolStep{ID: call.ID, Name: call.Event().Name, Step: step, Detail: detail})
	}
}
