// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/telemetry"
)

// A collector is an OTLP collector on loopback that keeps what it gets.
type collector struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	requests int
	headers  []string // of Authorization, each once
	resource map[string]string
	spans    []string // their names, with the provider
	metrics  []string // their names
}

func newCollector(t testing.TB) *collector {
	c := &collector{t: t, resource: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		var got collectortrace.ExportTraceServiceRequest
		c.take(r, &got)
		for _, of := range got.ResourceSpans {
			c.describe(of.Resource.Attributes)
			for _, scope := range of.ScopeSpans {
				for _, span := range scope.Spans {
					c.spans = append(c.spans, strings.TrimSpace(span.Name+" "+attributes(span.Attributes)["gen_ai.provider.name"]))
				}
			}
		}
		c.mu.Unlock()
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		var got collectormetrics.ExportMetricsServiceRequest
		c.take(r, &got)
		for _, of := range got.ResourceMetrics {
			c.describe(of.Resource.Attributes)
			for _, scope := range of.ScopeMetrics {
				for _, m := range scope.Metrics {
					c.metrics = append(c.metrics, m.Name)
				}
			}
		}
		c.mu.Unlock()
	})
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

// take reads a request into a message, and locks the collector.
func (c *collector) take(r *http.Request, into proto.Message) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	if err := proto.Unmarshal(body, into); err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("%s got what is no protobuf: %v", r.URL.Path, err)
	}
	c.requests++
	if h := r.Header.Get("Authorization"); !slices.Contains(c.headers, h) {
		c.headers = append(c.headers, h)
	}
}

func (c *collector) describe(resource []*common.KeyValue) {
	for key, value := range attributes(resource) {
		c.resource[key] = value
	}
}

func attributes(list []*common.KeyValue) map[string]string {
	values := map[string]string{}
	for _, a := range list {
		values[a.Key] = a.Value.GetStringValue()
	}
	return values
}

// seen are the sorted names of spans and metrics.
func (c *collector) seen() (spans, metrics []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.spans)), slices.Sorted(slices.Values(c.metrics))
}

// One run shows it all, since each start of the CLI takes its time.
func TestTelemetry_RunIsExportedAndTheCellHasNoVariableOfIt(t *testing.T) {
	c := newCollector(t)
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; env", "description": "look"}),
		script.Text("It is a shop."),
	).RequireAllUsed()
	p := newProgram(t, model.URL()).setEnv(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20opens-the-collector",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_SERVICE_NAME": "reviews", "OTEL_RESOURCE_ATTRIBUTES": "team=shop,service.name=other",
	})
	if got := p.run("run", "--quiet", "--allow", "shellExecute", "What is it?"); got.code != 0 || got.out != "It is a shop.\n" || got.errors != "" {
		t.Errorf("got %+v, want the answer and nothing else", got)
	}
	spans, metrics := c.seen()
	wantSpans := []string{"chat claude-opus-5-5 anthropic", "chat claude-opus-5-5 anthropic", "execute_tool Bash", "invoke_agent drover:run anthropic", "turn"}
	if diff := cmp.Diff(wantSpans, spans); diff != "" {
		t.Errorf("the spans (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"drover.tool.calls", "gen_ai.client.operation.duration", "gen_ai.client.token.usage"}, metrics); diff != "" {
		t.Errorf("the metrics (-want +got):\n%s", diff)
	}
	if c.resource["service.name"] != "reviews" || c.resource["team"] != "shop" || c.resource["telemetry.sdk.language"] != "go" {
		t.Errorf("the resource is %v", c.resource)
	}
	if want := []string{"Bearer opens-the-collector"}; !slices.Equal(c.headers, want) {
		t.Errorf("the collector got the headers %q, want %q", c.headers, want)
	}
	environ, _, _ := model.ToolResult("Bash")
	if !strings.Contains(environ, "ANTHROPIC_BASE_URL=") {
		t.Fatalf("the tool has not seen the environment of the CLI:\n%s", environ)
	}
	for line := range strings.Lines(environ) {
		if strings.HasPrefix(line, "OTEL_") || strings.Contains(line, "opens-the-collector") {
			t.Errorf("in the cell is %s", line)
		}
	}
}

func TestTelemetry_FailingCollectorChangesNeitherAnswerNorExitCode(t *testing.T) {
	c := newCollector(t)
	model := claudetest.NewModel(t, script.Text("It is a shop."))
	c.Close() // nothing listens there now, and the model has another port
	p := newProgram(t, model.URL()).setEnv(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL})
	got := p.run("run", "--quiet", "What is it?")
	if got.code != 0 || got.out != "It is a shop.\n" {
		t.Errorf("got %+v, want the answer", got)
	}
	for _, want := range []string{"drover: OpenTelemetry: ", c.URL + "/v1/traces", c.URL + "/v1/metrics", "connection refused", "  next: check the OTEL_EXPORTER_OTLP_ variables"} {
		if !strings.Contains(got.errors, want) {
			t.Errorf("standard error has no %q:\n%s", want, got.errors)
		}
	}
}

// setOTEL sets these variables and no others of OpenTelemetry.
func setOTEL(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}

// oneTurn makes the spans and metrics of a run with one turn.
func oneTurn(t *testing.T, o *telemetry.Options) {
	t.Helper()
	_, run, err := o.Begin(t.Context(), telemetry.Start{Agent: "a", Prompt: "p"})
	if err != nil {
		t.Fatal(err)
	}
	run.Turn("hello")
	run.End(telemetry.End{Status: event.DoneSuccess})
}

func TestOpenExport_WithoutVariablesDoesNothing(t *testing.T) {
	for name, vars := range map[string]map[string]string{
		"nothing":             nil,
		"a name of a service": {"OTEL_SERVICE_NAME": "x", "OTEL_RESOURCE_ATTRIBUTES": "a=b", "OTEL_EXPORTER_OTLP_HEADERS": "a=b", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		"disabled":            {"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "console"},
		"no exporter":         {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			setOTEL(t, vars)
			before := goleak.IgnoreCurrent()
			x := openExport(t.Context())
			if x != nil || x.options() != nil {
				t.Errorf("got %+v, want nothing", x)
			}
			goleak.VerifyNone(t, before)
			x.close(t.Context(), io.Discard)
		})
	}
}

// Each case makes one turn with these variables. ENDPOINT stands for the address of the collector.
func TestOpenExport_VariablesDecide(t *testing.T) {
	const traces, metrics = "traces", "metrics"
	cases := map[string]struct {
		vars   map[string]string
		sent   []string
		errors []string // on standard error; empty means nothing at all
	}{
		"an endpoint":                      {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT"}, []string{traces, metrics}, nil},
		"an endpoint for traces":           {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "ENDPOINT/v1/traces"}, []string{traces}, nil},
		"metrics alone":                    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT", "OTEL_TRACES_EXPORTER": "none"}, []string{metrics}, nil},
		"traces on the console":            {map[string]string{"OTEL_TRACES_EXPORTER": "console"}, nil, []string{`"Name":"invoke_agent p"`, `"service.name"`}},
		"metrics on the console":           {map[string]string{"OTEL_METRICS_EXPORTER": "console"}, nil, []string{`"gen_ai.client.operation.duration"`}},
		"grpc":                             {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, nil, []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported\n  next: set it to http/protobuf"}},
		"grpc for traces":                  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, []string{metrics}, []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc is not supported"}},
		"an exporter that there is not":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT", "OTEL_METRICS_EXPORTER": "prometheus"}, []string{traces}, []string{"OTEL_METRICS_EXPORTER=prometheus is not supported\n  next: set it to otlp, console or none"}},
		"an endpoint without a scheme":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, nil, []string{"OTEL_EXPORTER_OTLP_ENDPOINT is not an address with http:// or https://"}},
		"a switch that is neither on, off": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT", "OTEL_SDK_DISABLED": "yes"}, []string{traces, metrics}, []string{"OTEL_SDK_DISABLED=yes counts as false"}},
		"attributes that are not in order": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ENDPOINT", "OTEL_RESOURCE_ATTRIBUTES": "team"}, []string{traces, metrics}, []string{"OpenTelemetry: ", "team"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			collector := newCollector(t)
			vars := map[string]string{}
			for name, value := range c.vars {
				vars[name] = strings.ReplaceAll(value, "ENDPOINT", collector.URL)
			}
			setOTEL(t, vars)
			x := openExport(t.Context())
			oneTurn(t, x.options())
			var errs bytes.Buffer
			x.close(t.Context(), &errs)
			var sent []string
			spans, numbers := collector.seen()
			if len(spans) > 0 {
				sent = append(sent, traces)
			}
			if len(numbers) > 0 {
				sent = append(sent, metrics)
			}
			if !slices.Equal(sent, c.sent) {
				t.Errorf("the collector got %v, want %v", sent, c.sent)
			}
			for _, want := range c.errors {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("standard error has no %q:\n%s", want, errs.String())
				}
			}
			if len(c.errors) == 0 && errs.Len() > 0 {
				t.Errorf("standard error has %s", errs.String())
			}
		})
	}
}

// The end of a run does not wait for a collector that does not answer, and an answer with the header's value is masked.
func TestClose_ExportIsBoundedAndKeepsTheHeadersSecret(t *testing.T) {
	gone := make(chan struct{})
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"it hangs": {func(_ http.ResponseWriter, r *http.Request) { <-gone }, "did not finish within 50ms"},
		"it refuses": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no such key: "+r.Header.Get("Api-Key"), http.StatusForbidden)
		}, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			if name == "it hangs" {
				defer close(gone)
			}
			setOTEL(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=opens%20the%20collector"})
			x := openExport(t.Context())
			if name == "it hangs" {
				x.limit = 50 * time.Millisecond
			}
			oneTurn(t, x.options())
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // the run was stopped; what is left is exported all the same
			var errs bytes.Buffer
			began := time.Now()
			x.close(ctx, &errs)
			if took := time.Since(began); took > exportTime {
				t.Errorf("it took %s", took)
			}
			if got := errs.String(); !strings.Contains(got, c.want) || strings.Contains(got, "opens the collector") {
				t.Errorf("standard error has %q, want %q and no key", got, c.want)
			}
		})
	}
}
