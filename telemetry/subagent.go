// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/drover-agents/drover/event"
)

// An agentSpan is the span of a subagent. The end of a background one is not reported: its span ends with its last event.
type agentSpan struct {
	ctx  context.Context
	id   string
	last time.Time
}

// seenAt notes an event at this time and returns the context of the subagent.
func (a *agentSpan) seenAt(at time.Time) context.Context {
	if at.After(a.last) {
		a.last = at
	}
	return a.ctx
}

func (r *Run) noteSubagent(ev event.Event) {
	if ev.ParentToolUseID == "" {
		return
	}
	a := r.agents[ev.ParentToolUseID]
	if a == nil {
		a = r.beginAgent(ev)
		r.agents[ev.ParentToolUseID] = a
	}
	a.id = cmp.Or(a.id, ev.AgentID)
	a.seenAt(ev.Time)
	r.flushWaiting(a)
}

// beginAgent makes the span of a subagent, in the call that runs it.
func (r *Run) beginAgent(ev event.Event) *agentSpan {
	parent, began, kind := r.turn, ev.Time, "subagent"
	if call := r.calls[ev.ParentToolUseID]; call != nil {
		parent, began = call.ctx, call.began
		if r.start.Subagent != nil {
			kind = cmp.Or(r.start.Subagent(call.call), kind)
		}
	}
	attrs := given(r.named(opInvokeAgent, kind), keyAgentID, ev.AgentID)
	ctx, _ := r.tracer.Start(parent, opInvokeAgent+" "+kind, trace.WithTimestamp(began), trace.WithAttributes(attrs...))
	return &agentSpan{ctx: ctx, id: ev.AgentID, last: ev.Time}
}

// agentOf is the subagent with the gateway's id, or nil if it is not known.
func (r *Run) agentOf(id string) *agentSpan {
	for _, a := range r.agents {
		if a.id == id {
			return a
		}
	}
	return nil
}

// flushWaiting makes the spans of the model calls that waited for a subagent.
func (r *Run) flushWaiting(a *agentSpan) {
	still := r.waiting[:0]
	for _, c := range r.waiting {
		if c.Agent == a.id {
			r.chat(a.seenAt(c.ended), c)
		} else {
			still = append(still, c)
		}
	}
	r.waiting = still
}

// settle ends everything that the turn has left open.
func (r *Run) settle() {
	now := time.Now()
	for _, c := range r.waiting { // their subagent is unknown
		r.chat(r.turn, c)
	}
	r.waiting = nil
	for _, t := range r.calls {
		r.fail(trace.SpanFromContext(t.ctx), string(event.ToolCancelled), "")
		trace.SpanFromContext(t.ctx).SetAttributes(attribute.String(keyToolStatus, string(event.ToolCancelled)))
		r.ended(t, now, event.ToolCancelled, string(event.ToolCancelled))
	}
	for id, a := range r.agents {
		trace.SpanFromContext(a.ctx).End(trace.WithTimestamp(a.last))
		delete(r.agents, id)
	}
}
