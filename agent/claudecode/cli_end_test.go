// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
)

// The ways in which a run ends are distinguished, and a run that failed reports why.
func TestRun_Endings(t *testing.T) {
	step := script.Reply(bash("true")).Metered(script.Usage{Input: 100_000, Output: 10_000}).Always()
	for name, x := range map[string]struct {
		turn script.Turn
		req  agent.Request
		want event.DoneStatus
		is   error // what the error event wraps, if there is one
	}{
		"success":       {turn: script.Text("Done."), want: event.DoneSuccess},
		"turns used up": {turn: step, req: agent.Request{Settings: agent.Settings{MaxTurns: 2}}, want: event.DoneMaxTurns},
		"tokens spent":  {turn: step, req: agent.Request{Settings: agent.Settings{Budget: &guard.Budget{MaxTotalTokens: 1}}}, want: event.DoneMaxBudget},
		"budget spent":  {turn: step, req: agent.Request{Settings: agent.Settings{Budget: &guard.Budget{MaxCostUSD: 0.0001}}}, want: event.DoneMaxBudget},
		"bad request":   {turn: script.Fail(400, "no such thing").Always(), want: event.DoneError, is: errAny},
		"no permission": {turn: script.Fail(401, "who are you").Always(), want: event.DoneError, is: claude.ErrAuthentication},
		"overloaded":    {turn: script.Fail(529, "too many").Always(), want: event.DoneError, is: claude.ErrOverloaded},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			base := cli.Options(claudetest.NewModel(t, x.turn))
			base.PermissionMode = claude.ModeBypassPermissions
			x.req.Prompt = "go"
			got := run(t, base, x.req)
			got.check(t)
			done := got.done(t)
			if done.Status != x.want || done.ResumeToken == "" || done.Reason != "" {
				t.Errorf("done is %+v, want %s and a token to resume with", done, x.want)
			}
			failures := of[event.Error](got)
			switch {
			case x.is == nil && len(failures) != 0:
				t.Errorf("there are errors: %+v", failures)
			case x.is == nil:
			case len(failures) == 0 || failures[len(failures)-1].Code == "" || failures[len(failures)-1].Recoverable:
				t.Errorf("errors are %+v, want the last one to have a code and to be final", failures)
			case x.is != errAny && !errors.Is(failures[len(failures)-1], x.is):
				t.Errorf("the error is %v, want it to wrap %v", failures[len(failures)-1], x.is)
			}
		})
	}
}

var errAny = errors.New("any error")

// A moment is when a run is stopped: so long after an event of this kind, or after its beginning.
type moment struct {
	turn  script.Turn
	kind  event.Kind
	after time.Duration
	// begun reports whether the run had got so far that it can be continued: "yes", "no", or empty where that
	// depends on how busy the machine is.
	begun string
}

func slowly(text string) script.Turn { return script.Text(text).Chunked(2, 40*time.Millisecond) }

var moments = map[string]moment{
	"while the CLI starts":   {turn: script.Text("Done."), after: 100 * time.Millisecond, begun: "no"},
	"at init":                {turn: script.Hang(), kind: event.KindInit},
	"before the first word":  {turn: script.Hang(), kind: event.KindInit, after: 300 * time.Millisecond},
	"while the model speaks": {turn: slowly("This takes a while, and nobody will hear the end of it."), kind: event.KindTextDelta, begun: "yes"},
	"while a command runs":   {turn: script.Reply(bash("tail -f /dev/null")), kind: event.KindToolUse, after: 400 * time.Millisecond, begun: "yes"},
}

// A run that is stopped at any moment reports it in time, and leaves nothing behind; what it was about can
// be gone on with.
func TestRun_StopAtAnyMomentEndsInTime(t *testing.T) {
	for version, newCLI := range eachCLI {
		for name, at := range moments {
			if version == "oldest" && at.begun != "yes" {
				continue // nothing of these is another in old CLIs
			}
			t.Run(version+"/"+name, func(t *testing.T) {
				cli := newCLI(t)
				model := claudetest.NewModel(t,
					script.Text("I remember.").When(script.SawText("the second question")),
					at.turn.When(script.SawText("the first question")).Always())
				base := cli.Options(model)
				base.PermissionMode = claude.ModeBypassPermissions
				runner := newRunner(t, base, nil)
				got, took := stopAt(t, runner, at, agent.Request{Prompt: "the first question", Settings: agent.Settings{PartialText: true}})
				got.check(t)
				done := got.done(t)
				if done.Status != event.DoneInterrupted || done.Reason != "that is enough" {
					t.Errorf("done is %+v, want interrupted with the reason", done)
				}
				if took > time.Second {
					t.Errorf("done came %v after the end of the context, want at most 500 ms", took)
				}
				token := done.ResumeToken
				if token == "" && at.begun == "yes" || token != "" && at.begun == "no" || runner.ResumeToken() != token {
					t.Errorf("the token is %q, the runner's %q; want one: %s", token, runner.ResumeToken(), at.begun)
				}
				if token == "" {
					return
				}
				again := record(t, runner.Run(inTime(t), agent.Request{Prompt: "the second question"})).done(t)
				if again.Status != event.DoneSuccess || again.Result != "I remember." || !model.LastRequest().SawText("the first question") {
					t.Errorf("the next run ended with %+v, and the model saw the first question: %t", again, model.LastRequest().SawText("the first question"))
				}
			})
		}
	}
}

// stopAt runs a request, stops it at a moment and measures how long the end took.
func stopAt(t testing.TB, runner *agent.Runner, at moment, req agent.Request) (recording, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(inTime(t))
	defer cancel(nil)
	stopped := make(chan time.Time, 1)
	stop := func() {
		time.AfterFunc(at.after, func() {
			stopped <- time.Now()
			cancel(errors.New("that is enough"))
		})
	}
	if at.kind == "" {
		stop()
	}
	var got recording
	var ended time.Time
	for e, err := range runner.Run(ctx, req) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == at.kind {
			at.kind = ""
			stop()
		}
		got, ended = append(got, e), time.Now()
	}
	select {
	case at := <-stopped:
		return got, ended.Sub(at)
	default:
		t.Fatalf("the moment to stop did not come: %v", got.kinds())
		return nil, 0
	}
}

func TestDeadline_StopsARun(t *testing.T) {
	cli := claudetest.CLI(t)
	base := cli.Options(claudetest.NewModel(t, script.Hang().Always()))
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	done := record(t, newRunner(t, base, nil).Run(ctx, agent.Request{Prompt: "go"})).done(t)
	if done.Status != event.DoneInterrupted || done.Reason != context.DeadlineExceeded.Error() {
		t.Errorf("done is %+v, want interrupted by the deadline", done)
	}
}

// The CLI is gone when the loop ends, wherever one leaves it: claudetest looks for what is left.
func TestRun_LeavingTheLoopEndsTheCLI(t *testing.T) {
	for _, kind := range []event.Kind{event.KindInit, event.KindToolUse, event.KindToolResult, event.KindDone} {
		t.Run(string(kind), func(t *testing.T) {
			cli := claudetest.CLI(t)
			base := cli.Options(claudetest.NewModel(t, script.Reply(bash("tail -f in.txt & true")), script.Text("Done.")))
			base.PermissionMode = claude.ModeBypassPermissions
			cli.WriteFile(t, "in.txt", "x")
			for e, err := range newRunner(t, base, nil).Run(inTime(t), agent.Request{Prompt: "go"}) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == kind {
					return
				}
			}
			t.Errorf("there was no %s", kind)
		})
	}
}

// A run continues the last one, on both CLIs; a fresh one does not.
func TestRun_ContinuesTheLastRun(t *testing.T) {
	for name, newCLI := range eachCLI {
		t.Run(name, func(t *testing.T) {
			cli := newCLI(t)
			model := claudetest.NewModel(t, script.Text("Hello.").Always())
			runner := newRunner(t, cli.Options(model), nil)
			var tokens []string
			for i, fresh := range []bool{false, false, true} {
				got := record(t, runner.Run(inTime(t), agent.Request{Prompt: fmt.Sprintf("question %d", i), Fresh: fresh}))
				got.check(t)
				done := got.done(t)
				tokens = append(tokens, done.ResumeToken)
				if done.ResumeToken == "" || got[0].SessionID != done.ResumeToken {
					t.Errorf("run %d has the token %q in the session %q", i, done.ResumeToken, got[0].SessionID)
				}
				if saw := model.LastRequest().SawText("question 0"); saw != (i < 2) {
					t.Errorf("in run %d the model saw the first question: %t", i, saw)
				}
			}
			if tokens[0] != tokens[1] || tokens[1] == tokens[2] {
				t.Errorf("tokens are %q, want the first two to be the same", tokens)
			}
		})
	}
}

// Without a transcript there is nothing that a token could continue.
func TestResumeToken_AbsentWithoutATranscript(t *testing.T) {
	cli := claudetest.CLI(t)
	base := cli.Options(claudetest.NewModel(t, script.Text("Done.")))
	base.NoPersistence = true
	if done := run(t, base, agent.Request{Prompt: "go"}).done(t); done.Status != event.DoneSuccess || done.ResumeToken != "" {
		t.Errorf("done is %+v, want success without a token", done)
	}
}

// The session of the token need not exist any more.
func TestResume_UnknownTokenIsRefused(t *testing.T) {
	for name, newCLI := range eachCLI {
		t.Run(name, func(t *testing.T) {
			cli := newCLI(t)
			base := cli.Options(claudetest.NewModel(t))
			got := record(t, newRunner(t, base, nil).Run(inTime(t), agent.Request{Prompt: "go", Resume: "6f9619ff-8b86-4d11-b42d-00c04fc964ff"}))
			got.check(t)
			if done := got.done(t); done.Status != event.DoneError || done.ResumeToken != "" || !strings.Contains(done.Result, "no such session") {
				t.Errorf("the run ended with %+v, want an error that says so", done)
			}
		})
	}
}
