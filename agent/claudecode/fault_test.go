// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
)

const scriptedSession = "0b5c9f0e-5f3a-4d3e-9f57-0c1f4b1f4a11"

// begin plays the beginning of a turn.
func begin(s *claudetest.ScriptSession) {
	s.Await("user")
	s.State("running")
	s.JSON(map[string]any{"type": "system", "subtype": "init", "model": "m", "cwd": "/", "tools": []string{"Bash"}, "session_id": scriptedSession, "uuid": "i"})
}

func sendBlock(s *claudetest.ScriptSession, block map[string]any) {
	s.JSON(map[string]any{
		"type": "assistant", "session_id": scriptedSession, "uuid": "a", "parent_tool_use_id": nil,
		"message": map[string]any{"id": "m1", "role": "assistant", "model": "m", "content": []any{block}},
	})
}

func callBash(s *claudetest.ScriptSession) {
	sendBlock(s, map[string]any{"type": "tool_use", "id": "t1", "name": "Bash", "input": map[string]any{}})
}

func result(s *claudetest.ScriptSession, text string) {
	s.JSON(map[string]any{"type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 1, "duration_ms": 1, "session_id": scriptedSession, "uuid": "r"})
}

func refuseToStart(s *claudetest.ScriptSession) {
	s.JSON(map[string]any{"type": "result", "subtype": "error_during_execution", "is_error": true, "errors": []string{"not as root"}, "startup_failure_reason": "bypass_root", "session_id": scriptedSession, "uuid": "r"})
}

// resultOfTask ends a turn that the CLI began by itself.
func resultOfTask(s *claudetest.ScriptSession) {
	s.JSON(map[string]any{"type": "result", "subtype": "success", "is_error": false, "result": "a task ended", "origin": map[string]any{"kind": "task-notification"}, "session_id": scriptedSession, "uuid": "r0"})
}

// A CLI that dies reports why if it can, and the run ends in good order at whatever stage it was.
func TestFault_CLIDiesAtEachStage(t *testing.T) {
	const prompt = "the inbound token"
	for name, x := range map[string]struct {
		script claudetest.CLIScript
		kinds  []event.Kind // empty: the run is refused
		status event.DoneStatus
		code   string
		token  string
	}{
		"at once":           {script: func(s *claudetest.ScriptSession) { s.Exit(1) }},
		"in the handshake":  {script: func(s *claudetest.ScriptSession) { s.Await("control_request"); s.Exit(1) }},
		"before the prompt": {func(s *claudetest.ScriptSession) { s.Initialize(""); s.Exit(1) }, []event.Kind{"error", "done"}, event.DoneError, "CLI_ENDED", prompt},
		"after the prompt":  {func(s *claudetest.ScriptSession) { s.Initialize(""); s.Await("user"); s.Exit(3) }, []event.Kind{"error", "done"}, event.DoneError, "CLI_ENDED", prompt},
		"after init":        {func(s *claudetest.ScriptSession) { s.Initialize(""); begin(s); s.Exit(1) }, []event.Kind{"init", "error", "done"}, event.DoneError, "CLI_ENDED", prompt},
		"in good order":     {func(s *claudetest.ScriptSession) { s.Initialize(""); begin(s); s.Exit(0) }, []event.Kind{"init", "error", "done"}, event.DoneError, "CLI_ENDED", prompt},
		"after a call":      {func(s *claudetest.ScriptSession) { s.Initialize(""); begin(s); callBash(s); s.Exit(1) }, []event.Kind{"init", "tool_use", "error", "done"}, event.DoneError, "CLI_ENDED", scriptedSession},
		"in half a line": {func(s *claudetest.ScriptSession) {
			s.Initialize("")
			begin(s)
			callBash(s)
			s.Write(`{"type":"resu`)
			s.Exit(1)
		}, []event.Kind{"init", "tool_use", "error", "done"}, event.DoneError, "CLI_ENDED", scriptedSession},
		"after the result":                 {func(s *claudetest.ScriptSession) { s.Initialize(""); begin(s); callBash(s); result(s, "ok"); s.Exit(1) }, []event.Kind{"init", "tool_use", "done"}, event.DoneSuccess, "", scriptedSession},
		"with a reason":                    {func(s *claudetest.ScriptSession) { s.Initialize(""); s.Await("user"); refuseToStart(s); s.Exit(1) }, []event.Kind{"error", "done"}, event.DoneError, "bypass_root", prompt},
		"with a reason, before the prompt": {func(s *claudetest.ScriptSession) { s.Initialize(""); refuseToStart(s); s.Exit(1) }, []event.Kind{"error", "done"}, event.DoneError, "bypass_root", prompt},
		"after a turn of its own": {func(s *claudetest.ScriptSession) {
			s.Initialize("")
			begin(s)
			resultOfTask(s)
			s.State("idle")
			s.Exit(0)
		}, []event.Kind{"init", "error", "done"}, event.DoneError, "MISSING_RESULT", scriptedSession},
		"after a long line": {func(s *claudetest.ScriptSession) {
			s.Initialize("")
			begin(s)
			s.Line(strings.Repeat("x", 2<<20))
			s.UntilEOF()
		}, []event.Kind{"init", "error", "done"}, event.DoneError, "SDK_STREAM_ERROR", prompt},
		"not at all, just ok": {func(s *claudetest.ScriptSession) {
			s.Initialize("")
			begin(s)
			result(s, "ok")
			s.State("idle")
			s.UntilEOF()
		}, []event.Kind{"init", "done"}, event.DoneSuccess, "", scriptedSession},
	} {
		t.Run(name, func(t *testing.T) {
			opts := claudetest.ScriptCLI(t, x.script).Options()
			opts.MaxLineBytes = 1 << 20
			a := newAdapter(t, opts)
			req := agent.Request{Prompt: "go", Resume: prompt}
			if x.kinds == nil {
				if err := refused(t, a, req); errors.Is(err, agent.ErrUnavailable) {
					t.Errorf("the run was refused with %v, which is not about a CLI that is there", err)
				}
				return
			}
			got := record(t, a.Run(inTime(t), req))
			if diff := cmp.Diff(x.kinds, got.kinds()); diff != "" {
				t.Fatalf("events (-want +got):\n%s", diff)
			}
			done := got.done(t)
			if done.Status != x.status || done.ResumeToken != x.token {
				t.Errorf("done is %+v, want %s with the token %q", done, x.status, x.token)
			}
			for _, failure := range of[event.Error](got) {
				if failure.Code != x.code || failure.Cause == nil || failure.Message == "" || failure.Recoverable {
					t.Errorf("the error is %+v, want a final one with the code %s", failure, x.code)
				}
			}
		})
	}
}

// The CLI may have ended before the first prompt is sent. Why it has not started is the error then too.
func TestSend_CLIHasRefusedToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) { s.Initialize(""); refuseToStart(s); s.Exit(1) }).Options()
		c, err := newAdapter(t, opts).Open(inTime(t), agent.Request{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		synctest.Wait()
		for range 2 {
			failures := of[event.Error](record(t, c.Send(inTime(t), "go")))
			if len(failures) != 1 || failures[0].Code != "bypass_root" || strings.Contains(failures[0].Message, "Request.Resume") {
				t.Errorf("the errors are %+v, want one with the code bypass_root", failures)
			}
		}
	})
}

// A CLI that does not heed an interrupt is not waited for: done comes first, and then it is ended.
func TestFault_CLIThatIgnoresAnInterruptIsKilled(t *testing.T) {
	for name, x := range map[string]struct {
		script claudetest.CLIScript
		token  string
	}{
		"never answers":          {func(s *claudetest.ScriptSession) { s.Initialize(""); begin(s); s.Hang() }, ""},
		"answers, and goes on":   {func(s *claudetest.ScriptSession) { s.Initialize(""); begin(s); s.UntilEOF() }, ""},
		"has begun":              {func(s *claudetest.ScriptSession) { s.Initialize(""); begin(s); callBash(s); s.UntilEOF() }, scriptedSession},
		"lives through a signal": {func(s *claudetest.ScriptSession) { s.IgnoreSignals(); s.Initialize(""); begin(s); s.Hang() }, ""},
		"sends the result alone": {func(s *claudetest.ScriptSession) {
			s.Initialize("")
			begin(s)
			s.Answer(s.Await("control_request"), map[string]any{})
			s.JSON(map[string]any{"type": "result", "subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming", "session_id": scriptedSession, "uuid": "r"})
			s.UntilEOF() // and never idle
		}, scriptedSession},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAdapter(t, claudetest.ScriptCLI(t, x.script).Options())
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var stopped time.Time
				for e, err := range a.Run(ctx, agent.Request{Prompt: "go"}) {
					switch p := e.Payload.(type) {
					case event.Init:
						time.Sleep(time.Second)
						stopped = time.Now()
						cancel(errors.New("enough"))
					case event.Done:
						if took := time.Since(stopped); took > 350*time.Millisecond {
							t.Errorf("done came after %v, want at most 350ms", took)
						}
						if p.Status != event.DoneInterrupted || p.Reason != "enough" || p.ResumeToken != x.token {
							t.Errorf("done is %+v, want interrupted with the token %q", p, x.token)
						}
					case event.ToolCall, isolation.Protection:
					default:
						t.Errorf("unexpected: %+v, %v", e, err)
					}
				}
				if stopped.IsZero() {
					t.Error("the run did not begin")
				}
			})
		})
	}
}

// A run that is stopped before it begins has no event but done, and what was to be resumed still can be.
func TestStop_DuringStartYieldsOnlyDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(t, claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) { s.Hang() }).Options())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		for e, err := range a.Run(ctx, agent.Request{Prompt: "go", Resume: "token"}) {
			done, ok := e.Payload.(event.Done)
			if err != nil || !ok || done.Status != event.DoneInterrupted || done.ResumeToken != "token" || done.Reason != "context deadline exceeded" {
				t.Errorf("the run ended with %+v, %v", e.Payload, err)
			}
			if took := time.Since(begun); took != time.Second {
				t.Errorf("done came after %v, want it with the deadline", took)
			}
		}
	})
}

func TestStop_BeforeTheRunStartsNoProcess(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) { s.Hang() })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	got := record(t, newAdapter(t, cli.Options()).Run(ctx, agent.Request{Prompt: "go", Resume: "token"}))
	if done := got.done(t); len(got) != 1 || done.Status != event.DoneInterrupted || done.Reason != "enough" || done.ResumeToken != "token" {
		t.Errorf("the run ended with %+v in %v", done, got.kinds())
	}
	if started := cli.Commands(); len(started) != 0 {
		t.Errorf("%d CLIs were started", len(started))
	}
}

// A turn that the CLI begins by itself in a resumed session is not the answer, and neither is the repair of a
// session that was cut off.
func TestResume_TurnOfTheCLIIsNotTheAnswer(t *testing.T) {
	for name, first := range map[string]func(s *claudetest.ScriptSession){
		"of a task": resultOfTask,
		"to repair": func(s *claudetest.ScriptSession) { result(s, "") },
	} {
		for from, x := range map[string]struct{ base, request string }{"the base's": {base: "token"}, "the request's": {request: "token"}} {
			t.Run(name+", "+from+" session", func(t *testing.T) {
				base := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
					s.Initialize("")
					begin(s)
					first(s)
					s.State("idle")
					s.State("running")
					sendBlock(s, map[string]any{"type": "text", "text": "the answer"})
					result(s, "the answer")
					s.State("idle")
					s.UntilEOF()
				}).Options()
				base.Resume = x.base
				got := record(t, newAdapter(t, base).Run(inTime(t), agent.Request{Prompt: "go", Resume: x.request}))
				if done := got.done(t); done.Result != "the answer" || done.Status != event.DoneSuccess {
					t.Errorf("the run ended with %+v in %v", done, got.kinds())
				}
			})
		}
	}
}

// What breaks out of the loop may be a panic; nothing is left then either.
func TestRun_PanicInTheLoopEndsIt(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		begin(s)
		s.UntilEOF()
	})
	defer func() {
		if recover() == nil {
			t.Error("the panic is lost")
		}
	}()
	for range newAdapter(t, cli.Options()).Run(inTime(t), agent.Request{Prompt: "go"}) {
		panic("enough")
	}
}

// One adapter runs many requests at once; the options of one are not seen in another.
func TestAdapter_ConcurrentRunsShareNoOptions(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		for _, arg := range s.Command().Args {
			if model, ok := strings.CutPrefix(arg, "--model="); ok {
				s.Turn(model)
			}
		}
		s.UntilEOF()
	})
	base := cli.Options()
	base.MCPServers = map[string]claude.MCPServer{"other": claude.MCPHTTP{URL: "http://127.0.0.1:1"}}
	a := newAdapter(t, base)
	var tasks []agent.Task
	for _, model := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight"} {
		r, err := agent.NewRunner(a, &agent.RunnerOptions{Role: model})
		if err != nil {
			t.Fatal(err)
		}
		var ran []string
		tasks = append(tasks, agent.Task{Runner: r, Request: agent.Request{Prompt: "go", Settings: agent.Settings{Model: model, Effort: "high", Permissions: levels("ddd")}, Registry: desk(t, &ran)}})
	}
	ended := 0
	for e := range agent.Parallel(inTime(t), tasks...) {
		if done, ok := e.Payload.(event.Done); ok {
			ended++
			if done.Result != e.Role || done.Status != event.DoneSuccess {
				t.Errorf("the run of %s ended with %+v", e.Role, done)
			}
		}
	}
	if ended != len(tasks) || len(base.MCPServers) != 1 {
		t.Errorf("%d of %d runs ended, and the base has %d servers", ended, len(tasks), len(base.MCPServers))
	}
}
