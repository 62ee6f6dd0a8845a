// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/telemetry"
)

// exportTime bounds how long the end of a run waits until spans and metrics are exported.
const exportTime = 5 * time.Second

// The exporters that OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER can name.
const (
	exportNone    = "none"
	exportOTLP    = "otlp"
	exportConsole = "console"
)

// An export sends the spans and metrics of a run where the OTEL_ variables of the environment say. The exporters read
// the variables themselves. A nil one sends nothing. A failure is reported at the end, and is never the run's.
type export struct {
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	limit   time.Duration // exportTime but for tests

	mu       sync.Mutex
	console  bytes.Buffer
	problems []error // each once
}

// openExport returns the export of a run, or nil if the variables ask for none.
func openExport(ctx context.Context) *export {
	x := &export{limit: exportTime}
	if x.disabled() {
		return x.unlessIdle()
	}
	spans, numbers := x.chosen("TRACES"), x.chosen("METRICS")
	if spans == exportNone && numbers == exportNone {
		return x.unlessIdle()
	}
	otel.SetErrorHandler(x) // of the SDK, which reports failed exports there alone
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "drover"), attribute.String("service.version", claude.Version)), resource.WithFromEnv())
	x.Handle(err)
	x.openTraces(ctx, spans, about)
	x.openMetrics(ctx, numbers, about)
	return x
}

// unlessIdle is x if it has something to report.
func (x *export) unlessIdle() *export {
	if len(x.problems) == 0 {
		return nil
	}
	return x
}

func (x *export) disabled() bool {
	switch value := os.Getenv("OTEL_SDK_DISABLED"); strings.ToLower(value) {
	case "", "false":
		return false
	case "true":
		return true
	default:
		x.Handle(advice.Wrap(fmt.Errorf("OTEL_SDK_DISABLED=%s counts as false", value), "set it to true or to false"))
		return false
	}
}

// chosen returns the exporter of a signal. Without a name in the environment, an endpoint is what asks for one.
func (x *export) chosen(signal string) string {
	name := "OTEL_" + signal + "_EXPORTER"
	kind := strings.ToLower(os.Getenv(name))
	endpointName, endpoint := firstSet("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if kind == "" {
		kind = exportNone
		if endpoint != "" {
			kind = exportOTLP
		}
	}
	switch kind {
	case exportNone, exportConsole:
		return kind
	case exportOTLP:
	default:
		x.Handle(advice.Wrap(fmt.Errorf("%s=%s is not supported", name, os.Getenv(name)), "set it to %s, %s or %s", exportOTLP, exportConsole, exportNone))
		return exportNone
	}
	if protocolName, protocol := firstSet("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		x.Handle(advice.Wrap(fmt.Errorf("%s=%s is not supported", protocolName, protocol), "set it to http/protobuf, which collectors take on port 4318"))
		return exportNone
	}
	if to, err := url.Parse(endpoint); endpoint != "" && (err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "") {
		x.Handle(advice.Wrap(fmt.Errorf("%s is not an address with http:// or https://", endpointName), "set it to one such as http://localhost:4318"))
		return exportNone
	}
	return exportOTLP
}

// firstSet returns the first variable that is set, and its value.
func firstSet(names ...string) (name, value string) {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

func (x *export) openTraces(ctx context.Context, kind string, about *resource.Resource) {
	var to sdktrace.SpanExporter
	var err error
	switch kind {
	case exportOTLP:
		to, err = otlptracehttp.New(ctx)
	case exportConsole:
		to, err = stdouttrace.New(stdouttrace.WithWriter((*consoleWriter)(x)))
	}
	x.Handle(err)
	if to != nil && err == nil {
		x.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(to), sdktrace.WithResource(about))
	}
}

func (x *export) openMetrics(ctx context.Context, kind string, about *resource.Resource) {
	var to sdkmetric.Exporter
	var err error
	switch kind {
	case exportOTLP:
		to, err = otlpmetrichttp.New(ctx)
	case exportConsole:
		to, err = stdoutmetric.New(stdoutmetric.WithWriter((*consoleWriter)(x)))
	}
	x.Handle(err)
	if to != nil && err == nil {
		x.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(to)), sdkmetric.WithResource(about))
	}
}

// options are those of an evaluation. Content is in no span.
func (x *export) options() *telemetry.Options {
	if x == nil || x.traces == nil && x.metrics == nil {
		return nil
	}
	o := &telemetry.Options{}
	if x.traces != nil { // a nil pointer in the interface would be a provider
		o.TracerProvider = x.traces
	}
	if x.metrics != nil {
		o.MeterProvider = x.metrics
	}
	return o
}

// Handle notes an error. It implements [otel.ErrorHandler].
func (x *export) Handle(err error) {
	if err == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, known := range x.problems {
		if known.Error() == err.Error() {
			return
		}
	}
	x.problems = append(x.problems, err)
}

// A consoleWriter keeps what the console exporters write until the end, since a live view has the terminal before.
type consoleWriter export

func (w *consoleWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.console.Write(p)
}

// close exports what is left within the limit, and reports what failed. It ends at once if the user kills the run.
func (x *export) close(ctx context.Context, errs io.Writer) {
	if x == nil {
		return
	}
	limited, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), x.limit, fmt.Errorf("the export did not finish within %s", x.limit))
	defer stop()
	exported := make(chan struct{})
	go func() {
		defer close(exported)
		x.shutdown(limited)
	}()
	select {
	case <-exported:
	case <-limited.Done():
		x.Handle(context.Cause(limited))
	case <-killed(ctx):
	}
	x.report(errs)
}

// shutdown ends both providers at the same time.
func (x *export) shutdown(ctx context.Context) {
	var ending sync.WaitGroup
	for _, end := range x.ends() {
		ending.Go(func() {
			if err := end(ctx); !errors.Is(err, context.DeadlineExceeded) { // that one is reported for both
				x.Handle(err)
			}
		})
	}
	ending.Wait()
}

func (x *export) ends() (ends []func(context.Context) error) {
	if x.traces != nil {
		ends = append(ends, x.traces.Shutdown)
	}
	if x.metrics != nil {
		ends = append(ends, x.metrics.Shutdown)
	}
	return ends
}

// report writes what the console exporters have, and what failed, to standard error.
func (x *export) report(errs io.Writer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, _ = x.console.WriteTo(errs) // there is no other place to report that
	secrets := safetext.NewRedactor(headerValues()...)
	for _, problem := range x.problems {
		next := cmp.Or(advice.Of(problem), "check the OTEL_EXPORTER_OTLP_ variables and the collector; the run itself is not affected")
		report(errs, advice.Wrap(fmt.Errorf("OpenTelemetry: %s", secrets.String(problem.Error())), "%s", next))
	}
}

// headerValues are the values in the variables with headers, which are credentials most often.
func headerValues() (values []string) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"} {
		for header := range strings.SplitSeq(os.Getenv(name), ",") {
			_, value, _ := strings.Cut(header, "=")
			if plain, err := url.PathUnescape(strings.TrimSpace(value)); err == nil && plain != "" {
				values = append(values, plain)
			}
		}
	}
	return values
}
