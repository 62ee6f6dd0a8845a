// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/guard"
)

// records are the lines of a JSON log.
func records(t *testing.T, log *bytes.Buffer) (all []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(log.Bytes()) {
		var r map[string]any
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

// named are the records with this message.
func named(all []map[string]any, message string) (found []map[string]any) {
	for _, r := range all {
		if r["msg"] == message {
			found = append(found, r)
		}
	}
	return found
}

func TestLog_OfARun(t *testing.T) {
	var log bytes.Buffer
	handler := guard.LogHandler(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	resp, err := busyRun(t.Context(), t, claudetest.CLI(t), &drover.Options{Logger: slog.New(handler), RunContext: guard.RunContext{RequestID: "request-1"}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("content is in the log:\n%s", log.String())
	}
	all := records(t, &log)
	run := map[string]any{"run_id": resp.RunID, "request_id": "request-1", "attempt": 1.0, "session_id": resp.Session.ID()}
	want := map[string]map[string]any{
		"drover.evaluate.start": {
			"level": "INFO", "event": "drover.evaluate.start", "prompt_name": "demo:review", "model": "claude-sonnet-4-5", "stateful": false,
			"tool_count": 1.0, "has_structured_output": true, "run": run,
		},
		"drover.evaluate.complete": {
			"level": "INFO", "event": "drover.evaluate.complete", "prompt_name": "demo:review", "duration_ms": float64(resp.Duration.Milliseconds()),
			"input_tokens": float64(resp.Usage.InputTokens()), "output_tokens": 70.0, "total_cost_usd": resp.CostUSD(),
			"session_id": resp.SessionID, "num_turns": float64(resp.Turns), "run": run,
		},
	}
	for message, want := range want {
		found := named(all, message)
		if len(found) != 1 {
			t.Errorf("%s is logged %d times, want once", message, len(found))
			continue
		}
		delete(found[0], "time")
		want["msg"] = message
		if diff := cmp.Diff(want, found[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", message, diff)
		}
	}
	checkDebug(t, all)
}

// checkDebug looks at the stages, turns and tool calls.
func checkDebug(t *testing.T, all []map[string]any) {
	t.Helper()
	var stages, calls []string
	for _, r := range named(all, "drover.evaluate.stage") {
		stages = append(stages, fmt.Sprint(r["stage"]))
	}
	for _, r := range named(all, "drover.evaluate.tool") {
		calls = append(calls, fmt.Sprint(r["tool_name"], " ", r["status"]))
	}
	if want := []string{"render", "bind", "run"}; len(stages) < 3 || !slices.Equal(stages[:3], want) {
		t.Errorf("the stages are %v, want %v first", stages, want)
	}
	for _, want := range []string{"mcp__drover__count called", "mcp__drover__count success", "Read denied", "Bash error", "Agent success"} {
		if !slices.Contains(calls, want) {
			t.Errorf("%q is missing in %v", want, calls)
		}
	}
	if turns := named(all, "drover.evaluate.turn"); len(turns) != 1 || turns[0]["status"] != "success" {
		t.Errorf("the turns are %v", turns)
	}
}

// panickingLog is a log handler that fails.
type panickingLog struct{ slog.Handler }

func (panickingLog) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingLog) Handle(context.Context, slog.Record) error { panic("no disk") }

func TestEvaluate_PanickingLogHandlerDoesNotEndARun(t *testing.T) {
	if _, err := play(t, &drover.Options{Logger: slog.New(panickingLog{slog.DiscardHandler})}, answers()); err != nil {
		t.Error(err)
	}
}

func TestLog_OfAFailedRun(t *testing.T) {
	var log bytes.Buffer
	_, err := drover.Evaluate(t.Context(), &tracedAgent{}, simplePrompt(t), &drover.Options{LogPrefix: "sdk", Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	if err == nil {
		t.Fatal("it did not fail")
	}
	all := records(t, &log)
	failed := named(all, "sdk.evaluate.failed")
	if len(failed) != 1 || len(named(all, "sdk.evaluate.complete")) != 0 {
		t.Fatalf("got %v", all)
	}
	got := failed[0]
	if got["level"] != "ERROR" || got["stage"] != "run" || got["event"] != "sdk.evaluate.failed" || got["error"] != err.Error() {
		t.Errorf("got %v, want the stage and the error %v", got, err)
	}
	// Nothing was measured: what is not known is not logged as zero.
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if strings.HasSuffix(key, "_tokens") || key == "total_cost_usd" {
			t.Errorf("%s is logged", key)
		}
	}
	for _, r := range all {
		if r["level"] == "INFO" && strings.Contains(fmt.Sprint(r), secret) {
			t.Errorf("content is logged at Info: %v", r)
		}
	}
}
