// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/telemetry"
)

// The options belong into those of an evaluation, which then makes the calls that are made here by hand.
func ExampleOptions() {
	kept := tracetest.NewInMemoryExporter() // or the exporter of your collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	options := &telemetry.Options{TracerProvider: provider}

	_, run, err := options.Begin(context.Background(), telemetry.Start{Agent: "claude-code", Prompt: "review"})
	if err != nil {
		fmt.Println(err)
		return
	}
	run.Turn("Review it.")
	run.Event(event.New(event.ToolCall{ID: "1", Name: "Read"}))
	run.Event(event.New(event.ToolResult{ID: "1", Status: event.ToolSuccess}))
	run.TurnEnd(event.Done{Status: event.DoneSuccess}, nil)
	run.End(telemetry.End{Status: event.DoneSuccess, Turns: 1})

	for _, span := range kept.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// execute_tool Read
	// turn
	// invoke_agent review
}
