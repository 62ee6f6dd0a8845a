// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
)

// A Run is the trace of one run. A nil one does nothing.
type Run struct {
	content bool
	tracer  trace.Tracer
	meters  *meters
	start   Start

	ctx   context.Context // with the span of the run, for what is below it
	span  trace.Span
	began time.Time

	turn     context.Context // with the span of the turn
	turns    int
	session  string
	model    string
	provider string                      // of the last model call
	calls    map[event.CallID]*toolSpan  // those under way; the end of a turn ends them
	agents   map[event.CallID]*agentSpan // by the call that runs the subagent; the end of a turn ends them
	waiting  []modelCall                 // of subagents that are not known yet
}

func (r *Run) begin(ctx context.Context) context.Context {
	r.began, r.model = time.Now(), r.start.Model
	attrs := append(r.named(opInvokeAgent, r.start.Prompt), attribute.String(keyRunID, r.start.RunID))
	attrs = given(attrs, keyRequestModel, r.start.Model)
	r.ctx, r.span = r.tracer.Start(ctx, opInvokeAgent+" "+r.start.Prompt, trace.WithTimestamp(r.began), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	return r.ctx
}

// named are the attributes of every span about an agent.
func (r *Run) named(operation, agent string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String(keyOperation, operation), attribute.String(keyProvider, r.providerName()), attribute.String(keyAgentName, agent),
	}
}

// providerName is who runs the model. Before its first call only the agent is known, and without a gateway that stays so.
func (r *Run) providerName() string { return cmp.Or(r.provider, r.start.Agent) }

// given adds an attribute that has a value.
func given(attrs []attribute.KeyValue, key, value string) []attribute.KeyValue {
	if value == "" {
		return attrs
	}
	return append(attrs, attribute.String(key, value))
}

// Turn begins a turn with a message of the user.
func (r *Run) Turn(text string) {
	if r == nil {
		return
	}
	r.turns++
	attrs := []attribute.KeyValue{attribute.Int(keyTurn, r.turns)}
	if r.content {
		attrs = append(attrs, attribute.String(keyInputMessages, message("user", text)))
	}
	r.turn, _ = r.tracer.Start(r.ctx, spanTurn, trace.WithAttributes(attrs...))
}

// Event takes the events of the agent, in order. A late event has its own time.
func (r *Run) Event(ev event.Event) {
	if r == nil || r.turn == nil {
		return
	}
	r.session = cmp.Or(ev.SessionID, r.session)
	r.noteSubagent(ev)
	switch what := ev.Payload.(type) {
	case event.Init:
		r.model = cmp.Or(what.Model, r.model)
	case event.ToolCall:
		r.called(ev, what)
	case event.ToolResult:
		r.returned(ev, what)
	case gateway.ModelCall:
		r.chatted(modelCall{what, ev.Time})
	}
}

// TurnEnd ends the turn. Everything under way ends with it. Err is why the turn failed, or nil.
func (r *Run) TurnEnd(done event.Done, err error) {
	if r == nil || r.turn == nil {
		return
	}
	r.settle()
	span := trace.SpanFromContext(r.turn)
	span.SetAttributes(given(nil, keyConversation, r.session)...)
	if r.content {
		span.SetAttributes(attribute.String(keyOutputMessages, message("assistant", done.Result)))
	}
	switch {
	case err != nil:
		r.fail(span, "error", err.Error())
	case done.Status != event.DoneSuccess:
		r.fail(span, string(done.Status), cmp.Or(done.Reason, done.Result))
	}
	span.End()
	r.turn = nil
}

// fail marks a span as failed. The text is content.
func (r *Run) fail(span trace.Span, kind, text string) {
	span.SetAttributes(attribute.String(keyErrorType, kind))
	if !r.content {
		text = kind
	}
	span.SetStatus(codes.Error, text)
}

// End ends the run. It is the last call.
func (r *Run) End(e End) {
	if r == nil {
		return
	}
	r.TurnEnd(event.Done{Status: e.Status}, e.Err) // one that was not ended by itself
	output := "text"
	if e.Structured {
		output = "json"
	}
	attrs := []attribute.KeyValue{attribute.String(keyProvider, r.providerName()), attribute.Int(keyTurns, e.Turns), attribute.String(keyOutputType, output)}
	attrs = given(attrs, keyConversation, cmp.Or(e.SessionID, r.session))
	attrs = given(attrs, keyResponseModel, r.model)
	attrs = given(attrs, keyStatus, string(e.Status))
	if e.Usage.Tokens != nil {
		attrs = append(attrs, attribute.Int64(keyInputTokens, e.Usage.InputTokens()), attribute.Int64(keyOutputTokens, e.Usage.OutputTokens()))
	}
	if e.Usage.Cost != nil {
		attrs = append(attrs, attribute.Float64(keyCost, e.Usage.TotalCostUSD()))
	}
	r.span.SetAttributes(attrs...)
	if e.Err != nil {
		r.span.SetAttributes(given(nil, keyStage, e.Stage)...)
		r.fail(r.span, cmp.Or(e.ErrorType, "error"), e.Err.Error())
	}
	r.took(opInvokeAgent, time.Since(r.began), failure(e), attribute.String(keyAgentName, r.start.Prompt))
	r.span.End()
}

func failure(e End) string {
	if e.Err == nil {
		return ""
	}
	return cmp.Or(e.ErrorType, "error")
}

func (r *Run) took(operation string, d time.Duration, failure string, more ...attribute.KeyValue) {
	attrs := append([]attribute.KeyValue{attribute.String(keyOperation, operation), attribute.String(keyProvider, r.providerName())}, more...)
	r.meters.duration.Record(r.ctx, d.Seconds(), metric.WithAttributes(given(attrs, keyErrorType, failure)...))
}
