// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/tool"
)

// A RunContext identifies a run. It is a plain value; a field that is not known is empty.
type RunContext struct {
	// RunID is one attempt to answer a request, and new for each; RequestID stays the same.
	RunID     string `json:"runId,omitzero"`
	RequestID string `json:"requestId,omitzero"`
	SessionID string `json:"sessionId,omitzero"`
	// Attempt counts from 1.
	Attempt int `json:"attempt,omitzero"`
	// WorkerID is the process or goroutine that does the work, in its owner's words.
	WorkerID string `json:"workerId,omitzero"`
	// TraceID and SpanID are those of the run's span, in hexadecimal as in W3C Trace Context: 32 and 16 digits.
	TraceID string `json:"traceId,omitzero"`
	SpanID  string `json:"spanId,omitzero"`
	// Unsampled is set if the trace is not recorded.
	Unsampled bool `json:"unsampled,omitzero"`
}

// NewRunContext begins a request: a new run, a new request, the first attempt. newID makes ids; nil
// makes random UUIDs. Fill in the other fields as they are known.
func NewRunContext(newID func() string) RunContext {
	newID = orUUID(newID)
	return RunContext{RunID: newID(), RequestID: newID(), Attempt: 1}
}

// Next begins the next attempt at the same request: the run is new, everything else stays.
func (r RunContext) Next(newID func() string) RunContext {
	r.RunID = orUUID(newID)()
	r.Attempt = max(r.Attempt, 1) + 1
	return r
}

func orUUID(newID func() string) func() string {
	if newID == nil {
		return ident.NewUUID
	}
	return newID
}

// Attrs returns what is known, for a log. The keys and their order are always the same: run_id,
// request_id, session_id, attempt, worker_id, trace_id, span_id.
func (r RunContext) Attrs() []slog.Attr {
	attrs := make([]slog.Attr, 0, 7)
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("run_id", r.RunID)
	add("request_id", r.RequestID)
	add("session_id", r.SessionID)
	if r.Attempt != 0 {
		attrs = append(attrs, slog.Int("attempt", r.Attempt))
	}
	add("worker_id", r.WorkerID)
	add("trace_id", r.TraceID)
	add("span_id", r.SpanID)
	return attrs
}

// LogValue implements [slog.LogValuer].
func (r RunContext) LogValue() slog.Value { return slog.GroupValue(r.Attrs()...) }

// Traceparent returns the header, or the variable TRACEPARENT, that carries the trace on; "" unless both ids are valid.
func (r RunContext) Traceparent() string {
	if !isHexID(r.TraceID, 32) || !isHexID(r.SpanID, 16) {
		return ""
	}
	flags := "01"
	if r.Unsampled {
		flags = "00"
	}
	return "00-" + r.TraceID + "-" + r.SpanID + "-" + flags
}

// WithTraceparent returns a copy that belongs to the span of a W3C traceparent header.
func (r RunContext) WithTraceparent(header string) (RunContext, error) {
	// A later version may have more fields behind the ones that are known.
	fields := strings.Split(header, "-")
	if len(fields) < 4 || !isHex(fields[0], 2) || fields[0] == "ff" || fields[0] == "00" && len(fields) > 4 ||
		!isHexID(fields[1], 32) || !isHexID(fields[2], 16) || !isHex(fields[3], 2) {
		return r, advice.Wrap(fmt.Errorf("guard: %.80q is no traceparent", header),
			"pass it as it came, such as 00-<32 hex digits>-<16 hex digits>-01")
	}
	r.TraceID, r.SpanID = fields[1], fields[2]
	r.Unsampled = strings.ContainsRune("02468ace", rune(fields[3][1])) // the lowest bit says sampled
	return r, nil
}

func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}

// isHexID leaves out the id of zeros, which is invalid.
func isHexID(s string, digits int) bool { return isHex(s, digits) && strings.Trim(s, "0") != "" }

var runContextKey = tool.NewKey[RunContext]("run context")

// WithRunContext returns a context in which [RunContextFrom] finds the run context.
func WithRunContext(ctx context.Context, r RunContext) context.Context {
	return runContextKey.With(ctx, r)
}

// RunContextFrom returns the run context, empty if ctx has no run context.
func RunContextFrom(ctx context.Context) RunContext {
	r, _ := runContextKey.From(ctx)
	return r
}

// LogHandler returns a handler that adds [RunContext.Attrs] of the context to each record, and passes
// it on to next. They are outside all groups, so that one key finds them everywhere.
func LogHandler(next slog.Handler) slog.Handler { return &logHandler{next: next, outer: next} }

type logHandler struct {
	next slog.Handler
	// outer is next without the groups, and what came after the first; grouped puts them back.
	outer   slog.Handler
	grouped []func(slog.Handler) slog.Handler
}

// Enabled implements slog.Handler.
func (l *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *logHandler) Handle(ctx context.Context, rec slog.Record) error {
	attrs := RunContextFrom(ctx).Attrs()
	if len(attrs) == 0 {
		return l.next.Handle(ctx, rec)
	}
	h := l.outer.WithAttrs(attrs)
	for _, back := range l.grouped {
		h = back(h)
	}
	return h.Handle(ctx, rec)
}

// WithAttrs implements slog.Handler.
func (l *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return l.with(len(l.grouped) > 0, func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (l *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return l
	}
	return l.with(true, func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (l *logHandler) with(grouped bool, change func(slog.Handler) slog.Handler) slog.Handler {
	c := &logHandler{next: change(l.next), outer: l.outer, grouped: l.grouped}
	if grouped {
		c.grouped = append(l.grouped[:len(l.grouped):len(l.grouped)], change)
	} else {
		c.outer = c.next
	}
	return c
}
