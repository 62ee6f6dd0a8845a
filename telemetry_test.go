// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/telemetry"
	"github.com/drover-agents/drover/tool"
)

// secret is in everything that the user, the model and the tools write in these tests.
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
			text += " " + a.Value.String()
		}
	}
	if s.Status.Code == codes.Error {
		text += " !" + s.Status.Description
	}
	return text
}

// busyRun is a run with own and native tools, one of them denied, and a subagent.
func busyRun(ctx context.Context, t *testing.T, cli *claudetest.RealCLI, opts *drover.Options) (*drover.Response[review], error) {
	count := tool.Must("count", "Counts letters.", func(_ context.Context, in countInput) (string, error) { return secret + in.Text, nil })
	p, err := prompt.NewPrompt[review]("demo", "review", prompt.Markdown("task", "Task", "Review it. "+secret).With(count))
	if err != nil {
		t.Fatal(err)
	}
	main := script.Not(script.IsSubagent())
	model := claudetest.NewModel(t,
		script.Call("mcp__drover__count", script.Input{"text": secret}).When(main),
		script.Call("Bash", script.Input{"command": "echo " + secret + " $TRACEPARENT", "description": "Say"}).When(main),
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
	opts.Model = "claude-sonnet-4-5"
	return drover.Evaluate(ctx, claudecode.New(base), p, opts)
}

const busyTree = `invoke_agent demo:review anthropic json 70
  turn
    chat claude-sonnet-4-5 anthropic 10 ["tool_use"]
    execute_tool mcp__drover__count bridged success
    chat claude-sonnet-4-5 anthropic 10 ["tool_use"]
    execute_tool Bash native success
    chat claude-sonnet-4-5 anthropic 10 ["tool_use"]
    execute_tool Read native denied !denied
    chat claude-sonnet-4-5 anthropic 10 ["tool_use"]
    execute_tool Agent native success
      invoke_agent general-purpose anthropic
        chat claude-sonnet-4-5 anthropic 10 ["tool_use"]
        execute_tool Bash native error !error
        chat claude-sonnet-4-5 anthropic 10 ["end_turn"]
    chat claude-sonnet-4-5 anthropic 10 ["tool_use"]
    execute_tool StructuredOutput native success
`

// One run shows it all, since each start of the CLI takes its time.
func TestTelemetry_TraceOfARun(t *testing.T) {
	for name, find := range map[string]func(testing.TB) *claudetest.RealCLI{"newest": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t)
			ctx, caller := r.traces.Tracer("test").Start(t.Context(), "caller")
			resp, err := busyRun(ctx, t, find(t), &drover.Options{Telemetry: r.options()})
			caller.End()
			if err != nil {
				t.Fatal(err)
			}
			got := r.tree("gen_ai.provider.name", "drover.tool.source", "drover.tool.status", "gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons", "gen_ai.output.type")
			want := "caller\n  " + strings.TrimSuffix(strings.ReplaceAll(busyTree, "\n", "\n  "), "  ")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the tree (-want +got):\n%s", diff)
			}
			r.checkContent(t)
			r.checkTimes(t)
			r.checkNames(t, resp)
			r.checkMetrics(t)
		})
	}
}

// checkContent looks for the text of messages in everything that leaves the program.
func (r *recorder) checkContent(t *testing.T) {
	t.Helper()
	if all := fmt.Sprintf("%+v %+v", r.spans.GetSpans(), r.collect(t)); strings.Contains(all, secret) {
		at := strings.Index(all, secret)
		t.Errorf("content is in the spans or metrics: %s", all[max(0, at-200):at+20])
	}
}

// checkTimes sees that no span lasts longer than what it is part of, and that calls follow each other.
func (r *recorder) checkTimes(t *testing.T) {
	t.Helper()
	spans := map[string]tracetest.SpanStub{}
	for _, s := range r.spans.GetSpans() {
		spans[s.SpanContext.SpanID().String()] = s
	}
	for _, s := range spans {
		if s.EndTime.Before(s.StartTime) {
			t.Errorf("%s ends before it begins", s.Name)
		}
		if p, ok := spans[s.Parent.SpanID().String()]; ok && (s.StartTime.Before(p.StartTime) || s.EndTime.After(p.EndTime)) {
			t.Errorf("%s is not within %s", s.Name, p.Name)
		}
	}
}

// checkNames sees that spans can be found by what the response says.
func (r *recorder) checkNames(t *testing.T, resp *drover.Response[review]) {
	t.Helper()
	for _, s := range r.spans.GetSpans() {
		if s.Name != "invoke_agent demo:review" {
			continue
		}
		if header := "00-" + s.SpanContext.TraceID().String() + "-" + s.SpanContext.SpanID().String() + "-01"; !saw(resp, header) {
			t.Errorf("a command of the agent did not find TRACEPARENT=%s", header)
		}
		set := attribute.NewSet(s.Attributes...)
		for key, want := range map[string]string{"drover.run.id": resp.RunID, "gen_ai.conversation.id": resp.SessionID, "gen_ai.operation.name": "invoke_agent"} {
			if got, _ := set.Value(attribute.Key(key)); got.String() != want {
				t.Errorf("%s is %q, want %q", key, got.String(), want)
			}
		}
	}
}

// saw reports whether a tool has returned a text.
func saw(resp *drover.Response[review], text string) bool {
	for e := range resp.Session.Events() {
		if result, ok := e.Payload.(event.ToolResult); ok && strings.Contains(string(result.Output), text) {
			return true
		}
	}
	return false
}

func (r *recorder) collect(t *testing.T) metricdata.ResourceMetrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func (r *recorder) checkMetrics(t *testing.T) {
	t.Helper()
	got := map[string]int{}
	for _, scope := range r.collect(t).ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					got[m.Name+labels(p.Attributes, "gen_ai.operation.name", "gen_ai.token.type")] += int(p.Count)
					if m.Name == "gen_ai.client.token.usage" {
						got["tokens"] += int(p.Sum)
					}
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					got[m.Name+labels(p.Attributes, "gen_ai.tool.name", "drover.tool.status")] = int(p.Value)
				}
			}
		}
	}
	want := map[string]int{
		"gen_ai.client.operation.duration chat": 7, "gen_ai.client.operation.duration execute_tool": 6, "gen_ai.client.operation.duration invoke_agent": 1,
		"gen_ai.client.token.usage chat input": 7, "gen_ai.client.token.usage chat output": 7, "tokens": 140,
		"drover.tool.calls mcp__drover__count success": 1, "drover.tool.calls Bash success": 1, "drover.tool.calls Bash error": 1,
		"drover.tool.calls Read denied": 1, "drover.tool.calls Agent success": 1, "drover.tool.calls StructuredOutput success": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the metrics (-want +got):\n%s", diff)
	}
}

func labels(set attribute.Set, keys ...attribute.Key) (text string) {
	for _, key := range keys {
		if v, ok := set.Value(key); ok {
			text += " " + v.String()
		}
	}
	return text
}

// A scripted agent shows what it was asked for, and answers nothing.
type tracedAgent struct{ asked agent.Request }

func (*tracedAgent) Agent() string { return "traced" }

func (*tracedAgent) Catalogue() *tool.Catalogue { return nil }

func (*tracedAgent) Ready(context.Context) agent.Readiness { return agent.Readiness{} }

func (a *tracedAgent) Run(_ context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	a.asked = req
	return func(yield func(event.Event, error) bool) {
		init := event.New(event.Init{Model: "m", Tools: []string{}})
		init.SessionID = "conversation-1"
		if yield(init, nil) {
			yield(event.New(event.Done{Status: event.DoneError, Result: "broken, " + secret}), nil)
		}
	}
}

func TestTelemetry_TraceContinuesInTheAgent(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	known := guard.RunContext{TraceID: trace, SpanID: span}
	cases := []struct {
		name       string
		run        guard.RunContext
		caller, on bool
	}{
		{"nothing is known", guard.RunContext{}, false, false},
		{"a run context alone is passed on", known, false, false},
		{"a span of the caller is passed on", guard.RunContext{}, true, false},
		{"the span of the run", guard.RunContext{}, false, true},
		{"below the span of a run context", known, false, true},
		{"below the span of the caller", known, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, a, ctx := newRecorder(t), &tracedAgent{}, t.Context()
			opts, wantTrace, wantSpan := &drover.Options{RunContext: c.run}, c.run.TraceID, c.run.SpanID
			if c.caller {
				var s oteltrace.Span
				ctx, s = r.traces.Tracer("test").Start(ctx, "caller")
				wantTrace, wantSpan = s.SpanContext().TraceID().String(), s.SpanContext().SpanID().String()
			}
			if c.on {
				opts.Telemetry = r.options()
			}
			_, _ = drover.Evaluate(ctx, a, simplePrompt(t), opts)
			if spans := r.spans.GetSpans(); c.on {
				run := spans[len(spans)-1]
				if p := run.Parent; wantSpan != "" && (p.SpanID().String() != wantSpan || p.TraceID().String() != wantTrace) {
					t.Errorf("the parent of the run is %v, want %s", p, wantSpan)
				}
				wantTrace, wantSpan = run.SpanContext.TraceID().String(), run.SpanContext.SpanID().String()
			}
			want := ""
			if wantSpan != "" {
				want = "00-" + wantTrace + "-" + wantSpan + "-01"
			}
			if got := a.asked.TraceParent; got != want {
				t.Errorf("the agent got %q, want %q", got, want)
			}
		})
	}
}

func simplePrompt(t *testing.T) *prompt.Prompt[review] {
	t.Helper()
	p, err := prompt.NewPrompt[review]("demo", "review", prompt.Markdown("task", "Task", "Review it. "+secret))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTelemetry_FailedRunHasAFailedSpan(t *testing.T) {
	for name, c := range map[string]struct {
		content bool
		want    string
	}{
		"without content": {false, "invoke_agent demo:review !execution\n  turn !error\n"},
		"with content":    {true, "invoke_agent demo:review !drover: demo:review: run: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t)
			o := r.options()
			o.Content = c.content
			_, err := drover.Evaluate(t.Context(), &tracedAgent{}, simplePrompt(t), &drover.Options{Telemetry: o})
			if got := r.tree(); err == nil || !strings.HasPrefix(got, c.want) {
				t.Errorf("%v; got %q, want %q", err, got, c.want)
			}
			if all := fmt.Sprintf("%+v", r.spans.GetSpans()); strings.Contains(all, secret) != c.content {
				t.Errorf("content is there: %v, want %v", !c.content, c.content)
			}
		})
	}
}

func TestTelemetry_RunThatCannotBeginHasASpan(t *testing.T) {
	r := newRecorder(t)
	_, err := drover.Evaluate(t.Context(), &tracedAgent{}, simplePrompt(t), &drover.Options{Telemetry: r.options(), Deadline: guard.At(time.Now().Add(-time.Second))})
	if got, want := r.tree("drover.stage"), "invoke_agent demo:review prepare !deadline_exceeded\n"; got != want {
		t.Errorf("%v; got %q, want %q", err, got, want)
	}
}
