// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"log/slog"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
)

// The names of log records, after [Options.LogPrefix]: at Info the start and the end, at Error a failure of the evaluation
// or of its cleanup, at Debug stages, turns and tool calls. What the user, the model and the tools say is in none of
// them, but the error of a failed evaluation may quote it.
const (
	logStart    = "evaluate.start"
	logComplete = "evaluate.complete"
	logFailed   = "evaluate.failed"
	logStage    = "evaluate.stage"
	logCleanup  = "evaluate.cleanup"
	logTurn     = "evaluate.turn"
	logTool     = "evaluate.tool"
)

// log writes a record that says which run it is about. It has the ids of the run in a group: session_id
// beside them is the agent's name of the conversation.
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
		slog.Bool("stateful", e.resumeToken() != ""), // the agent remembers what was said before
		slog.Int("tool_count", tools), slog.Bool("has_structured_output", e.asked.OutputSchema != nil))
}

// logEnd logs how the evaluation ended.
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

// reach says how far the evaluation has come.
func (e *evaluation) reach(ctx context.Context, s Stage) {
	e.stage = s
	e.log(ctx, slog.LevelDebug, logStage, slog.String("stage", string(s)))
}

// beginTurn, follow and endTurn tell the log and the trace what happens in a turn.
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
