// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// measured is a run of two model calls that reports all its figures, and takes a second and a half.
func measured() *agenttest.Adapter {
	tokens := event.Tokens{Coverage: event.CoverageComplete, Totals: event.TokenCount{Input: event.InputTokens{Total: 120}, Output: event.OutputTokens{Total: 30}}}
	metadata := map[string]json.RawMessage{agent.EndDetails: json.RawMessage(`{"apiDurationMs":1250.5,"stopReason":"end_turn"}`)}
	a := agenttest.New(
		agenttest.EmitEvents(
			event.Event{SessionID: "conversation", Turn: 1, Payload: event.Text{Content: "I look."}},
			event.Event{SessionID: "conversation", Turn: 2, Payload: event.Text{Content: "Fine."}},
		),
		func(*agenttest.Run) { time.Sleep(1500 * time.Millisecond) },
		agenttest.EmitEvents(event.Event{SessionID: "conversation", Turn: 2, Metadata: metadata, Payload: event.Done{
			Status: event.DoneSuccess, Result: "Fine.", Output: json.RawMessage(noted),
			Usage: event.Usage{Tokens: &tokens, Cost: &event.Cost{USD: 0.25}},
		}}),
	)
	a.Name = "fast-agent"
	return a
}

// Every figure that an agent reports is in the event that ends the run, and in the log.
func TestPromptExecuted_FiguresOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := session.New(nil)
		resp, err := drover.Evaluate(t.Context(), measured(), reviewPrompt(t), &drover.Options{Session: s, Settings: agent.Settings{Model: "opus"}, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		got, ok := session.Query[session.PromptExecuted](s).Latest()
		if !ok {
			t.Fatal("the session has no end")
		}
		type figures struct {
			Namespace, Key, Name, Adapter, Text, Output, SessionID string
			Duration, APIDuration                                  time.Duration
			Input, OutputTokens                                    int64
			Cost                                                   float64
			Turns                                                  int
		}
		want := figures{
			"demo", "review", "demo:review", "fast-agent", "Fine.", noted, "conversation",
			1500 * time.Millisecond, 1250500 * time.Microsecond, 120, 30, 0.25, 2,
		}
		have := figures{
			got.Namespace, got.Key, got.Name, got.Adapter, got.Text, string(got.Output), got.SessionID,
			got.Duration, got.APIDuration, got.Usage.InputTokens(), got.Usage.OutputTokens(), got.Usage.TotalCostUSD(), got.Turns,
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("the end in the session (-want +got):\n%s", diff)
		}
		if resp.Output.Summary != "s" || resp.Output.Issues == nil {
			t.Errorf("the answer is %+v", resp.Output)
		}
		if resp.PromptName != "demo:review" || resp.SessionID != "conversation" {
			t.Errorf("the summary has prompt %q and conversation %q", resp.PromptName, resp.SessionID)
		}
		all := records(t, &log)
		for message, want := range map[string]map[string]any{
			"drover.evaluate.start": {
				"level": "INFO", "event": "drover.evaluate.start", "prompt_name": "demo:review", "model": "opus", "stateful": false, "tool_count": 1.0, "has_structured_output": true,
			},
			"drover.evaluate.complete": {
				"level": "INFO", "event": "drover.evaluate.complete", "prompt_name": "demo:review", "duration_ms": 1500.0,
				"input_tokens": 120.0, "output_tokens": 30.0, "total_cost_usd": 0.25, "session_id": "conversation", "num_turns": 2.0,
			},
		} {
			logged := named(all, message)
			if len(logged) != 1 {
				t.Fatalf("%s is logged %d times", message, len(logged))
			}
			for key, want := range want {
				if logged[0][key] != want {
					t.Errorf("%s: %s is %v, want %v", message, key, logged[0][key], want)
				}
			}
		}
	})
}

// Figures that the agent does not report are absent from the log, not zero.
func TestLog_UnknownFiguresAreAbsent(t *testing.T) {
	var log bytes.Buffer
	if _, err := play(t, &drover.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))}, answers()); err != nil {
		t.Fatal(err)
	}
	logged := named(records(t, &log), "drover.evaluate.complete")
	if len(logged) != 1 {
		t.Fatalf("the end is logged %d times", len(logged))
	}
	for _, key := range []string{"input_tokens", "output_tokens", "total_cost_usd"} {
		if value, there := logged[0][key]; there {
			t.Errorf("%s is logged as %v", key, value)
		}
	}
}

// The prompt is rendered first, recorded, and then sent; what cannot be rendered is not sent.
func TestEvaluate_RendersBeforeTheAgentStarts(t *testing.T) {
	unbound, err := prompt.NewPrompt[prompt.Text]("demo", "task", prompt.Markdown("task", "Task", "Look at $file."))
	if err != nil {
		t.Fatal(err)
	}
	bound, err := unbound.Bind(struct {
		File string `json:"file"`
	}{"main.go"})
	if err != nil {
		t.Fatal(err)
	}
	s := session.New(nil)
	rendered := ""
	a := agenttest.New(func(*agenttest.Run) {
		if r, ok := session.Query[session.PromptRendered](s).Latest(); ok {
			rendered = r.Text
		}
	}, agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: "ok"}))
	if _, err := drover.Evaluate(t.Context(), a, bound, &drover.Options{Session: s}); err != nil {
		t.Fatal(err)
	}
	if requests := a.Requests(); len(requests) != 1 || !strings.HasSuffix(requests[0].Prompt, rendered) || !strings.Contains(rendered, "Look at main.go.") {
		t.Errorf("recorded before the run: %q, sent: %+v", rendered, requests)
	}
	b := agenttest.New(agenttest.Done(""))
	_, err = drover.Evaluate(t.Context(), b, unbound, nil)
	failure, ok := errors.AsType[*drover.EvaluationError](err)
	if !ok || failure.Stage != drover.StageRender || failure.Prompt != "demo:task" || len(b.Requests()) != 0 {
		t.Errorf("got %v after %d requests, want an error of the rendering and none", err, len(b.Requests()))
	}
}
