// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// newPrompt is a prompt with one section.
func newPrompt[T any](t testing.TB) *prompt.Prompt[T] {
	t.Helper()
	p, err := prompt.NewPrompt[T]("demo", "task", prompt.Markdown("task", "Task", "Do it."))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A failing is what is expected of a failed evaluation.
type failing struct {
	phase    drover.Phase
	kind     agent.FailureKind
	throttle drover.ThrottleKind // empty: it is no throttling
	retry    drover.RetryAdvice
	is       []error
	says     []string       // in the text, advice included
	payload  map[string]any // some of it
}

// check compares, and looks after what holds for every failure.
func (f failing) check(t *testing.T, err error) {
	t.Helper()
	got, ok := errors.AsType[*drover.EvaluationError](err)
	if !ok {
		t.Fatalf("error is %T %v, want an EvaluationError", err, err)
	}
	if got.Phase != f.phase || got.Kind != f.kind || got.Retry != f.retry {
		t.Errorf("phase %q, kind %q, advice %+v; want %q, %q, %+v\n%v", got.Phase, got.Kind, got.Retry, f.phase, f.kind, f.retry, err)
	}
	throttle, throttled := errors.AsType[*drover.ThrottleError](err)
	if throttled != (f.throttle != "") || throttled && (throttle.Kind != f.throttle || throttle.Attempts != 1 || throttle.RetrySafe != f.retry.Safe || throttle.RetryAfter != f.retry.After) {
		t.Errorf("throttling is %+v, want %q after 1 attempt", throttle, f.throttle)
	}
	for _, target := range f.is {
		if !errors.Is(err, target) {
			t.Errorf("%v\nis not %v", err, target)
		}
	}
	for _, words := range append(f.says, "demo") {
		if !strings.Contains(advice.Text(err), words) {
			t.Errorf("%v\ndoes not say %q", err, words)
		}
	}
	if got.Message == "" || got.Next == "" || !strings.Contains(advice.Text(err), "\n  next: ") {
		t.Errorf("message %q, next %q; want both, and both in the text:\n%v", got.Message, got.Next, err)
	}
	for key, want := range f.payload {
		if diff := cmp.Diff(want, got.Payload[key]); diff != "" {
			t.Errorf("payload %s (-want +got):\n%s", key, diff)
		}
	}
	if _, err := json.Marshal(got.Payload); err != nil {
		t.Errorf("the payload has no JSON form: %v", err)
	}
	if got.Summary.Session == nil || got.Summary.RunID == "" || got.Summary.Status == event.DoneSuccess || got.Summary.Status == "" {
		t.Errorf("the summary is %+v", got.Summary)
	}
}

var (
	hopeless = drover.RetryAdvice{Safe: true}
	later    = drover.RetryAdvice{Worthwhile: true, Safe: true}
)

// result plays a turn of a CLI that ends with a result line.
func result(fields map[string]any) claudetest.CLIScript {
	line := map[string]any{"type": "result", "subtype": "success", "is_error": true, "num_turns": 1, "session_id": "s", "uuid": "u"}
	for key, value := range fields {
		line[key] = value
	}
	return func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		s.State("running")
		s.JSON(line)
		s.State("idle")
		s.UntilEOF()
	}
}

// endOfTask ends a turn with the result of something else, and the CLI.
func endOfTask(s *claudetest.ScriptSession) {
	s.JSON(map[string]any{"type": "result", "subtype": "success", "result": "a task ended", "origin": map[string]any{"kind": "task-notification"}, "session_id": "s", "uuid": "u"})
	s.State("idle")
	s.Exit(0)
}

func status(code int) claudetest.CLIScript {
	return result(map[string]any{"api_error_status": code, "result": "API Error: it is so"})
}

// Each way in which a CLI can fail is an error of one kind, with the phase and the advice that belong to it.
func TestEvaluationError_KindOfEachCLIFailure(t *testing.T) {
	for name, x := range map[string]struct {
		script claudetest.CLIScript
		opts   drover.Options
		want   failing
	}{
		"it dies at once": {
			func(s *claudetest.ScriptSession) { s.Stderr("error: unknown option"); s.Exit(1) },
			drover.Options{},
			failing{
				phase: drover.PhaseRequest, kind: agent.FailureRequest, retry: hopeless, says: []string{"Claude Code process failed: error: unknown option"},
				payload: map[string]any{"exit_code": 1, "stderr": "error: unknown option"},
			},
		},
		"it dies in the middle": {
			func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.Stderr("out of memory")
				s.Exit(137)
			},
			drover.Options{},
			failing{
				phase: drover.PhaseRequest, kind: agent.FailureProcess, retry: later, says: []string{"Claude Code process failed: out of memory"},
				payload: map[string]any{"exit_code": 137, "stderr": "out of memory", "during": "a turn"},
			},
		},
		"it dies without a word": {
			func(s *claudetest.ScriptSession) { s.Initialize(""); s.Await("user"); s.Exit(0) },
			drover.Options{},
			failing{phase: drover.PhaseRequest, kind: agent.FailureProcess, retry: later, says: []string{"Claude Code process failed: it ended during a turn"}},
		},
		"it does not answer": {
			func(s *claudetest.ScriptSession) { s.Hang() },
			drover.Options{},
			failing{phase: drover.PhaseRequest, kind: agent.FailureStart, throttle: drover.ThrottleTimeout, retry: later, says: []string{"no answer to initialize"}},
		},
		"it writes what is not JSON": {
			func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.Line(`{"type":"result",`)
				endOfTask(s)
			},
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureProtocol, retry: hopeless, says: []string{"Failed to parse SDK response: "}, is: []error{claude.ErrNoAnswer}},
		},
		"it writes what is not JSON and rests": {
			func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.State("running")
				s.Line(`{"type":"result","subtype":"succ`)
				s.State("idle")
				s.UntilEOF()
			},
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureProtocol, retry: hopeless, says: []string{"Failed to parse SDK response: "}, is: []error{claude.ErrNoAnswer}},
		},
		"an old one writes what is not JSON": {
			func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.Line(`{"type":"result","subtype":"succ`)
				s.UntilEOF()
			},
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureProtocol, retry: hopeless, says: []string{"Failed to parse SDK response: "}, is: []error{claude.ErrNoAnswer}},
		},
		"a part of a line, and rests": {
			func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.State("running")
				s.Line(`{"subtype":"success","type":"resu`)
				s.State("idle")
				s.UntilEOF()
			},
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureProtocol, retry: hopeless, says: []string{"Failed to parse SDK response: "}, is: []error{claude.ErrNoAnswer}},
		},
		"it writes too much": {
			func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.Line(strings.Repeat("x", 2<<20))
				s.UntilEOF()
			},
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureProtocol, retry: hopeless, says: []string{"Failed to parse SDK response: "}},
		},
		"it refuses to start": {
			result(map[string]any{"subtype": "error_during_execution", "errors": []string{"not as root"}, "startup_failure_reason": "bypass_root"}),
			drover.Options{},
			failing{phase: drover.PhaseRequest, kind: agent.FailureRequest, retry: hopeless, is: []error{claude.ErrStartup}, payload: map[string]any{"startup_failure_reason": "bypass_root"}},
		},
		"no result": {
			func(s *claudetest.ScriptSession) { s.Initialize(""); s.Await("user"); s.SendText("Hm."); endOfTask(s) },
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureNoResult, retry: later, is: []error{claude.ErrNoAnswer}, says: []string{"No result message received from SDK"}},
		},
		"turns used up": {
			result(map[string]any{"subtype": "error_max_turns"}),
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureMaxTurns, retry: hopeless, is: []error{claude.ErrMaxTurns}, payload: map[string]any{"subtype": "error_max_turns", "status": "max_turns"}},
		},
		"money used up": {
			result(map[string]any{"subtype": "error_max_budget_usd"}),
			drover.Options{},
			failing{phase: drover.PhaseBudget, kind: agent.FailureMaxBudget, retry: hopeless, is: []error{claude.ErrMaxBudget, guard.ErrBudgetExhausted}},
		},
		"no output that fits": {
			result(map[string]any{"subtype": "error_max_structured_output_retries"}),
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureOutputRetries, retry: hopeless, is: []error{claude.ErrStructuredOutput}},
		},
		"an error of its own": {
			result(map[string]any{"subtype": "error_during_execution", "errors": []string{"it broke"}}),
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureExecution, retry: hopeless, says: []string{"it broke"}, payload: map[string]any{"subtype": "error_during_execution"}},
		},
		"a refusal": {
			result(map[string]any{"stop_reason": "refusal", "result": "No."}),
			drover.Options{},
			failing{phase: drover.PhaseResponse, kind: agent.FailureRefusal, retry: hopeless, payload: map[string]any{"stop_reason": "refusal"}},
		},
		"a prompt that is too long": {
			result(map[string]any{"terminal_reason": "prompt_too_long", "result": "Prompt is too long"}),
			drover.Options{},
			failing{phase: drover.PhaseRequest, kind: agent.FailureTooLarge, retry: hopeless, is: []error{claude.ErrPromptTooLong}},
		},
		"no connection": {
			result(map[string]any{"api_error": "connection_failed", "result": "Unable to connect"}),
			drover.Options{},
			failing{phase: drover.PhaseRequest, kind: agent.FailureTimeout, throttle: drover.ThrottleTimeout, retry: later},
		},
		"400": {status(400), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureRequest, retry: hopeless, payload: map[string]any{"api_error_status": 400}}},
		"401": {status(401), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureAuthentication, retry: hopeless, is: []error{claude.ErrAuthentication}}},
		"402": {status(402), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureQuota, throttle: drover.ThrottleQuota, retry: hopeless}},
		"403": {status(403), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureAuthentication, retry: hopeless}},
		"404": {status(404), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureRequest, retry: hopeless}},
		"413": {status(413), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureTooLarge, retry: hopeless}},
		"429": {status(429), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureRateLimit, throttle: drover.ThrottleRateLimit, retry: later, is: []error{claude.ErrRateLimited}, payload: map[string]any{"api_error_status": 429}}},
		"500": {status(500), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureServer, retry: later}},
		"504": {status(504), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureTimeout, throttle: drover.ThrottleTimeout, retry: later}},
		"529": {status(529), drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureOverloaded, throttle: drover.ThrottleOverloaded, retry: later, is: []error{claude.ErrOverloaded}}},
		"an option that cannot be": {
			status(500),
			drover.Options{Settings: agent.Settings{Effort: "no such effort"}},
			failing{phase: drover.PhaseRequest, kind: agent.FailureRequest, retry: hopeless, says: []string{"no such effort"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := claudetest.ScriptCLI(t, x.script).Options()
				opts.MaxLineBytes = 1 << 20
				x.opts.Dir = t.TempDir()
				_, err := drover.Evaluate(t.Context(), claudecode.New(opts), newPrompt[review](t), &x.opts)
				x.want.check(t, err)
			})
		})
	}
}

// The error of a CLI that cannot be started names the command that fixes the cause.
func TestEvaluationError_CLIThatCannotStartNamesTheFix(t *testing.T) {
	missing := claudecode.New(&claude.Options{CLIPath: "/nonexistent/claude"})
	_, err := drover.Evaluate(t.Context(), missing, newPrompt[review](t), nil)
	failing{
		phase: drover.PhaseRequest, kind: agent.FailureUnavailable, retry: hopeless, is: []error{agent.ErrUnavailable, claude.ErrCLINotFound},
		says: []string{"Claude Code CLI not found. Install: npm install -g @anthropic-ai/claude-code", "npm install"},
	}.check(t, err)

	old := agenttest.New()
	old.Readiness = agent.Readiness{State: agent.StateUnsupported, Detail: "version 1 is too old", Repair: "npm install it"}
	_, err = drover.Evaluate(t.Context(), old, newPrompt[review](t), nil)
	failing{phase: drover.PhaseRequest, kind: agent.FailureUnavailable, retry: hopeless, is: []error{agent.ErrUnavailable}, says: []string{"too old", "npm install it"}}.check(t, err)
}

// impatient passes on at once the answers of an overloaded upstream.
var impatient = gateway.New(&gateway.Options{MaxWait: time.Millisecond})

// realCLI is the real CLI, which does not repeat requests.
func realCLI(t *testing.T, cli *claudetest.RealCLI, model *claudetest.Model) *claudecode.Adapter {
	t.Helper()
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0"})
	opts.PermissionMode = claude.ModeBypassPermissions
	return claudecode.New(opts).In(&isolation.Isolation{Gateway: impatient})
}

// The real CLI reports these errors in the same way. Each is a turn of one conversation, which goes on.
func TestEvaluationError_KindOfEachModelFailure(t *testing.T) {
	cases := []struct {
		name string
		turn script.Turn
		want failing
	}{
		{"forbidden", script.Fail(403, "not you"), failing{phase: drover.PhaseRequest, kind: agent.FailureAuthentication, retry: hopeless, is: []error{claude.ErrAuthentication}}},
		{"rate limit", script.Fail(429, "slowly").RetryAfter(600 * time.Second), failing{
			phase: drover.PhaseRequest, kind: agent.FailureRateLimit, throttle: drover.ThrottleRateLimit,
			retry: drover.RetryAdvice{Worthwhile: true, Safe: true, After: 600 * time.Second}, is: []error{claude.ErrRateLimited}, payload: map[string]any{"api_error_status": 429},
		}},
		{"overloaded", script.Fail(529, "too much"), failing{phase: drover.PhaseRequest, kind: agent.FailureOverloaded, throttle: drover.ThrottleOverloaded, retry: later, is: []error{claude.ErrOverloaded}}},
		{"server", script.Fail(500, "broken"), failing{phase: drover.PhaseRequest, kind: agent.FailureServer, retry: later}},
		{"quota", script.Fail(402, "pay first"), failing{phase: drover.PhaseRequest, kind: agent.FailureQuota, throttle: drover.ThrottleQuota, retry: hopeless}},
		{"refusal", script.Refusal("I will not.").Times(2), failing{phase: drover.PhaseResponse, kind: agent.FailureRefusal, retry: hopeless}},
	}
	cli := claudetest.CLI(t)
	var turns []script.Turn
	for _, x := range cases {
		turns = append(turns, x.turn)
	}
	model := claudetest.NewModel(t, append(turns, script.Text("At last."))...).RequireAllUsed()
	c := drover.Converse(realCLI(t, cli, model), newPrompt[prompt.Text](t), nil)
	defer c.Close()
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			_, err := c.Send(t.Context(), "Do it.")
			x.want.check(t, err)
		})
	}
	resp, err := c.Send(t.Context(), "And now?")
	if err != nil || resp.Output != "At last." {
		t.Errorf("after the errors: %v, %v", resp, err)
	}
}

// Limits that have come end an evaluation before anything is started; so does a context that has ended.
func TestEvaluate_ReachedLimitEndsItBeforeTheStart(t *testing.T) {
	spent := guard.NewTracker(guard.Budget{MaxTotalTokens: 10})
	spent.Record(guard.Usage{InputTokens: 10})
	over, cancel := context.WithCancelCause(t.Context())
	because := errors.New("enough")
	cancel(because)
	for name, x := range map[string]struct {
		ctx  context.Context
		opts drover.Options
		want failing
	}{
		"deadline": {t.Context(), drover.Options{Deadline: guard.FromNow(-time.Second)}, failing{phase: drover.PhaseRequest, kind: agent.FailureInterrupted, retry: hopeless, is: []error{guard.ErrDeadlineExceeded, context.DeadlineExceeded}, says: []string{"Deadline expired before SDK invocation"}}},
		"budget":   {t.Context(), drover.Options{Tracker: spent}, failing{phase: drover.PhaseBudget, kind: agent.FailureMaxBudget, retry: hopeless, is: []error{guard.ErrBudgetExhausted}}},
		"a deadline that belongs to the budget": {t.Context(), drover.Options{Settings: agent.Settings{Budget: &guard.Budget{Deadline: guard.FromNow(-time.Second)}}}, failing{
			phase: drover.PhaseRequest, kind: agent.FailureInterrupted, retry: hopeless, is: []error{guard.ErrDeadlineExceeded}, says: []string{"Deadline expired before SDK invocation"},
		}},
		"context": {over, drover.Options{}, failing{phase: drover.PhaseRequest, kind: agent.FailureInterrupted, retry: hopeless, is: []error{context.Canceled, because}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := agenttest.New(agenttest.Done(""))
			s := session.New(nil)
			x.opts.Session = s
			_, err := drover.Evaluate(x.ctx, a, newPrompt[prompt.Text](t), &x.opts)
			x.want.check(t, err)
			if n := len(a.Requests()); n != 0 {
				t.Errorf("the agent was started %d times", n)
			}
			ends := slices.Collect(session.Query[session.PromptExecuted](s).All())
			if len(ends) != 1 || ends[0].Error == "" || ends[0].Status == event.DoneSuccess {
				t.Errorf("the session has the ends %+v, want the failure once", ends)
			}
		})
	}
}

// A deadline, a budget and a cancellation end a run of the real CLI that has begun. What it has used by
// then is known.
func TestLimits_EndARunOfTheRealCLI(t *testing.T) {
	because := errors.New("enough")
	for name, x := range map[string]struct {
		turns []script.Turn
		opts  drover.Options
		after time.Duration // the deadline, if there is one
		stop  bool
		want  failing
	}{
		"deadline": {[]script.Turn{script.Hang()}, drover.Options{}, 2 * time.Second, false, failing{
			phase: drover.PhaseResponse, kind: agent.FailureInterrupted, retry: hopeless, is: []error{guard.ErrDeadlineExceeded, context.DeadlineExceeded},
		}},
		"cancel": {[]script.Turn{script.Hang()}, drover.Options{}, 0, true, failing{
			phase: drover.PhaseResponse, kind: agent.FailureInterrupted, retry: hopeless, is: []error{context.Canceled, because},
		}},
		"budget": {[]script.Turn{script.Call("TodoWrite", script.Input{"todos": []any{}}).Metered(script.Usage{Input: 600, Output: 500})}, drover.Options{Settings: agent.Settings{Budget: &guard.Budget{MaxCostUSD: 0.00001}}}, 0, false, failing{
			phase: drover.PhaseBudget, kind: agent.FailureMaxBudget, retry: hopeless, is: []error{guard.ErrBudgetExhausted},
		}},
		"turns": {[]script.Turn{script.Call("Glob", script.Input{"pattern": "*"}).Always()}, drover.Options{Settings: agent.Settings{MaxTurns: 2}}, 0, false, failing{
			phase: drover.PhaseResponse, kind: agent.FailureMaxTurns, retry: hopeless, is: []error{claude.ErrMaxTurns},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t, x.turns...)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if x.after != 0 {
				x.opts.Deadline = guard.FromNow(x.after)
			}
			if x.stop {
				go func() {
					_ = model.WaitRequests(ctx, 1)
					cancel(because)
				}()
			}
			_, err := drover.Evaluate(ctx, realCLI(t, cli, model), newPrompt[prompt.Text](t), &x.opts)
			x.want.check(t, err)
			if failure, _ := errors.AsType[*drover.EvaluationError](err); name == "budget" && failure.Summary.CostUSD() == 0 {
				t.Errorf("the usage is %+v, want what was spent", failure.Summary.Usage)
			}
		})
	}
}
