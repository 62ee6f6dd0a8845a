// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/telemetry"
	"github.com/drover-agents/drover/tool"
)

// observe begins the trace of the run, below the span of the caller. The agent works in it, and so does
// whatever is called with the context.
func (e *evaluation) observe(ctx context.Context) (context.Context, error) {
	ctx, run, err := e.opts.Telemetry.Begin(withCaller(ctx, e.run), telemetry.Start{
		Agent: e.adapter.Agent(), Prompt: e.prompt.Name(), RunID: e.run.RunID, Model: e.opts.Model, ToolSource: e.toolSource, Subagent: e.subagent,
	})
	e.trace = run
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		e.run.TraceID, e.run.SpanID, e.run.Unsampled = span.TraceID().String(), span.SpanID().String(), !span.IsSampled()
		e.traceState = span.TraceState().String()
	}
	return ctx, err
}

// withCaller is a context with the span of the caller: the one that it has, or else that of the run context.
func withCaller(ctx context.Context, run guard.RunContext) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() || run.Traceparent() == "" {
		return ctx
	}
	var c trace.SpanContextConfig
	c.TraceID, _ = trace.TraceIDFromHex(run.TraceID) // both are valid, or there were no header
	c.SpanID, _ = trace.SpanIDFromHex(run.SpanID)
	if !run.Unsampled {
		c.TraceFlags = trace.FlagsSampled
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(c))
}

// toolSource says who runs a tool.
func (e *evaluation) toolSource(name string) string {
	if _, ours := e.opts.ownTool(name); ours {
		return string(session.BridgedTool)
	}
	return string(session.NativeTool)
}

// subagent says which kind of subagent a call asks for.
func (e *evaluation) subagent(call event.ToolCall) string {
	return tool.Field(call.Input, e.adapter.Catalogue().Fields(call.Name).Subagent)
}

// observed ends the trace of the run.
func (e *evaluation) observed(failure *EvaluationError) {
	s := &e.summary
	end := telemetry.End{Status: s.Status, SessionID: s.SessionID, Usage: s.Usage, Turns: s.Turns, Structured: e.asked.OutputSchema != nil}
	if failure != nil {
		end.Err, end.ErrorType, end.Stage = failure, failureKind(failure), string(failure.Stage)
	}
	e.trace.End(end)
	e.trace = nil
}

// failureKind is what kind of failure an error is, in a word: there are few of them, so that they can be
// counted.
func failureKind(failure *EvaluationError) string {
	for _, kind := range []struct {
		is   error
		name string
	}{
		{guard.ErrDeadlineExceeded, "deadline_exceeded"},
		{guard.ErrBudgetExhausted, "budget_exhausted"},
		{ErrInterrupted, "interrupted"},
		{errLeft, "reader_left"},
		{context.Canceled, "cancelled"},
		{context.DeadlineExceeded, "deadline_exceeded"},
	} {
		if errors.Is(failure, kind.is) {
			return kind.name
		}
	}
	return string(failure.Kind)
}
