// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// An even number is one that a JSON Schema of its type cannot ask for.
type even int

func (e *even) UnmarshalJSON(raw []byte) error {
	var n int
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	if n%2 != 0 {
		return fmt.Errorf("%d is odd", n)
	}
	*e = even(n)
	return nil
}

type pair struct {
	Left  even  `json:"left"`
	Right *even `json:"right"`
}

// A tree is a type that contains itself.
type tree struct {
	Name     string `json:"name"`
	Children []tree `json:"children"`
}

// Answers of every shape come through the real CLI: whatever is no object is wrapped on the way, and
// unwrapped. What is recorded is the answer itself.
func TestAnswer_EveryShapeIsWrappedAndUnwrapped(t *testing.T) {
	cli := claudetest.CLI(t)
	answersWith(t, cli, []string{"a", "b"}, `["a","b"]`, script.Input{"value": []string{"a", "b"}})
	answersWith(t, cli, 42, `42`, script.Input{"value": 42})
	answersWith(t, cli, tree{"root", []tree{{"leaf", []tree{}}}}, `{"name":"root","children":[{"name":"leaf","children":[]}]}`, script.Input{"name": "root", "children": []tree{{"leaf", []tree{}}}})
	answersWith(t, cli, pair{2, nil}, `{"left":2,"right":null}`, script.Input{"left": 2, "right": nil})
	answersWith(t, cli, map[string]int{"value": 1}, `{"value":1}`, script.Input{"value": 1})
}

func answersWith[T any](t *testing.T, cli *claudetest.RealCLI, want T, raw string, given script.Input) {
	t.Run(fmt.Sprintf("%T", want), func(t *testing.T) {
		model := claudetest.NewModel(t, script.Structured(given)).RequireAllUsed()
		s := session.New(nil)
		resp, err := drover.Evaluate(t.Context(), realCLI(t, cli, model), newPrompt[T](t), &drover.Options{Session: s})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, resp.Output); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
		ends := slices.Collect(session.Query[session.PromptExecuted](s).All())
		if len(ends) != 1 || !sameJSON(t, string(ends[0].Output), raw) || !sameJSON(t, string(resp.Structured), raw) {
			t.Errorf("recorded as %s, returned as %s; want %s", ends[0].Output, resp.Structured, raw)
		}
	})
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return cmp.Equal(x, y)
}

// A model that answers in words, or with what the type does not take, gets one message about it. The usage of both
// turns is counted.
func TestAnswer_IsRepairedOnce(t *testing.T) {
	cli := claudetest.CLI(t)
	used := script.Usage{Input: 100, Output: 10}
	model := claudetest.NewModel(t,
		script.Structured(script.Input{"left": 3, "right": nil}).Metered(used),
		script.Func(func(r *script.Request) script.Turn {
			if !strings.Contains(r.LastUserText(), "3 is odd") {
				return script.Text("I was told: " + r.LastUserText())
			}
			return script.Structured(script.Input{"left": 4, "right": 2})
		}).Metered(used),
	).RequireAllUsed()
	s := session.New(nil)
	resp, err := drover.Evaluate(t.Context(), realCLI(t, cli, model), newPrompt[pair](t), &drover.Options{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Output.Left != 4 || resp.Repairs != 1 || resp.Attempts != 1 {
		t.Errorf("the answer is %+v after %d repairs and %d attempts", resp.Output, resp.Repairs, resp.Attempts)
	}
	ends := slices.Collect(session.Query[session.PromptExecuted](s).All())
	if len(ends) != 1 {
		t.Fatalf("%d ends are recorded, want one", len(ends))
	}
	end := ends[0]
	if in, out := end.Usage.InputTokens(), end.Usage.OutputTokens(); in != 110 || out != 20 || end.Usage.TotalCostUSD() != resp.CostUSD() || resp.CostUSD() <= 0 {
		t.Errorf("%d and %d tokens for $%v are recorded, want those of both turns, 110 and 20", in, out, resp.CostUSD())
	}
	if end.Turns < 2 || end.APIDuration <= 0 || end.Duration < end.APIDuration || end.SessionID == "" || end.RunID != resp.RunID ||
		end.Adapter != "claude-code" || end.Name != "demo:task" || end.Namespace != "demo" || end.Key != "task" || end.Status != event.DoneSuccess || end.Error != "" {
		t.Errorf("the end is recorded as %+v", end)
	}
	if values := slices.Collect(session.Query[pair](s).All()); len(values) != 1 || values[0].Left != 4 {
		t.Errorf("the slice of the answers has %+v, want this one", values)
	}
}

// wordy is a turn of a CLI that succeeds without a structured answer.
func wordy(s *claudetest.ScriptSession, text string) {
	s.Await("user")
	s.State("running")
	s.SendText(text)
	s.JSON(map[string]any{"type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 1, "stop_reason": "end_turn", "session_id": "s", "uuid": "u"})
	s.State("idle")
}

// Success without a structured answer is an error, once repair has failed. It says all that is known.
func TestAnswer_MissingAfterSuccessIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			for i := range 30 {
				s.Stderr(fmt.Sprintf("line %d", i))
			}
			wordy(s, "It is 4.")
			wordy(s, "I said that it is 4.")
			s.UntilEOF()
		})
		_, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options()), newPrompt[pair](t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
		failing{
			phase: drover.PhaseResponse, kind: agent.FailureNoOutput, retry: hopeless, is: []error{claude.ErrStructuredOutput},
			payload: map[string]any{
				"output_type": "drover_test.pair", "stop_reason": "end_turn", "message_count": 3,
				"events": map[string]int{"text": 1, "error": 1, "done": 1},
			},
		}.check(t, err)
		failure, _ := errors.AsType[*drover.EvaluationError](err)
		if lines := strings.Split(fmt.Sprint(failure.Payload["stderr"]), "\n"); len(lines) != 20 || lines[19] != "line 29" {
			t.Errorf("stderr is %q, want the last 20 lines", lines)
		}
		if failure.Summary.Repairs != 1 {
			t.Errorf("%d repairs, want 1", failure.Summary.Repairs)
		}
	})
}

// Repair is for answers that the model could have given better, within the limits.
func TestAnswer_FailuresThatAreNotRepaired(t *testing.T) {
	odd := event.Done{Status: event.DoneSuccess, Output: json.RawMessage(`{"left":1,"right":null}`)}
	for name, x := range map[string]struct {
		steps []agenttest.Step
		opts  drover.Options
		runs  int
		is    error
	}{
		"an answer that does not fit": {[]agenttest.Step{agenttest.Emit(odd)}, drover.Options{}, 2, prompt.ErrOutput},
		"no answer at all":            {[]agenttest.Step{agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: "Four."})}, drover.Options{}, 2, nil},
		"a failure":                   {[]agenttest.Step{agenttest.Emit(event.Done{Status: event.DoneError})}, drover.Options{}, 1, nil},
		"a limit":                     {[]agenttest.Step{agenttest.Emit(event.Done{Status: event.DoneMaxTurns, Output: odd.Output})}, drover.Options{}, 1, nil},
		"after the deadline":          {[]agenttest.Step{agenttest.Obstinate(), agenttest.Sleep(time.Minute), agenttest.Emit(odd)}, drover.Options{Deadline: guard.FromNow(time.Hour)}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := agenttest.New(x.steps...)
				x.opts.Dir = t.TempDir()
				if !x.opts.Deadline.IsZero() {
					x.opts.Deadline = guard.FromNow(time.Minute) // by the clock of the test
				}
				_, err := drover.Evaluate(t.Context(), a, newPrompt[pair](t), &x.opts)
				if n := len(a.Requests()); err == nil || n != x.runs || x.is != nil && !errors.Is(err, x.is) {
					t.Errorf("after %d runs: %v; want %d and an error", n, err, x.runs)
				}
			})
		})
	}
}

// The model calls and the time of the model are those of each prompt, though the CLI adds them up.
func TestSummary_FiguresAreThoseOfEachPrompt(t *testing.T) {
	cli := claudetest.CLI(t)
	const slow = 300 * time.Millisecond
	look := script.ToolCall{Name: "Glob", Input: script.Input{"pattern": "*"}}
	model := claudetest.NewModel(t,
		script.Text("One.").Delayed(2*slow), script.Reply(look, look).Delayed(slow), script.Text("Two.").Delayed(slow), script.Text("Three."),
	).RequireAllUsed()
	c := drover.Converse(realCLI(t, cli, model), newPrompt[prompt.Text](t), nil)
	defer c.Close()
	for i, want := range []struct {
		turns int
		min   time.Duration
	}{{1, 2 * slow}, {2, 2 * slow}, {1, 0}} {
		resp, err := c.Send(t.Context(), "Go on.")
		if err != nil {
			t.Fatal(err)
		}
		if resp.Turns != want.turns || resp.APIDuration < want.min || resp.APIDuration > resp.Duration || resp.Usage.InputTokens() != int64(10*want.turns) {
			t.Errorf("prompt %d: %d turns, %s of %s, %d tokens; want %d and at least %s", i, resp.Turns, resp.APIDuration, resp.Duration, resp.Usage.InputTokens(), want.turns, want.min)
		}
	}
}

// The real CLI reports success where the model answers in words, and gives up where its answers never fit.
func TestRealCLI_WithoutAStructuredAnswer(t *testing.T) {
	cli := claudetest.CLI(t)
	wrong := script.Structured(script.Input{"summary": 4})
	model := claudetest.NewModel(t,
		wrong.When(script.LastUserText("Never fit.")).Always(), wrong.When(script.AfterTool(script.StructuredOutputTool)).Always(), script.Text("It is four.").Always())
	c := drover.Converse(realCLI(t, cli, model), newPrompt[review](t), nil)
	defer c.Close()
	_, err := c.Begin(t.Context())
	failing{
		phase: drover.PhaseResponse, kind: agent.FailureNoOutput, retry: hopeless, is: []error{claude.ErrStructuredOutput},
		payload: map[string]any{"output_type": "drover_test.review", "stop_reason": "end_turn"},
	}.check(t, err)
	if failure, _ := errors.AsType[*drover.EvaluationError](err); failure.Summary.Repairs != 1 || !model.SawText("Your last answer cannot be used: you replied with text, not with structured output.") {
		t.Errorf("%d repairs, want one that the model reads", failure.Summary.Repairs)
	}
	_, err = c.Send(t.Context(), "Never fit.")
	failing{
		phase: drover.PhaseResponse, kind: agent.FailureOutputRetries, retry: hopeless, is: []error{claude.ErrStructuredOutput},
		payload: map[string]any{"subtype": "error_max_structured_output_retries"},
	}.check(t, err)
}

// A checker sees the answer as the prompt's type has it.
func TestChecker_SeesTheUnwrappedAnswer(t *testing.T) {
	var seen []string
	checker := guard.CheckerFunc(func(_ context.Context, a guard.Attempt) (guard.Completion, error) {
		seen = append(seen, string(a.Output))
		return guard.Complete(), nil
	})
	given := json.RawMessage(`{"value":["a"]}`)
	_, err := drover.Evaluate(t.Context(), agenttest.New(func(r *agenttest.Run) {
		if _, err := r.Request.Hooks.Answering(r.Context, agent.Answer{Output: given}); err != nil {
			t.Error(err)
		}
	}, agenttest.Emit(event.Done{Status: event.DoneSuccess, Output: given})), newPrompt[[]string](t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Completion: checker})
	if diff := cmp.Diff([]string{`["a"]`}, seen); err != nil || diff != "" {
		t.Errorf("%v; the checker has seen (-want +got):\n%s", err, diff)
	}
}
