// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/session"
)

func TestHooks_ContextIsAddedToThePromptOnce(t *testing.T) {
	s := session.New(nil)
	dir := t.TempDir()
	for _, e := range []any{session.Workspace{Root: dir}, session.PlanUpdated{Steps: []session.PlanStep{{Description: "read it", Status: "in_progress"}}}} {
		if _, err := s.Dispatch(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	lines := "[Context] Current task: read it\n[Context] Working directory: " + dir
	var first, later string
	resp, err := play(t, &drover.Options{Session: s, Settings: agent.Settings{Dir: dir}}, func(r *agenttest.Run) {
		if !strings.HasPrefix(r.Request.Prompt, lines+"\n\n") || !strings.Contains(r.Request.Prompt, "Review it.") {
			t.Errorf("the first message is %q", r.Request.Prompt)
		}
		first, _ = r.Request.Hooks.Submitted(r.Context, agent.Submission{Prompt: r.Request.Prompt})
		later, _ = r.Request.Hooks.Submitted(r.Context, agent.Submission{Prompt: "go on"})
	}, answers())
	if err != nil {
		t.Fatal(err)
	}
	if first != "" || later != lines {
		t.Errorf("beside the first message the agent receives %q, beside a later one %q", first, later)
	}
	if resp.Stats.Prompts != 2 {
		t.Errorf("%d messages are counted, want 2", resp.Stats.Prompts)
	}
}

func TestFeedback_IsGivenAfterCalls(t *testing.T) {
	s := session.New(nil)
	rule := guard.FeedbackRule{Provider: guard.StaticFeedback{As: "nag", Text: "hurry"}, Trigger: guard.FeedbackTrigger{EveryCalls: 2}}
	if _, err := play(t, &drover.Options{Session: s, Feedback: []guard.FeedbackRule{rule}},
		makes(call("1", "Bash", `{}`), `""`, ""), makes(call("2", "Bash", `{}`), ``, "failed"), answers()); err != nil {
		t.Fatal(err)
	}
	if got, _ := session.Query[session.Feedback](s).Latest(); got.CallID != "2" || got.Summary != "hurry" {
		t.Errorf("the feedback is %+v", got)
	}
	received := false
	for e := range s.Events() {
		text, ok := e.Payload.(event.Text)
		received = received || ok && strings.Contains(text.Content, "<feedback provider='nag'>\nhurry")
	}
	if !received {
		t.Error("the agent did not receive the feedback")
	}
}

type brokenFeedback struct{}

func (brokenFeedback) Name() string { return "broken" }
func (brokenFeedback) Provide(context.Context, *session.Session) (session.Feedback, error) {
	return session.Feedback{}, errors.New("no idea")
}

func TestHooks_FailuresAreCountedAndDoNotEndTheRun(t *testing.T) {
	rule := guard.FeedbackRule{Provider: brokenFeedback{}, Trigger: guard.FeedbackTrigger{EveryCalls: 1}}
	panics := guard.CheckerFunc(func(context.Context, guard.Attempt) (guard.Completion, error) { panic("no") })
	var logged strings.Builder
	log := slog.New(slog.NewTextHandler(&logged, nil))
	_, err := play(t, &drover.Options{Feedback: []guard.FeedbackRule{rule}, Completion: panics, MaxRounds: 1, Logger: log},
		makes(call("1", "Bash", `{}`), `""`, ""), answers())
	resp, ok := drover.IncompleteResponse[review](err)
	if !ok {
		t.Fatal(err)
	}
	if resp.Stats.HookErrors != 2+2 || resp.Completion.Done { // a call and a check in each of two turns
		t.Errorf("%d errors are counted, and the task is done: %v", resp.Stats.HookErrors, resp.Completion.Done)
	}
	if want := "The completion check failed to run. Keep working"; !strings.HasPrefix(resp.Completion.Feedback, want) {
		t.Errorf("the feedback is %q, want %q", resp.Completion.Feedback, want)
	}
	if got := logged.String(); strings.Count(got, `level=ERROR msg="Hook error" hook=`) != 2 || strings.Count(got, " error=") != 2+2+1 { // the last is that of the evaluation
		t.Errorf("logged:\n%s", got)
	}
}

// The hook of a call that has ended records it at once, before the stream reports it and before the run ends.
func TestCallEnded_RecordsAtOnce(t *testing.T) {
	s := session.New(nil)
	c := call("1", "Bash", `{"command":"ls"}`)
	_, err := play(t, &drover.Options{Session: s}, func(r *agenttest.Run) {
		ask(r, c, func(c event.ToolCall) {
			if _, err := r.Request.Hooks.CallEnded(r.Context, agent.CallEnd{ToolCall: c, Status: event.ToolSuccess, Output: json.RawMessage(`{"stdout":"a"}`)}); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"1 Bash native success"}, recorded(s)); diff != "" {
				t.Errorf("recorded when the hook returns (-want +got):\n%s", diff)
			}
			if got, _ := session.Query[session.ToolInvoked](s).Latest(); string(got.Value) != `{"stdout":"a"}` {
				t.Errorf("the value is %s", got.Value)
			}
		})
	}, answers())
	if err != nil {
		t.Fatal(err)
	}
}

func TestHooks_SubagentsAndCompactionsAreRecordedAndCounted(t *testing.T) {
	s := session.New(nil)
	resp, err := play(t, &drover.Options{Session: s}, func(r *agenttest.Run) {
		h := r.Request.Hooks
		h.SubagentStarted(r.Context, agent.Subagent{ID: "a", Type: "Explore"})
		h.SubagentStopped(r.Context, agent.Subagent{ID: "a", Type: "Explore", Text: "found"})
		h.Compacting(r.Context, agent.Compaction{Trigger: "auto"})
	}, answers())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(drover.Stats{Subagents: 1, Compactions: 1}, resp.Stats); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stopped := session.Query[drover.SubagentStopped](s)
	if got, _ := stopped.Latest(); stopped.Len() != 1 || got.Text != "found" {
		t.Errorf("the session has %+v", got)
	}
	if n := session.Query[drover.Compacting](s).Len(); n != 1 {
		t.Errorf("%d compactions in the session", n)
	}
}

// finished asks whether the agent may answer, until it may.
func finishes(tries int, read *[]string) agenttest.Step {
	return func(r *agenttest.Run) {
		for range tries {
			refusal, err := r.Request.Hooks.Answering(r.Context, agent.Answer{Output: json.RawMessage(noted)})
			if err != nil || refusal == "" {
				return
			}
			*read = append(*read, refusal)
		}
	}
}

func TestCompletion_AgentContinuesUntilTheCheckPasses(t *testing.T) {
	for _, x := range []struct {
		name           string
		doneAfter, max int
		done           bool
		rounds         int
	}{
		{"at once", 0, 0, true, 0},
		{"after two rounds", 2, 0, true, 2},
		{"never, in ten rounds", 100, 0, false, 10},
		{"never, in three rounds", 100, 3, false, 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			checks := 0
			check := guard.CheckerFunc(func(_ context.Context, a guard.Attempt) (guard.Completion, error) {
				if string(a.Output) != noted || a.StopReason != "structured_output" || a.Session == nil || a.Files == nil {
					t.Errorf("asked about %+v", a)
				}
				if checks++; checks > x.doneAfter {
					return guard.Complete(), nil
				}
				return guard.Incomplete("not yet"), nil
			})
			var read []string
			resp, err := play(t, &drover.Options{Completion: check, MaxRounds: x.max}, finishes(50, &read), answers())
			if !x.done {
				resp = incomplete(t, err)
			} else if err != nil {
				t.Fatal(err)
			}
			if resp.Completion.Done != x.done || resp.Rounds != x.rounds || len(read) != x.rounds {
				t.Errorf("done %v after %d rounds, in which the model read %q", resp.Completion.Done, resp.Rounds, read)
			}
		})
	}
}

// incomplete is the response inside of the error of an evaluation whose completion check did not hold.
func incomplete(t *testing.T, err error) *drover.Response[review] {
	t.Helper()
	failure, _ := errors.AsType[*drover.EvaluationError](err)
	resp, ok := drover.IncompleteResponse[review](err)
	if !ok || failure.Kind != agent.FailureIncomplete || failure.Phase != drover.PhaseResponse || failure.Stage != drover.StageComplete || failure.Retry.Worthwhile {
		t.Fatalf("error %v, want one of the kind %s", err, agent.FailureIncomplete)
	}
	if _, other := drover.IncompleteResponse[string](err); other || resp.Output.Summary == "" || resp.Status != event.DoneError || failure.Next == "" {
		t.Errorf("the response is %+v", resp)
	}
	return resp
}

// A failed check is in the stream and in the session, whether a hook of the agent asks or the evaluation does after the turn.
func TestCompletion_EachFailedCheckIsReported(t *testing.T) {
	var read []string
	for name, step := range map[string]agenttest.Step{
		"by a hook": finishes(50, &read), "after the turn": func(*agenttest.Run) {},
	} {
		t.Run(name, func(t *testing.T) {
			never := guard.CheckerFunc(func(context.Context, guard.Attempt) (guard.Completion, error) {
				return guard.Incomplete("not yet"), nil
			})
			s := session.New(nil)
			run := drover.Stream(t.Context(), &agenttest.Adapter{Tools: catalogue.Tools(), Steps: []agenttest.Step{step, answers()}}, reviewPrompt(t),
				&drover.Options{Session: s, Completion: never, MaxRounds: 2})
			var streamed, recorded []drover.CompletionFailed
			for e := range run.Events() {
				if failed, ok := e.Payload.(drover.CompletionFailed); ok {
					streamed = append(streamed, failed)
				}
			}
			for failed := range session.Query[drover.CompletionFailed](s).All() {
				recorded = append(recorded, failed)
			}
			want := []drover.CompletionFailed{
				{Round: 1, SentBack: true, Feedback: "not yet"}, {Round: 2, SentBack: true, Feedback: "not yet"}, {Round: 3, Feedback: "not yet"},
			}
			if diff := cmp.Diff(want, streamed); diff != "" {
				t.Errorf("in the stream (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, recorded); diff != "" {
				t.Errorf("in the session (-want +got):\n%s", diff)
			}
		})
	}
}

// Not every agent asks before it stops, and none does so for ever: then another turn asks it to continue.
func TestCompletion_AgentWithoutAStopHookGetsAnotherTurn(t *testing.T) {
	dir := t.TempDir()
	turn := 0
	a := agenttest.New(func(r *agenttest.Run) {
		if turn++; turn == 3 {
			if !strings.Contains(r.Request.Prompt, "<blocker>") || !strings.Contains(r.Request.Prompt, "out.txt") {
				t.Errorf("the agent receives %q", r.Request.Prompt)
			}
			_ = os.WriteFile(filepath.Join(dir, "out.txt"), nil, 0o600)
		}
	}, answers())
	resp, err := drover.Evaluate(t.Context(), a, reviewPrompt(t), &drover.Options{Settings: agent.Settings{Dir: dir}, Completion: guard.FilesExist("out.txt")})
	if err != nil {
		t.Fatal(err)
	}
	if !resp.Completion.Done || resp.Rounds != 2 || turn != 3 {
		t.Errorf("done %v after %d rounds in %d turns, want done after 2 in 3", resp.Completion.Done, resp.Rounds, turn)
	}
}

func TestStopping_StructuredAnswerIsNotChecked(t *testing.T) {
	never := guard.CheckerFunc(func(context.Context, guard.Attempt) (guard.Completion, error) { return guard.Completion{}, nil })
	var answered, plain string
	_, err := play(t, &drover.Options{Completion: never, MaxRounds: 1}, func(r *agenttest.Run) {
		answered, _ = r.Request.Hooks.Stopping(r.Context, agent.Stop{Answered: true})
		if plain == "" {
			plain, _ = r.Request.Hooks.Stopping(r.Context, agent.Stop{})
		}
	}, answers())
	incomplete(t, err)
	if answered != "" || plain != "You are not done. Continue with the task." {
		t.Errorf("with an answer the agent receives %q, without one %q", answered, plain)
	}
}

func TestCompletion_SpentLimitsSkipTheCheck(t *testing.T) {
	never := guard.CheckerFunc(func(context.Context, guard.Attempt) (guard.Completion, error) {
		t.Error("the checker was asked")
		return guard.Completion{}, nil
	})
	now := time.Now()
	clock := guard.Clock(func() time.Time { return now })
	_, err := play(t, &drover.Options{Completion: never, Deadline: clock.FromNow(time.Hour)}, func(*agenttest.Run) { now = now.Add(2 * time.Hour) }, answers())
	if resp := incomplete(t, err); !resp.Completion.Skipped || resp.Rounds != 0 || !errors.Is(err, guard.ErrDeadlineExceeded) {
		t.Errorf("the completion is %+v after %d rounds: %v", resp.Completion, resp.Rounds, err)
	}
}
