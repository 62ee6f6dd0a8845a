// SPDX-License-Identifier: Apache-2.0

// Command traces asks a question and writes the spans of the run into traces.json.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/telemetry"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(advice.Text(err))
	}
}

func run(ctx context.Context) (err error) {
	file, err := os.Create("traces.json")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(file))
	if err != nil {
		return err
	}
	spans := trace.NewTracerProvider(trace.WithBatcher(exporter))
	defer func() { err = errors.Join(err, spans.Shutdown(ctx)) }()
	answer, err := drover.Ask[string](ctx, claudecode.New(nil), "What does this project do?", &drover.Options{
		Telemetry: &telemetry.Options{TracerProvider: spans},
	})
	if err != nil {
		return err
	}
	fmt.Println(answer.Output)
	return nil
}
