// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// What has arrived must not be lost because the client was closed before it was read; and a loop
// over messages must come to an end after that, at any position.
func TestPitfall58_MessagesSurviveClose(t *testing.T) {
	const lines = 500
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		s.State("running")
		for i := range lines {
			s.SendText(fmt.Sprintf("message %d", i))
		}
		s.Result("last words")
		s.State("idle")
		s.Answer(s.Await("control_request"), map[string]any{}) // answered when all of that was read
		s.UntilEOF()
	})
	c := claudetest.Connect(t, cli.Options())
	if err := c.Send(t.Context(), claude.Text("talk")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Request(t.Context(), "get_session_cost", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	end, messages, err := collect(c.Messages())
	if err != nil {
		t.Errorf("the messages ended with %v", err)
	}
	if got := len(of[*claude.AssistantMessage](messages)); got != lines || end == nil || end.Answer.Result != "last words" {
		t.Errorf("%d of %d messages, end %+v", got, lines, end)
	}
	if _, again, err := collect(c.Messages()); len(again) != 0 || err != nil {
		t.Errorf("a second loop got %d messages, %v; want an end at once", len(again), err)
	}
	if _, _, err := collect(c.Turn(t.Context(), claude.Text("more"))); !errors.Is(err, claude.ErrClosed) {
		t.Errorf("a turn after Close: %v, want ErrClosed", err)
	}
}

// A loop that waits for messages ends when another goroutine closes the client.
func TestPitfall58_WaitingLoopEndsWithClose(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		s.SendText("one")
		s.UntilEOF()
	})
	c := claudetest.Connect(t, cli.Options())
	if err := c.Send(t.Context(), claude.Text("hi")); err != nil {
		t.Fatal(err)
	}
	for m, err := range c.Messages() {
		if err != nil {
			t.Fatalf("the loop ended with %v, want no error", err)
		}
		if _, ok := m.(*claude.AssistantMessage); ok {
			go func() { _ = c.Close() }()
		}
	}
}

// A loop that is left early must leave no process and no goroutine: the scripted CLI fails the test
// if it is still running at its end.
func TestPitfall59_BreakingOutEndsTheProcess(t *testing.T) {
	newCLI := func(t *testing.T) *claudetest.ScriptedCLI {
		return claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Await("user")
			s.State("running")
			s.SendText("one")
			s.SendText("two")
			s.Answer(s.Await("control_request"), map[string]any{}) // the interrupt
			s.Result("broken off")
			s.State("idle")
			s.UntilEOF()
		})
	}
	prompts := func(yield func(claude.Prompt, error) bool) { yield(claude.Text("go"), nil) }
	loops := map[string]func(*testing.T, *claude.Options) iter.Seq2[claude.Message, error]{
		"Query": func(t *testing.T, o *claude.Options) iter.Seq2[claude.Message, error] {
			return claude.Query(t.Context(), "go", o)
		},
		"QueryStream": func(t *testing.T, o *claude.Options) iter.Seq2[claude.Message, error] {
			return claude.QueryStream(t.Context(), prompts, o)
		},
		"Turn": func(t *testing.T, o *claude.Options) iter.Seq2[claude.Message, error] {
			return mustConnect(t, o).Turn(t.Context(), claude.Text("go"))
		},
		"Messages": func(t *testing.T, o *claude.Options) iter.Seq2[claude.Message, error] {
			c := mustConnect(t, o)
			if err := c.Send(t.Context(), claude.Text("go")); err != nil {
				t.Fatal(err)
			}
			return c.Messages()
		},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			for m, err := range loop(t, newCLI(t).Options()) {
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := m.(*claude.AssistantMessage); ok {
					break
				}
			}
		})
	}
}

// mustConnect connects without closing at the end.
func mustConnect(t *testing.T, o *claude.Options) *claude.Client {
	t.Helper()
	c, err := claude.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Close comes twice, from several goroutines, in the middle of a turn and before anything was
// started. All of them wait for the same end.
func TestPitfall60_CloseAgainAndFromAnywhere(t *testing.T) {
	t.Run("at once in mid-turn", func(t *testing.T) {
		cli := claudetest.CLI(t)
		model := claudetest.NewModel(t, script.Hang())
		c := mustConnect(t, cli.Options(model))
		if err := c.Send(t.Context(), claude.Text("wait")); err != nil {
			t.Fatal(err)
		}
		if err := model.WaitRequests(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := c.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		all.Wait()
		if err := c.Close(); err != nil {
			t.Errorf("Close again: %v", err)
		}
		if err := c.Send(t.Context(), claude.Text("hello?")); !errors.Is(err, claude.ErrClosed) {
			t.Errorf("Send after Close: %v, want ErrClosed", err)
		}
	})
	t.Run("before the start", func(t *testing.T) {
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) { s.UntilEOF() })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if c, err := claude.Connect(ctx, cli.Options()); c != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("Connect with an ended context: %v, %v", c, err)
		}
	})
}

// A background task may end with no more than an update of its state. A client that waits for the
// notification alone counts it as running for ever, and the turn never ends.
func TestPitfall61_TasksMayEndByAnUpdateAlone(t *testing.T) {
	for _, status := range []string{"completed", "failed", "killed"} {
		t.Run(status, func(t *testing.T) {
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.SendText("working") // no session state: as an older CLI does it
				s.Line(`{"type":"system","subtype":"task_started","task_id":"a","task_type":"local_agent","description":"d","session_id":"s","uuid":"u"}`)
				s.Line(`{"type":"system","subtype":"task_updated","task_id":"a","patch":{"status":"` + status + `"},"session_id":"s","uuid":"u"}`)
				s.Result("done")
				s.UntilEOF()
			})
			opts := cli.Options()
			opts.BackgroundCeiling = -1 // never: a task that is not let go hangs the test
			end, messages := turn(t, claudetest.Connect(t, opts), "go")
			if end.Forced || end.Answer.Result != "done" {
				t.Errorf("turn end %+v", end)
			}
			if updates := of[*claude.TaskUpdated](messages); len(updates) != 1 || !updates[0].Patch.Ended() {
				t.Errorf("updates %+v", updates)
			}
		})
	}
}

// After /clear the totals start again from zero. A client that does not report it shows a
// conversation that costs less the longer it lasts.
func TestPitfall62_ResetOfTheConversationIsReported(t *testing.T) {
	cli := claudetest.CLI(t)
	usage := script.Usage{Input: 1000, Output: 1000}
	model := claudetest.NewModel(t, script.Text("One.").Metered(usage), script.Text("Two.").Metered(usage))
	c := claudetest.Connect(t, cli.Options(model))
	var costs claude.CostTracker
	var resets []*claude.ConversationReset
	var last *claude.ResultMessage
	sum := 0.0
	for _, prompt := range []string{"xylophone", "/clear", "two"} {
		end, messages := turn(t, c, prompt)
		resets = append(resets, of[*claude.ConversationReset](messages)...)
		for _, m := range messages {
			if turn, ok := costs.Observe(m); ok {
				sum += turn.CostUSD
			}
		}
		last = end.Answer
	}
	if len(resets) != 1 || resets[0].Trigger != "clear" || resets[0].NewConversationID == "" {
		t.Errorf("resets %+v, want one", resets)
	}
	if model.LastRequest().SawText("xylophone") {
		t.Errorf("the conversation was not cleared, so that this test shows nothing")
	}
	if got := costs.Sum().CostUSD; got <= last.TotalCostUSD || math.Abs(got-sum) > 1e-9 {
		t.Errorf("sum %f, of turns %f, running total %f; want the sum to outlive the reset", got, sum, last.TotalCostUSD)
	}
}

// A background agent that reports starts a turn of its own, whose result is not the answer to the
// prompt; and prompts sent together are answered together, with fewer results than prompts.
func TestPitfall63_InjectedTurnsAreNotAnswers(t *testing.T) {
	t.Run("background agent", func(t *testing.T) {
		cli := claudetest.CLI(t)
		model := claudetest.NewModel(t,
			script.Call("Agent", script.Input{"subagent_type": "general-purpose", "description": "dig", "prompt": "dig deep", "run_in_background": true}).When(script.Not(script.IsSubagent())),
			script.Text("Dug.").When(script.IsSubagent()),
			script.Text("The answer.").When(script.Not(script.IsSubagent())),
			script.Text("The report.").When(script.Not(script.IsSubagent())))
		c := claudetest.Connect(t, cli.Options(model))
		end, _ := turn(t, c, "dig in the background")
		if end.Answer == nil || end.Answer.Result != "The answer." || end.Forced {
			t.Errorf("answer %+v, want the result that belongs to the prompt", end.Answer)
		}
		last := end.Results[len(end.Results)-1]
		if len(end.Results) != 2 || last.Result != "The report." || last.IsAnswer() || last.Origin.Kind != claude.OriginTaskNotification {
			t.Errorf("%d results, the last %+v; want the report of the agent as well", len(end.Results), last)
		}
	})
	t.Run("merged prompts", func(t *testing.T) {
		cli := claudetest.CLI(t)
		release := make(chan struct{})
		model := claudetest.NewModel(t, script.Func(func(*script.Request) script.Turn { <-release; return script.Text("First.") }), script.Text("Rest.").Always())
		c := claudetest.Connect(t, cli.Options(model))
		ids := []string{"00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002", "00000000-0000-4000-8000-000000000003"}
		for i, id := range ids {
			if err := c.Send(t.Context(), claude.Prompt{Text: "prompt " + id, UUID: id}); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if err := model.WaitRequests(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := c.Request(t.Context(), "get_session_cost", nil); err != nil { // all prompts were read
			t.Fatal(err)
		}
		close(release)
		next, stop := iter.Pull2(c.Messages())
		defer stop()
		end := untilTurnEnd(t, next)
		var answered []string
		for _, r := range end.Results {
			answered = append(answered, r.UserMessageUUIDs...)
		}
		slices.Sort(answered)
		if !slices.Equal(slices.Compact(answered), ids) || len(end.Results) >= len(ids) {
			t.Errorf("%d results answer %v, want fewer than prompts, and all of %v", len(end.Results), answered, ids)
		}
	})
}

// The cost in a result is that of the whole conversation so far. Added up it counts early turns
// again with each later one.
func TestPitfall64_TotalsAreRunning(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("ok").Metered(script.Usage{Input: 1000, Output: 1000}).Always())
	c := claudetest.Connect(t, cli.Options(model))
	var costs claude.CostTracker
	var turns []float64
	var last *claude.ResultMessage
	for range 3 {
		end, _ := turn(t, c, "go")
		cost, _ := costs.Observe(end.Answer)
		turns = append(turns, cost.CostUSD)
		last = end.Answer
	}
	if turns[0] <= 0 || math.Abs(turns[2]-turns[0]) > turns[0]/2 {
		t.Errorf("turns cost %v, want about the same each", turns)
	}
	if got := costs.Sum(); math.Abs(got.CostUSD-last.TotalCostUSD) > 1e-9 {
		t.Errorf("sum %f, want the last running total %f", got.CostUSD, last.TotalCostUSD)
	}
	for name, u := range last.ModelUsage {
		if got := costs.Sum().Models[name]; got.OutputTokens != u.OutputTokens || u.OutputTokens < 3000 {
			t.Errorf("%s: %d output tokens, want %d", name, got.OutputTokens, u.OutputTokens)
		}
	}
}

// The answer to an interrupt and the result of the broken turn come in either order, and the CLI
// exits with code 1 afterwards. Neither order may hang or lose anything, and the exit is no crash.
func TestPitfall65_InterruptAndResultInEitherOrder(t *testing.T) {
	result := `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","errors":["[ede_diagnostic] x"],"num_turns":1,"session_id":"s","uuid":"u"}`
	for name, receiptFirst := range map[string]bool{"receipt first": true, "result first": false} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.State("running")
				s.SendText("working")
				asked := s.Await("control_request")
				if receiptFirst {
					s.Answer(asked, map[string]any{"still_queued": []string{}})
				}
				s.Line(result)
				s.State("idle")
				if !receiptFirst {
					s.Answer(asked, map[string]any{"still_queued": []string{}})
				}
				s.UntilEOF()
				s.Exit(1)
			})
			c := claudetest.Connect(t, cli.Options()) // its Close must not fail
			done := make(chan error, 1)
			go func() {
				_, err := c.Interrupt(t.Context())
				done <- err
			}()
			_, _, err := collect(c.Turn(t.Context(), claude.Text("go")))
			if !errors.Is(err, claude.ErrInterrupted) || strings.Contains(advice.Text(err), "ede_diagnostic") {
				t.Errorf("the turn ended with %v, want ErrInterrupted without the diagnostic", err)
			}
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Interrupt: %v", err)
				}
			case <-time.After(time.Minute):
				t.Errorf("Interrupt got no answer")
			}
		})
	}
}
