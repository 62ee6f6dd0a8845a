// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/drover-agents/drover/event"
)

// scope names what makes the spans and metrics.
const scope = "github.com/drover-agents/drover"

// Options set where spans and metrics go. The zero value makes none.
type Options struct {
	// TracerProvider makes the spans. Nil makes none.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics. Nil makes none.
	MeterProvider metric.MeterProvider
	// Content also puts the texts of the user, the model, the tools and errors into the spans.
	// The zero value does not: that may be secret, and is long.
	Content bool
}

// A Start is what is known when a run begins.
type Start struct {
	// Agent is the agent's name, and Prompt that of what it is to do.
	Agent, Prompt string
	RunID         string
	// Model is the one that is asked for. Empty means the agent's default.
	Model string
	// ToolSource returns who runs a tool: the program or the agent. Nil means unknown.
	ToolSource func(name string) string
	// Subagent returns the kind of subagent that a call asks for, or "". Nil means unknown.
	Subagent func(call event.ToolCall) string
}

// An End is what became of a run.
type End struct {
	// Status is how the last turn ended.
	Status    event.DoneStatus
	SessionID string
	Usage     event.Usage
	Turns     int
	// Structured is true if a typed answer was asked for.
	Structured bool
	// Err is why the run failed, or nil; ErrorType is what kind of failure that is, in a word, and Stage how far it came.
	Err              error
	ErrorType, Stage string
}

// Begin makes the span of a run, as a child of the one in ctx. The context that it returns has it. Run.End
// must be called. Of nil options the run is nil, which is ready to use and does nothing.
func (o *Options) Begin(ctx context.Context, s Start) (context.Context, *Run, error) {
	if o == nil {
		return ctx, nil, nil
	}
	meters, err := newMeters(o.MeterProvider)
	if err != nil {
		return ctx, nil, err
	}
	r := &Run{content: o.Content, tracer: o.tracer(), meters: meters, start: s, calls: map[event.CallID]*toolSpan{}, agents: map[event.CallID]*agentSpan{}}
	return r.begin(ctx), r, nil
}

func (o *Options) tracer() trace.Tracer {
	if o.TracerProvider == nil {
		return tracenoop.NewTracerProvider().Tracer(scope)
	}
	return o.TracerProvider.Tracer(scope)
}

type meters struct {
	tokens, duration metric.Float64Histogram
	tools            metric.Int64Counter
}

func newMeters(p metric.MeterProvider) (*meters, error) {
	if p == nil {
		p = metricnoop.NewMeterProvider()
	}
	meter := p.Meter(scope)
	var m meters
	var errs [3]error
	m.tokens, errs[0] = meter.Float64Histogram(metricTokens, metric.WithUnit("{token}"),
		metric.WithDescription("Tokens of each call of a model."), metric.WithExplicitBucketBoundaries(tokenBuckets...))
	m.duration, errs[1] = meter.Float64Histogram(metricDuration, metric.WithUnit("s"),
		metric.WithDescription("How long calls of models and tools, and whole runs, take."), metric.WithExplicitBucketBoundaries(durationBuckets...))
	m.tools, errs[2] = meter.Int64Counter(metricToolCalls, metric.WithUnit("{call}"),
		metric.WithDescription("Calls of tools, by how they ended."))
	return &m, errors.Join(errs[:]...)
}
