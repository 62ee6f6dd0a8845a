// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/telemetry"
	"github.com/drover-agents/drover/tool"
)

// secret is in everything that the user, the model and the tools say in these tests.
const secret = "XYZZY"

// A recorder keeps spans and metrics in memory.
type recorder struct {
	spans   *tracetest.InMemoryExporter
	traces  *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
	metrics *sdkmetric.MeterProvider
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	r.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))
	r.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	t.Cleanup(func() { _ = r.traces.Shutdown(context.Background()) })
	return r
}

func (r *recorder) options() *telemetry.Options {
	return &telemetry.Options{TracerProvider: r.traces, MeterProvider: r.metrics}
}

// tree is the spans as a text: each below its parent, in the order of their begin, with these attributes.
func (r *recorder) tree(keys ...string) string {
	spans := r.spans.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	known := map[string]bool{}
	for _, s := range spans {
		known[s.SpanContext.SpanID().String()] = true
	}
	var out strings.Builder
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, s := range spans {
			of := s.Parent.SpanID().String()
			if !known[of] {
				of = ""
			}
			if of == parent {
				fmt.Fprintf(&out, "%s%s%s\n", indent, s.Name, shown(s, keys))
				write(s.SpanContext.SpanID().String(), indent+"  ")
			}
		}
	}
	write("", "")
	return out.String()
}

// shown are the attributes of a span that a test looks at.
func shown(s tracetest.SpanStub, keys []string) string {
	text := ""
	for _, a := range s.Attributes {
		if slices.Contains(keys, string(a.Key)) {
			text += " " + a.Value.Emit()
		}
	}
	if s.Status.Code == codes.Error {
		text += " !" + s.Status.Description
	}
	return text
}

// busyRun is a run with own and native tools, one of them denied, and a subagent.
func busyRun(t *testing.T, cli *claudetest.RealCLI, opts *drover.Options) (*drover.Response[review], error) {
	count := tool.Must("count", "Counts letters.", func(_ context.Context, in countInput) (string, error) { return secret + in.Text, nil })
	p, err := prompt.NewPrompt[review]("demo", "review", prompt.Markdown("task", "Task", "Review it. "+secret).With(count))
	if err != nil {
		t.Fatal(err)
	}
	main := script.Not(script.IsSubagent())
	model := claudetest.NewModel(t,
		script.Call("mcp__wink__count", script.Input{"text": secret}).When(main),
		script.Call("Bash", script.Input{"command": "echo " + secret, "description": "Say"}).When(main),
		script.Call("Read", script.Input{"file_path": "/etc/" + secret}).When(main),
		script.Call("Agent", script.Input{"subagent_type": "general-purpose", "description": "dig", "prompt": "dig " + secret, "run_in_background": false}).When(main),
		script.Call("Bash", script.Input{"command": "echo " + secret + "; exit 3", "description": "Dig"}).When(script.IsSubagent()),
		script.Text("Dug. "+secret).When(script.IsSubagent()),
		script.Structured(script.Input{"summary": secret, "issues": []string{}}).When(main),
	).RequireAllUsed()
	base := cli.Options(model)
	base.PermissionMode, base.AllowBypass = claude.ModeBypassPermissions, true
	base.Hooks = []claude.Hook{claude.On("Read", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		return claude.DenyTool("not this file, " + secret), nil
	})}
	return drover.Evaluate(t.Context(), claudecode.New(base), p, opts)
}

func TestTheSpansOfARunAreATree(t *testing.T) {
	r := newRecorder(t)
	resp, err := busyRun(t, claudetest.CLI(t), &drover.Options{Telemetry: r.options()})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp
	t.Log("\n" + r.tree())
	got := r.tree("drover.tool.source", "drover.tool.status", "gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons")
	t.Log("\n" + got)
	for _, s := range r.spans.GetSpans() {
		t.Log(s.Name, s.StartTime.Format("05.000"), s.EndTime.Format("05.000"), s.Attributes)
	}
	_ = gocmp.Diff
	_ = cmp.Or[int]
	_ = attribute.String
	_ = metricdata.Sum[int64]{}
}
