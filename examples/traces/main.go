// SPDX-License-Identifier: Apache-2.0

// Command traces has an agent describe a folder, and exports the spans and metrics of the run with OpenTelemetry: to a file
// of JSON lines with -o, else to the collector that the OTEL_EXPORTER_OTLP_ variables name.
//
//	traces -o run.jsonl ~/src/shop
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 traces ~/src/shop
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/telemetry"
)

var template = prompt.Must[prompt.Text]("traces", "purpose",
	prompt.Markdown("task", "Task", "Say in one sentence what the code in this folder is for."))

func main() {
	file := flag.String("o", "", "write spans and metrics to this file")
	flag.Parse()
	opts := &claude.Options{Dir: cmp.Or(flag.Arg(0), ".")}
	if err := run(context.Background(), os.Stdout, opts, *file); err != nil {
		log.Fatal(err)
	}
}

// run takes the options of the CLI; Dir is the folder.
func run(ctx context.Context, out io.Writer, opts *claude.Options, file string) (err error) {
	traces, metrics, closeProviders, err := providers(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeProviders()) }()
	p, err := template.Bind()
	if err != nil {
		return err
	}
	resp, err := drover.Evaluate(ctx, claudecode.New(opts), p, &drover.Options{
		Telemetry: &telemetry.Options{TracerProvider: traces, MeterProvider: metrics},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Text)
	return nil
}

// providers makes the SDK's providers. The function that it returns exports what is left, and must be called.
func providers(ctx context.Context, file string) (*sdktrace.TracerProvider, *sdkmetric.MeterProvider, func() error, error) {
	spans, numbers, closeFile, err := exporters(ctx, file)
	if err != nil {
		return nil, nil, nil, err
	}
	about := resource.NewSchemaless(attribute.String("service.name", "traces"))
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(about))
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(numbers)), sdkmetric.WithResource(about))
	return traces, metrics, func() error {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		return errors.Join(traces.Shutdown(ctx), metrics.Shutdown(ctx), closeFile())
	}, nil
}

func exporters(ctx context.Context, file string) (sdktrace.SpanExporter, sdkmetric.Exporter, func() error, error) {
	if file == "" { // these read the OTEL_EXPORTER_OTLP_ variables
		spans, err := otlptracehttp.New(ctx)
		numbers, err2 := otlpmetrichttp.New(ctx)
		return spans, numbers, func() error { return nil }, errors.Join(err, err2)
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, nil, nil, err
	}
	spans, err := stdouttrace.New(stdouttrace.WithWriter(f))
	numbers, err2 := stdoutmetric.New(stdoutmetric.WithWriter(f))
	return spans, numbers, f.Close, errors.Join(err, err2)
}
