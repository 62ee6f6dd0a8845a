// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/drover-agents/drover/gateway"
)

// messages is the operation of the gateway that asks a model.
const messages = "messages"

// A modelCall is one that has ended.
type modelCall struct {
	gateway.ModelCall
	ended time.Time
}

func (c modelCall) duration() time.Duration {
	return time.Duration(c.DurationMS * float64(time.Millisecond))
}

func (c modelCall) began() time.Time { return c.ended.Add(-c.duration()) }

// chatted makes the span of a model call. Those of a subagent wait until it is known who runs it.
func (r *Run) chatted(c modelCall) {
	if c.Operation != messages {
		return
	}
	r.provider = cmp.Or(c.Provider, r.provider)
	if c.Agent == gateway.MainAgent || c.Agent == "" {
		r.chat(r.turn, c)
		return
	}
	if a := r.agentOf(c.Agent); a != nil {
		r.chat(a.seenAt(c.ended), c)
		return
	}
	r.waiting = append(r.waiting, c)
}

func (r *Run) chat(within context.Context, c modelCall) {
	attrs := []attribute.KeyValue{
		attribute.String(keyOperation, opChat), attribute.String(keyProvider, r.providerName()),
		attribute.String(keyRequestModel, c.Model), attribute.String(keyResponseModel, c.Model),
		attribute.Int(keyHTTPStatus, c.Status), attribute.Int(keyAttempts, c.Attempts),
		attribute.Int64(keyInputTokens, c.Tokens.AllInput()), attribute.Int64(keyOutputTokens, c.Tokens.Output),
		attribute.Int64(keyCacheRead, c.Tokens.CacheRead), attribute.Int64(keyCacheCreation, c.Tokens.CacheWrite5m+c.Tokens.CacheWrite1h),
		attribute.Float64(keyCost, c.CostUSD),
	}
	if c.FirstByteMS > 0 {
		attrs = append(attrs, attribute.Float64(keyFirstByte, c.FirstByteMS/1e3))
	}
	if c.StopReason != "" {
		attrs = append(attrs, attribute.StringSlice(keyFinishReasons, []string{c.StopReason}))
	}
	_, span := r.tracer.Start(within, opChat+" "+c.Model, trace.WithTimestamp(c.began()), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	failure := chatFailure(c)
	if failure != "" {
		r.fail(span, failure, c.Error)
	}
	span.End(trace.WithTimestamp(c.ended))
	r.counted(c, failure)
}

// chatFailure is what kind of failure it was, or "". Neither the API's type of error nor what happened here
// is content, but the latter may be a sentence.
func chatFailure(c modelCall) string {
	switch {
	case c.Error == "" && c.Status == http.StatusOK:
		return ""
	case c.Status != http.StatusOK && c.Status != 0:
		return strconv.Itoa(c.Status)
	}
	return "incomplete"
}

func (r *Run) counted(c modelCall, failure string) {
	model := attribute.String(keyRequestModel, c.Model)
	r.took(opChat, c.duration(), failure, model)
	for kind, tokens := range map[string]int64{"input": c.Tokens.AllInput(), "output": c.Tokens.Output} {
		r.meters.tokens.Record(r.ctx, float64(tokens), metric.WithAttributes(attribute.String(keyOperation, opChat),
			attribute.String(keyProvider, r.providerName()), model, attribute.String(keyTokenType, kind)))
	}
}
