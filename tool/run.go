// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/schema"
)

// stopGrace is how long a call whose context has ended waits for its handler to return.
const stopGrace = time.Second

// A Call is a call of a tool.
type Call struct {
	// ID is the tool use id. A registry makes one up for a call without.
	ID event.CallID
	// Name is the tool: its name, its id, or "mcp__server__name".
	Name string
	// Input is a JSON object. Empty means {}.
	Input json.RawMessage
	// As is the name by which the caller knows the tool, where it is another: decisions and events use it.
	As string
	// AgentID is the subagent that calls; empty means the main agent, or a program.
	AgentID string
	// Timeout bounds the call, if the tool's own bound is not lower. Zero means none.
	Timeout time.Duration
	// DryRun asks what the call would do.
	DryRun bool
	// Doubles is set if Input came through a program whose numbers are doubles, as the CLI's are: whole
	// numbers that may have been rounded are refused, see [schema.Schema.ValidateDoubles].
	Doubles bool
}

// IsOf reports whether the call may be one of the tool that an agent calls by a name: its own, or "mcp__server__name".
func (c *Call) IsOf(name string) bool {
	for _, own := range []string{c.Name, c.As} {
		if own != "" && (name == own || strings.HasPrefix(name, mcpPrefix) && strings.HasSuffix(name, "__"+own)) {
			return true
		}
	}
	return false
}

// Event returns the call as an event.
func (c *Call) Event() event.ToolCall {
	return event.ToolCall{ID: c.ID, Name: cmp.Or(c.As, c.Name), Input: c.Input, AgentID: c.AgentID}
}

// Run checks the arguments and runs the handler. It decides nothing about the call: that is for
// [Registry.Execute]. Call.Name is not looked at. Whatever goes wrong is in the result.
func (t *Tool) Run(ctx context.Context, call Call) Result {
	started := time.Now()
	call.Input = objectOr(call.Input)
	var r Result
	if problem := t.checkCall(&call); problem != nil {
		r = failed(problem)
		r.CallID, r.Tool, r.DryRun = call.ID, t.Name, call.DryRun
	} else {
		r = t.perform(withCall(ctx, &call), &call)
	}
	r.Duration = time.Since(started)
	return r
}

// withCall makes the call known to the handler. Of a call with the id of the one around it, the handler knows the whole.
func withCall(ctx context.Context, call *Call) context.Context {
	if outer := runningFrom(ctx); outer != nil && outer.call.ID == call.ID && call.ID != "" {
		return ctx
	}
	return &running{Context: ctx, call: call}
}

func objectOr(input json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(input)) == 0 {
		return json.RawMessage("{}")
	}
	return input
}

var anyObject = sync.OnceValue(func() *schema.Schema { return schema.MustParse(`{"type":"object"}`) })

// checkCall returns an error for an invalid call, before anything is done.
func (t *Tool) checkCall(call *Call) *Error {
	switch {
	case call.DryRun && t.DryRun == nil:
		return &Error{Code: CodeNoDryRun, Category: CategoryNotFound, Message: fmt.Sprintf(noDryRun, t.Name)}
	case !call.DryRun && t.Handler == nil:
		return &Error{Code: CodeNotServed, Category: CategoryNotFound, Message: fmt.Sprintf(notServed, t.Name)}
	}
	input := t.Input
	if input == nil {
		input = anyObject()
	}
	validate := input.Validate
	if call.Doubles {
		validate = input.ValidateDoubles
	}
	if err := validate(call.Input); err != nil {
		return InvalidInput(err)
	}
	return nil
}

// perform runs the handler of a call that was checked, within its time.
func (t *Tool) perform(ctx context.Context, call *Call) Result {
	if d := stricter(t.Timeout, call.Timeout); d > 0 {
		limited, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		ctx = limited
	}
	handler := t.Handler
	if call.DryRun {
		handler = t.DryRun
	}
	var r Result
	if err := ctx.Err(); err != nil {
		r = failed(notRun(ctx, err))
	} else if r, err = invoke(ctx, handler, call.Input); err != nil {
		r = failed(failure(ctx, err))
	} else {
		r = t.finish(r)
	}
	r.CallID, r.Tool, r.DryRun = call.ID, t.Name, call.DryRun
	r.HideValue = r.HideValue || t.HideValue
	return r
}

type returned struct {
	result Result
	err    error
}

// invoke runs the handler on a goroutine of its own where its context can end, so that one that
// ignores its context cannot block the caller for longer than the grace period.
func invoke(ctx context.Context, h Handler, input json.RawMessage) (Result, error) {
	if ctx.Done() == nil {
		return guarded(ctx, h, input)
	}
	done := make(chan returned, 1)
	start(ctx, func() {
		got := returned{err: errors.New(handlerExited)}
		defer func() { done <- got }() // also after runtime.Goexit
		got.result, got.err = guarded(ctx, h, input)
	})
	select {
	case got := <-done:
		return got.result, got.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case got := <-done: // it stopped, or had finished: either way its result is true
		return got.result, got.err
	case <-grace.C:
		e := failure(ctx, ctx.Err())
		e.Message = fmt.Sprintf(stillRuns, strings.TrimSuffix(strings.TrimSuffix(e.Message, checkEffects), "."), stopGrace)
		e.Retryable = false // a second call would run beside the first
		return Result{}, e
	}
}

// start runs fn on a goroutine that the registry of the call, if there is one, can wait for. It holds the
// call's reservation until fn returns, which may be after the call is over.
func start(ctx context.Context, fn func()) {
	r := runningFrom(ctx)
	if r == nil || r.registry == nil {
		go fn()
		return
	}
	r.reservation.hold()
	r.registry.running.Go(func() {
		defer r.reservation.release()
		fn()
	})
}

func guarded(ctx context.Context, h Handler, input json.RawMessage) (r Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			Logger(ctx).ErrorContext(ctx, "tool panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = &Error{
				Code: CodePanic, Category: CategoryInternal, Message: fmt.Sprintf(handlerPanicked, p),
				Err: fmt.Errorf("panic: %v", p),
			}
		}
	}()
	r, err = h(ctx, input)
	return r, meant(err)
}

// finish fills in what a handler leaves to us, and checks what it promised.
func (t *Tool) finish(r Result) Result {
	if r.agree(); !r.OK() {
		return r
	}
	if err := t.structure(&r); err != nil {
		return failed(&Error{
			Code: CodeInvalidOutput, Category: CategoryInternal, Err: err,
			Message: fmt.Sprintf(invalidOutput, err),
		})
	}
	return r
}

func (t *Tool) structure(r *Result) error {
	if r.Structured == nil && !r.HideValue && !t.HideValue && maybeObject(r.Value) {
		if raw, err := plainjson.TryMarshal(r.Value); err == nil && raw[0] == '{' {
			r.Structured = raw
		}
	}
	if t.Output == nil || r.Structured == nil {
		return nil
	}
	return t.Output.Validate(r.Structured)
}

// maybeObject reports whether a value may be written as a JSON object. One that renders itself is shown as its text instead.
func maybeObject(value any) bool {
	switch value.(type) {
	case nil, Renderer:
		return false
	case json.Marshaler:
		return true
	}
	switch reflect.TypeOf(value).Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return true
	}
	return false
}

// stricter returns the lower of two bounds; zero means no bound.
func stricter[T int | time.Duration](a, b T) T {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
