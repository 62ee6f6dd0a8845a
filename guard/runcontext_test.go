// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/tool"
)

// counter makes the ids id-1, id-2, ...
func counter() func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("id-%d", n) }
}

func TestRunContext_NextAttemptIsANewRunOfTheSameRequest(t *testing.T) {
	ids := counter()
	first := guard.NewRunContext(ids)
	if want := (guard.RunContext{RunID: "id-1", RequestID: "id-2", Attempt: 1}); first != want {
		t.Errorf("first: got %+v, want %+v", first, want)
	}
	first.SessionID, first.WorkerID, first.TraceID, first.SpanID = "s", "w", "t", "p"
	want := first
	want.RunID, want.Attempt = "id-3", 2
	if got := first.Next(ids); got != want {
		t.Errorf("next: got %+v, want %+v", got, want)
	}
	if got := (guard.RunContext{}).Next(ids).Attempt; got != 2 {
		t.Errorf("the attempt after one that was not counted is %d, want 2", got)
	}
}

func TestRunContext_DefaultIDsAreUUIDs(t *testing.T) {
	r := guard.NewRunContext(nil)
	n := r.Next(nil)
	if !ident.ValidUUID(r.RunID) || !ident.ValidUUID(r.RequestID) || !ident.ValidUUID(n.RunID) || r.RunID == r.RequestID || r.RunID == n.RunID {
		t.Errorf("%+v and then %+v, want fresh UUIDs", r, n)
	}
}

func TestRunContext_Traceparent(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	known := guard.RunContext{TraceID: trace, SpanID: span}
	unsampled := known
	unsampled.Unsampled = true
	cases := []struct {
		name, header string
		want         guard.RunContext // empty if it is refused
	}{
		{"sampled", "00-" + trace + "-" + span + "-01", known},
		{"not sampled", "00-" + trace + "-" + span + "-00", unsampled},
		{"other flags", "00-" + trace + "-" + span + "-0a", unsampled},
		{"other flags, sampled", "00-" + trace + "-" + span + "-ff", known},
		{"a later version", "01-" + trace + "-" + span + "-01", known},
		{"a later version with more", "cc-" + trace + "-" + span + "-01-what-is-this", known},
		{"this version with more", "00-" + trace + "-" + span + "-01-what", guard.RunContext{}},
		{"the forbidden version", "ff-" + trace + "-" + span + "-01", guard.RunContext{}},
		{"upper case", "00-" + strings.ToUpper(trace) + "-" + span + "-01", guard.RunContext{}},
		{"a trace of zeros", "00-" + strings.Repeat("0", 32) + "-" + span + "-01", guard.RunContext{}},
		{"a span of zeros", "00-" + trace + "-" + strings.Repeat("0", 16) + "-01", guard.RunContext{}},
		{"a short trace", "00-" + trace[1:] + "-" + span + "-01", guard.RunContext{}},
		{"a long span", "00-" + trace + "-" + span + "0-01", guard.RunContext{}},
		{"invalid flags", "00-" + trace + "-" + span + "-0x", guard.RunContext{}},
		{"no flags", "00-" + trace + "-" + span, guard.RunContext{}},
		{"empty", "", guard.RunContext{}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := guard.RunContext{}.WithTraceparent(tc.header)
			if got != tc.want || (err == nil) != (tc.want != guard.RunContext{}) {
				t.Errorf("got %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
	for want, r := range map[string]guard.RunContext{
		"00-" + trace + "-" + span + "-01": known,
		"00-" + trace + "-" + span + "-00": unsampled,
	} {
		if got := r.Traceparent(); got != want {
			t.Errorf("Traceparent() = %q, want %q", got, want)
		}
	}
	for _, r := range []guard.RunContext{{}, {TraceID: trace}, {SpanID: span}, {TraceID: trace + "\n", SpanID: span}, {TraceID: trace, SpanID: "trace"}} {
		if got := r.Traceparent(); got != "" {
			t.Errorf("%+v gives %q, want nothing", r, got)
		}
	}
}

// What is read as a traceparent can be carried on, and means the same again.
func FuzzTraceparent(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more")
	f.Add("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("00-é-0-")
	f.Fuzz(func(t *testing.T, header string) {
		r, err := guard.RunContext{RunID: "r"}.WithTraceparent(header)
		if err != nil {
			if r != (guard.RunContext{RunID: "r"}) {
				t.Errorf("%q is refused and changes the context to %+v", header, r)
			}
			return
		}
		carried := r.Traceparent()
		if again, err := (guard.RunContext{RunID: "r"}).WithTraceparent(carried); err != nil || again != r {
			t.Errorf("%q is %+v; carried on as %q it is %+v, %v", header, r, carried, again, err)
		}
	})
}

func TestRunContext_LogAttributes(t *testing.T) {
	full := guard.RunContext{RunID: "r", RequestID: "q", SessionID: "s", Attempt: 2, WorkerID: "w", TraceID: "t", SpanID: "p"}
	const ids = "run_id=r request_id=q session_id=s attempt=2 worker_id=w trace_id=t span_id=p"
	cases := []struct {
		name string
		ctx  context.Context
		log  func(context.Context, *slog.Logger)
		want string
	}{
		{
			"every field, before the record's own",
			guard.WithRunContext(t.Context(), full),
			func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "hello", "a", 1) },
			"level=INFO msg=hello " + ids + " a=1\n",
		},
		{
			"only what is known",
			guard.WithRunContext(t.Context(), guard.RunContext{RunID: "r"}),
			func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "hello") },
			"level=INFO msg=hello run_id=r\n",
		},
		{
			"outside all groups",
			guard.WithRunContext(t.Context(), full),
			func(ctx context.Context, l *slog.Logger) {
				l.With("a", 1).WithGroup("g").With("b", 2).WithGroup("h").InfoContext(ctx, "hello", "c", 3)
			},
			"level=INFO msg=hello a=1 " + ids + " g.b=2 g.h.c=3\n",
		},
		{
			"nothing without a run context",
			t.Context(),
			func(ctx context.Context, l *slog.Logger) { l.WithGroup("g").InfoContext(ctx, "hello", "c", 3) },
			"level=INFO msg=hello g.c=3\n",
		},
		{
			"as a value",
			t.Context(),
			func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "hello", "run", full) },
			"level=INFO msg=hello run." + strings.ReplaceAll(ids, " ", " run.") + "\n",
		},
		{
			"not at a level that is off",
			guard.WithRunContext(t.Context(), full),
			func(ctx context.Context, l *slog.Logger) { l.DebugContext(ctx, "hello") },
			"",
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			tc.log(tc.ctx, slog.New(guard.LogHandler(slog.NewTextHandler(&out, timeless))))
			if out.String() != tc.want {
				t.Errorf("got  %swant %s", out.String(), tc.want)
			}
		})
	}
}

// timeless leaves the time out of a log.
var timeless = &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}}

// Two loggers made of one must not write into each other's groups.
func TestLogHandler_DerivedLoggersAreIndependent(t *testing.T) {
	var out strings.Builder
	ctx := guard.WithRunContext(t.Context(), guard.RunContext{RunID: "r"})
	base := slog.New(guard.LogHandler(slog.NewTextHandler(&out, timeless))).WithGroup("g").With("a", 1).With("b", 2)
	one, two := base.With("one", 1), base.With("two", 2)
	if h := base.Handler(); h.WithGroup("") != h {
		t.Error("a group without a name is a group")
	}
	one.InfoContext(ctx, "x")
	two.InfoContext(ctx, "x")
	if want := "level=INFO msg=x run_id=r g.a=1 g.b=2 g.one=1\nlevel=INFO msg=x run_id=r g.a=1 g.b=2 g.two=2\n"; out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
}

// withRun puts a run context into every record, for callers that give none.
type withRun struct{ slog.Handler }

func (w withRun) Handle(ctx context.Context, rec slog.Record) error {
	return w.Handler.Handle(guard.WithRunContext(ctx, guard.RunContext{RunID: "r"}), rec)
}

func (w withRun) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withRun{w.Handler.WithAttrs(attrs)}
}

func (w withRun) WithGroup(name string) slog.Handler { return withRun{w.Handler.WithGroup(name)} }

func TestLogHandler_PassesTheSuiteOfTheStandardLibrary(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return withRun{guard.LogHandler(slog.NewJSONHandler(&out, nil))}
	}, func(t *testing.T) map[string]any {
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line["run_id"] != "r" {
			t.Errorf("run_id is not at the top of %v", line)
		}
		return line
	})
}

func TestRunContext_JSON(t *testing.T) {
	want := guard.RunContext{RunID: "r", RequestID: "q", SessionID: "s", Attempt: 1, WorkerID: "w", TraceID: "t", SpanID: "p", Unsampled: true}
	data, err := json.Marshal(want)
	if err != nil || string(data) != `{"runId":"r","requestId":"q","sessionId":"s","attempt":1,"workerId":"w","traceId":"t","spanId":"p","unsampled":true}` {
		t.Fatalf("got %s, %v", data, err)
	}
	var got guard.RunContext
	if err := json.Unmarshal(data, &got); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if data, _ := json.Marshal(guard.RunContext{}); string(data) != "{}" {
		t.Errorf("an empty one is %s", data)
	}
}

// A tool's handler finds the values that its runner puts into the context.
func TestContext_ToolHandlerFindsTheLimits(t *testing.T) {
	tracker, heartbeat := guard.NewTracker(guard.Budget{MaxTotalTokens: 10}), guard.NewHeartbeat(nil)
	deadline, run := guard.FromNow(time.Hour), guard.NewRunContext(nil)
	called := 0
	look := tool.Must("look", "Looks at its limits.", func(ctx context.Context, _ tool.None) (string, error) {
		called++
		if guard.TrackerFrom(ctx) != tracker || guard.HeartbeatFrom(ctx) != heartbeat || !guard.DeadlineFrom(ctx).Equal(deadline) || guard.RunContextFrom(ctx) != run {
			t.Error("the handler finds something else")
		}
		return "ok", nil
	})
	ctx := guard.WithRunContext(guard.WithDeadline(guard.WithHeartbeat(guard.WithTracker(t.Context(), tracker), heartbeat), deadline), run)
	if res := look.Run(ctx, tool.Call{ID: "1"}); called != 1 || res.Outcome != tool.Success {
		t.Errorf("called %d times: %+v", called, res)
	}
	bare := t.Context()
	if guard.TrackerFrom(bare) != nil || guard.HeartbeatFrom(bare) != nil || !guard.DeadlineFrom(bare).IsZero() || cmp.Diff(guard.RunContext{}, guard.RunContextFrom(bare)) != "" {
		t.Error("a bare context holds something")
	}
}
