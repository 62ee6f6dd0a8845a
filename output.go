// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/telemetry"
	"github.com/drover-agents/drover/tool"
)

// A Recorder keeps evaluations, each message of a conversation as a run of its own. Package record has one that keeps them in files.
//
// A Recorder may have the method Logger(*slog.Logger) *slog.Logger too. It returns what the evaluation has for its Options.Logger: a
// recorder that knows secrets takes them out of the log.
type Recorder interface {
	// Begin is called before the agent starts. If it fails the evaluation goes on without a record: an answer is never withheld for
	// one. [Summary.NotRecorded] has the error.
	Begin(ctx context.Context, run RunStart) (RunRecord, error)
}

// A RunRecord receives one run. Its methods are called one after the other.
type RunRecord interface {
	// Transcript is called with each entry of the transcript. It must not block.
	Transcript(entry TranscriptEntry)
	// End is called when the last event of the run is in the log. Its error changes neither the answer nor the error of the
	// evaluation; [Summary.NotRecorded] has it.
	End(end RunEnd) error
}

// A RunStart is what a recorder gets of a run that begins.
type RunStart struct {
	RunID, PromptName, Agent string
	Began                    time.Time
	// Deadline is when the run has to be over.
	Deadline guard.Deadline
	// Settings are those of the options, and Resume is the token of the conversation that the run continues.
	Settings agent.Settings
	Resume   string
	// Dir is the working directory, as far as it is known.
	Dir string
	// Session has the events of the run behind the position After. Other runs of the session may have entries there too.
	Session *session.Session
	After   int64
}

// A RunEnd is what a recorder gets of a run that has ended.
type RunEnd struct {
	Summary
	// Err is the error of the evaluation, or nil.
	Err error
	// Last is the position of the last entry of the run.
	Last int64
	// Diff is the patch of all changes in the workspace, empty without one.
	Diff []byte
}

// beginRecord has the run recorded from here on.
func (e *evaluation) beginRecord(ctx context.Context) {
	e.recorded = nil
	if e.opts.Recorder == nil {
		return
	}
	start := RunStart{
		RunID: e.run.RunID, PromptName: e.prompt.Name(), Agent: e.adapter.Agent(), Began: e.began, Deadline: e.deadline, Settings: e.opts.Settings,
		Resume: e.resumeToken(), Dir: e.opts.Dir, Session: e.opts.Session, After: e.after,
	}
	if w := e.workingDir.workspace(); w != nil {
		start.Dir = w.Root()
	} else if a, ok := e.adapter.(dirAdapter); ok && start.Dir == "" {
		start.Dir = a.Dir()
	}
	recorded, err := e.opts.Recorder.Begin(ctx, start)
	if err != nil {
		e.notRecorded(ctx, err)
		return
	}
	e.recorded = recorded
	e.record.recordTo(recorded)
}

func (e *evaluation) notRecorded(ctx context.Context, err error) {
	e.summary.NotRecorded = err
	e.log(ctx, slog.LevelError, logRecord, slog.Any("error", err))
}

// endRecord has the recorder keep the end of the run.
func (e *evaluation) endRecord(ctx context.Context, failure *EvaluationError) {
	if e.recorded == nil {
		return
	}
	end := RunEnd{Summary: e.summary, Last: e.opts.Session.Last()}
	if failure != nil {
		end.Err = failure
	}
	var problem error
	if w := e.workingDir.workspace(); w != nil && !e.workingDir.own {
		var patch bytes.Buffer
		if _, problem = w.Patch(ctx, &patch, nil); problem != nil {
			problem = fmt.Errorf("the changes in the workspace: %w", problem)
		}
		end.Diff = patch.Bytes()
	}
	e.record.recordTo(nil)
	if err := errors.Join(problem, e.recorded.End(end)); err != nil {
		e.notRecorded(ctx, err)
	}
	e.recorded = nil
}

// output records the events of an evaluation, and gives them to telemetry and to the reader.
type output struct {
	*evaluation
	ctx   context.Context
	emit  emitFunc
	leave func()
	left  bool
	// held is an error that ended a turn. Whether it ended the evaluation too is known when something follows, or nothing.
	held *event.Event
	part event.Position // of the last part of a text
}

// take passes an event on, until the reader leaves.
func (o *output) take(ev event.Event) bool {
	if o.held != nil {
		o.give(o.release(true))
		o.held = nil
	}
	if failure, ok := ev.Payload.(event.Error); ok && !failure.Recoverable {
		o.held = &ev
		return !o.left
	}
	return o.give(ev)
}

// release is the error that was held, which the evaluation has survived or not.
func (o *output) release(survived bool) event.Event {
	ev := *o.held
	if failure, ok := ev.Payload.(event.Error); ok {
		failure.Recoverable = survived
		ev.Payload = failure
	}
	return ev
}

func (o *output) give(ev event.Event) bool {
	ev, err := o.record(ev)
	if err != nil && o.host != nil {
		o.host.lose(err)
	}
	return o.deliver(ev)
}

// record puts an event into the log of the session, unless it was recorded when it happened, and gives it its position.
// Parts of a text are not recorded: the text follows.
func (o *output) record(ev event.Event) (event.Event, error) {
	if _, isPart := ev.Payload.(event.TextDelta); isPart {
		if last := o.opts.Session.Last(); last != o.part.Entry {
			o.part = event.Position{Entry: last}
		}
		o.part.Part++
		ev.Position = o.part
	}
	if ev.Position.Entry != 0 {
		return ev, nil
	}
	entry, err := o.opts.Session.Dispatch(o.ctx, ev)
	ev.Position.Entry = entry
	return ev, err
}

// deliver gives an event to telemetry, and to the reader until it leaves. The reader's loop may panic.
func (o *output) deliver(ev event.Event) bool {
	o.follow(o.ctx, ev)
	if o.left {
		return false
	}
	o.deliveries.Add(1)
	defer o.deliveries.Add(1)
	if !o.emit(ev) {
		o.left = true
		o.leave()
	}
	return !o.left
}

func (e *evaluation) finish(ctx context.Context, out *output, o *outcome, err error) error {
	err = because(ctx, err)
	ctx = context.WithoutCancel(ctx)
	e.summary.Duration = time.Since(e.began)
	var failure *EvaluationError
	if err != nil {
		failure = e.failed(err)
		e.summary.Status = endStatus(e.summary.Status, failure.Kind)
		failure.Summary = e.summary
	} else {
		e.dispatchValue(ctx, o.value)
	}
	before := e.seq
	last := e.lastEvents(out, failure)
	if kept := e.recordEnd(out, last, failure); kept != nil {
		e.seq, failure = before, e.unrecorded(failure, kept)
		last = e.lastEvents(out, failure)
	}
	e.endRecord(ctx, failure)
	if failure != nil {
		failure.Summary.NotRecorded = e.summary.NotRecorded
	}
	e.logEnd(ctx, failure)
	e.observed(failure)
	for _, ev := range last {
		out.deliver(ev)
	}
	if failure != nil {
		return failure
	}
	o.Summary = e.summary
	return nil
}

// unrecorded is the error of an evaluation whose end could not be recorded.
func (e *evaluation) unrecorded(failure *EvaluationError, kept error) *EvaluationError {
	if failure == nil {
		e.summary.Status = event.DoneError
		return e.failed(fmt.Errorf("the end could not be recorded: %w", kept))
	}
	failure.Err = errors.Join(failure.Err, kept)
	return failure
}

// recordEnd records the last events, and how the prompt was executed. The error is why one could not be recorded.
func (e *evaluation) recordEnd(out *output, last []event.Event, failure *EvaluationError) (err error) {
	for i := range last {
		if last[i], err = out.record(last[i]); err != nil {
			return err
		}
	}
	_, err = e.opts.Session.Dispatch(out.ctx, e.executed(failure))
	return err
}

// lastEvents are why it failed, if it did, and the done.
func (e *evaluation) lastEvents(out *output, failure *EvaluationError) []event.Event {
	var last []event.Event
	switch {
	case out.held != nil:
		last = append(last, out.release(false))
	case failure != nil && failure.Summary.Status == event.DoneError:
		last = append(last, e.made(event.Error{Code: codeEvaluation, Message: failure.Message, Cause: failure}))
	}
	done := event.Done{
		Status: event.DoneSuccess, Result: e.summary.Text, Output: e.summary.Structured, Usage: e.summary.Usage,
		ResumeToken: e.summary.ResumeToken, Duration: e.summary.Duration,
	}
	if failure != nil {
		done.Status, done.Result, done.Output, done.Cause = failure.Summary.Status, failure.Message, nil, failure
		if done.Status == event.DoneInterrupted {
			done.Result, done.Reason = "", failure.Message
		}
		if e.summary.NotStored != "" { // after a stop the agent reports only the done
			done.Reason = strings.TrimPrefix(done.Reason+"; "+e.summary.NotStored, "; ")
		}
	}
	return append(last, e.made(done))
}

// codeEvaluation is the code of an error that the agent has not reported itself.
const codeEvaluation = "EVALUATION_ERROR"

// made is the next event of the run, and one of ours.
func (e *evaluation) made(p event.Payload) event.Event {
	e.seq++
	ev := event.New(p)
	ev.Agent, ev.SessionID, ev.RunID, ev.Seq = e.adapter.Agent(), e.summary.SessionID, e.run.RunID, e.seq
	return ev
}

// endStatus is the status of an evaluation that failed. One may be stopped when no turn is under way: while the
// agent starts, or before another attempt.
func endStatus(turn event.DoneStatus, kind agent.FailureKind) event.DoneStatus {
	switch {
	case kind == agent.FailureInterrupted:
		return event.DoneInterrupted
	case turn == "", turn == event.DoneSuccess:
		return event.DoneError
	}
	return turn
}

// executed is the terminal event of the session.
func (e *evaluation) executed(failure *EvaluationError) session.PromptExecuted {
	s := &e.summary
	x := session.PromptExecuted{
		Namespace: e.prompt.Namespace(), Key: e.prompt.Key(), Name: e.prompt.Name(), Adapter: e.adapter.Agent(), RunID: e.run.RunID,
		Text: s.Text, Output: s.Structured, Usage: s.Usage, Duration: s.Duration, APIDuration: s.APIDuration,
		SessionID: s.SessionID, Turns: s.Turns, Status: s.Status, StopReason: s.StopReason,
	}
	if failure != nil {
		x.Error = advice.Text(failure)
	}
	return x
}

// dispatchValue gives an answer of a named struct type to its slice, for its reducers. Its methods are the caller's code.
func (e *evaluation) dispatchValue(ctx context.Context, value any) {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || v.Type().Name() == "" {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			e.opts.Logger.ErrorContext(ctx, "drover: dispatching the answer panicked", "prompt", e.prompt.Name(), "run", e.run.RunID, "panic", p)
		}
	}()
	if _, err := e.opts.Session.Dispatch(ctx, value); err != nil {
		e.opts.Logger.WarnContext(ctx, "drover: the answer could not be given to its slice", "prompt", e.prompt.Name(), "run", e.run.RunID, "error", err)
	}
}

func (s *Summary) count(t *turn) {
	end := agent.EndOf(t.ended)
	s.Usage = s.Usage.Plus(t.Usage)
	s.APIDuration += time.Duration(end.APIDurationMS * float64(time.Millisecond))
	s.StopReason = end.StopReason
	s.NotStored = end.NotStored
	if t.Status == event.DoneSuccess {
		s.StopReason = cmp.Or(s.StopReason, stopEnd)
	}
}

// The names of log records, after [Options.LogPrefix]: at Info the start and the end, at Error a failure of the evaluation
// or of its cleanup, at Debug stages, turns and tool calls. They contain no text of the user, the model or the
// tools, but the error of a failed evaluation may quote it.
const (
	logStart    = "evaluate.start"
	logComplete = "evaluate.complete"
	logFailed   = "evaluate.failed"
	logStage    = "evaluate.stage"
	logCleanup  = "evaluate.cleanup"
	logRecord   = "evaluate.record"
	logTurn     = "evaluate.turn"
	logTool     = "evaluate.tool"
)

// log writes a record with the ids of the run in a group: session_id beside them is the agent's name of the conversation.
func (e *evaluation) log(ctx context.Context, level slog.Level, name string, attrs ...slog.Attr) {
	if !e.opts.Logger.Enabled(ctx, level) {
		return
	}
	message := e.opts.LogPrefix + "." + name
	own := []slog.Attr{slog.String("event", message), slog.String("prompt_name", e.prompt.Name())}
	attrs = append(append(own, attrs...), slog.Any("run", e.run))
	// A guard.LogHandler of the caller's would add the ids a second time.
	e.opts.Logger.LogAttrs(guard.WithRunContext(ctx, guard.RunContext{}), level, message, attrs...)
}

// logBegin logs that the evaluation begins, once it is known what is asked of the agent.
func (e *evaluation) logBegin(ctx context.Context) {
	if e.logged {
		return
	}
	e.logged = true
	tools := 0
	if r := e.asked.Registry; r != nil {
		tools = len(r.Tools())
	}
	e.log(ctx, slog.LevelInfo, logStart,
		slog.String("model", e.asked.Model),
		slog.Bool("stateful", e.resumeToken() != ""), // the agent remembers earlier messages
		slog.Int("tool_count", tools), slog.Bool("has_structured_output", e.asked.OutputSchema != nil))
}

func (e *evaluation) logEnd(ctx context.Context, failure *EvaluationError) {
	s := &e.summary
	attrs := []slog.Attr{slog.Int64("duration_ms", s.Duration.Milliseconds())}
	if s.Usage.Tokens != nil {
		attrs = append(attrs, slog.Int64("input_tokens", s.Usage.InputTokens()), slog.Int64("output_tokens", s.Usage.OutputTokens()))
	}
	if s.Usage.Cost != nil {
		attrs = append(attrs, slog.Float64("total_cost_usd", s.Usage.TotalCostUSD()))
	}
	attrs = append(attrs, slog.String("session_id", s.SessionID), slog.Int("num_turns", s.Turns))
	if failure == nil {
		e.log(ctx, slog.LevelInfo, logComplete, attrs...)
		return
	}
	e.log(ctx, slog.LevelError, logFailed, append(attrs, slog.String("phase", string(failure.Phase)), slog.String("stage", string(failure.Stage)), slog.Any("error", failure))...)
}

// reach sets how far the evaluation has come.
func (e *evaluation) reach(ctx context.Context, s Stage) {
	e.stage = s
	e.log(ctx, slog.LevelDebug, logStage, slog.String("stage", string(s)))
}

// beginTurn, follow and endTurn log and trace a turn.
func (e *evaluation) beginTurn(text string) { e.trace.Turn(text) }

func (e *evaluation) follow(ctx context.Context, ev event.Event) {
	e.trace.Event(ev)
	switch what := ev.Payload.(type) {
	case event.ToolCall:
		e.logCall(ctx, ev, what.Name, what.ID, "called")
	case event.ToolResult:
		e.logCall(ctx, ev, what.Name, what.ID, string(what.Status))
	}
}

func (e *evaluation) logCall(ctx context.Context, ev event.Event, name string, id event.CallID, status string) {
	e.log(ctx, slog.LevelDebug, logTool, slog.String("tool_name", name), slog.String("tool_use_id", string(id)),
		slog.String("agent_id", ev.AgentID), slog.String("status", status))
}

func (e *evaluation) endTurn(ctx context.Context, t *turn, err error) {
	e.trace.TurnEnd(t.Done, err)
	e.log(ctx, slog.LevelDebug, logTurn, slog.String("status", string(t.Status)), slog.Int64("duration_ms", t.Duration.Milliseconds()))
}

// observe begins the trace of the run, below the caller's span. The agent, and what is called with the context, are in it.
func (e *evaluation) observe(ctx context.Context) (context.Context, error) {
	ctx, run, err := e.opts.Telemetry.Begin(withCaller(ctx, e.run), telemetry.Start{
		Agent: e.adapter.Agent(), Prompt: e.prompt.Name(), RunID: e.run.RunID, Model: e.opts.Model, ToolSource: e.toolSource, Subagent: e.subagent,
	})
	e.trace = run
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		e.run.TraceID, e.run.SpanID, e.run.Unsampled = span.TraceID().String(), span.SpanID().String(), !span.IsSampled()
		e.traceState = span.TraceState().String()
	}
	return ctx, err
}

// withCaller is a context with the span of the caller: the one that it has, or else that of the run context.
func withCaller(ctx context.Context, run guard.RunContext) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() || run.Traceparent() == "" {
		return ctx
	}
	var c trace.SpanContextConfig
	c.TraceID, _ = trace.TraceIDFromHex(run.TraceID) // both are valid, or there were no header
	c.SpanID, _ = trace.SpanIDFromHex(run.SpanID)
	if !run.Unsampled {
		c.TraceFlags = trace.FlagsSampled
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(c))
}

// toolSource returns whether Drover or the agent runs a tool.
func (e *evaluation) toolSource(name string) string {
	if _, ours := e.opts.ownTool(name); ours {
		return string(session.BridgedTool)
	}
	return string(session.NativeTool)
}

// subagent returns the kind of subagent that a call asks for.
func (e *evaluation) subagent(call event.ToolCall) string {
	return tool.Field(call.Input, e.adapter.Catalogue().Fields(call.Name).Subagent)
}

func (e *evaluation) observed(failure *EvaluationError) {
	s := &e.summary
	end := telemetry.End{Status: s.Status, SessionID: s.SessionID, Usage: s.Usage, Turns: s.Turns, Structured: e.asked.OutputSchema != nil}
	if failure != nil {
		end.Err, end.ErrorType, end.Stage = failure, failureKind(failure), string(failure.Stage)
	}
	e.trace.End(end)
	e.trace = nil
}

// failureKind is what kind of failure an error is, in a word: there are few of them, so that they can be counted.
func failureKind(failure *EvaluationError) string {
	for _, kind := range []struct {
		is   error
		name string
	}{
		{guard.ErrDeadlineExceeded, "deadline_exceeded"},
		{guard.ErrBudgetExhausted, "budget_exhausted"},
		{ErrInterrupted, "interrupted"},
		{errLeft, "reader_left"},
		{context.Canceled, "cancelled"},
		{context.DeadlineExceeded, "deadline_exceeded"},
	} {
		if errors.Is(failure, kind.is) {
			return kind.name
		}
	}
	return string(failure.Kind)
}
