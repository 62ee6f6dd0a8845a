// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/json"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/drover-agents/drover/event"
)

type toolSpan struct {
	ctx   context.Context
	call  event.ToolCall
	began time.Time
}

func (r *Run) called(ev event.Event, c event.ToolCall) {
	attrs := []attribute.KeyValue{
		attribute.String(keyOperation, opExecuteTool), attribute.String(keyToolName, c.Name),
		attribute.String(keyToolCallID, string(c.ID)), attribute.String(keyToolType, "function"),
	}
	if r.start.ToolSource != nil {
		attrs = given(attrs, keyToolSource, r.start.ToolSource(c.Name))
	}
	if r.content {
		attrs = append(attrs, attribute.String(keyToolArguments, string(c.Input)))
	}
	ctx, _ := r.tracer.Start(r.within(ev), opExecuteTool+" "+c.Name, trace.WithTimestamp(ev.Time), trace.WithAttributes(attrs...))
	r.calls[c.ID] = &toolSpan{ctx, c, ev.Time}
}

// within is what an event happened in: the turn, or a subagent.
func (r *Run) within(ev event.Event) context.Context {
	if a := r.agents[ev.ParentToolUseID]; a != nil {
		return a.seenAt(ev.Time)
	}
	return r.turn
}

func (r *Run) returned(ev event.Event, result event.ToolResult) {
	t := r.calls[result.ID]
	if t == nil {
		return // it has ended, or its begin was not reported
	}
	span := trace.SpanFromContext(t.ctx)
	span.SetAttributes(attribute.String(keyToolStatus, string(result.Status)))
	if r.content {
		span.SetAttributes(attribute.String(keyToolResult, string(result.Output)))
	}
	failure := ""
	if result.Status != event.ToolSuccess {
		failure = string(result.Status)
		r.fail(span, failure, failureText(result))
	}
	r.ended(t, ev.Time, result.Status, failure)
}

func failureText(result event.ToolResult) string {
	if result.Failure != nil {
		return result.Failure.Message
	}
	return string(result.Status)
}

func (r *Run) ended(t *toolSpan, at time.Time, status event.ToolStatus, failure string) {
	trace.SpanFromContext(t.ctx).End(trace.WithTimestamp(at))
	delete(r.calls, t.call.ID)
	name := attribute.String(keyToolName, t.call.Name)
	r.took(opExecuteTool, at.Sub(t.began), failure, name)
	r.meters.tools.Add(r.ctx, 1, metric.WithAttributes(name, attribute.String(keyToolStatus, string(status))))
}

// message is a message in the form of the conventions.
func message(role, text string) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	raw, _ := json.Marshal([]message{{role, []part{{"text", text}}}}) // strings always can be
	return string(raw)
}
