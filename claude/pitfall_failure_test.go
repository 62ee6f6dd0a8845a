// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// The CLI exits with code 1 after an error result. That is the result's error, not a crash.
func TestPitfall28_ExitAfterAnErrorResultIsNoCrash(t *testing.T) {
	t.Run("real", func(t *testing.T) {
		cli := claudetest.CLI(t)
		model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "echo one"}).Always())
		opts := cli.Options(model)
		opts.MaxTurns = 1
		c := claudetest.Connect(t, opts)
		_, messages, err := collect(c.Turn(t.Context(), claude.Text("go on")))
		var failed *claude.ResultError
		if !errors.As(err, &failed) || !errors.Is(err, claude.ErrMaxTurns) || failed.Message == nil {
			t.Errorf("error %v, want a ResultError with its message", err)
		}
		if len(of[*claude.ResultMessage](messages)) != 1 {
			t.Error("the result itself was not delivered")
		}
		if err := c.Close(); err != nil { // the exit code is 1
			t.Errorf("Close: %v", err)
		}
	})
	const failure = `{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["the disk is full"],"uuid":"u","session_id":"s"}`
	for _, tc := range []struct {
		name  string
		then  func(s *claudetest.ScriptSession)
		crash bool
	}{
		{"exits", func(*claudetest.ScriptSession) {}, false},
		{"reports that it is idle, exits", func(s *claudetest.ScriptSession) { s.State("idle") }, false},
		{"goes on, then crashes", func(s *claudetest.ScriptSession) { s.SendText("Next try.") }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := connectScripted(t, func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.State("running")
				s.Line(failure)
				tc.then(s)
				s.Exit(1)
			})
			if err := c.Send(t.Context(), claude.Text("go")); err != nil {
				t.Log("the CLI has ended before Send was done:", err)
			}
			_, _, err := collect(c.Messages())
			var failed *claude.ResultError
			if got := errors.As(err, &failed); got == tc.crash {
				t.Errorf("error %v; want a ResultError: %t", err, !tc.crash)
			}
			if tc.crash {
				wantDeath(t, "Messages", err, 1, "")
			} else if !strings.Contains(advice.Text(err), "the disk is full") {
				t.Errorf("error %v, want the CLI's reason", err)
			}
		})
	}
}

// An API error comes as a result of subtype "success" that is an error all the same. The text must
// be the API's, not the subtype.
func TestPitfall29_ErrorTextIsNotSuccess(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Fail(403, "the door is shut").Always())
	_, _, err := collect(claude.Query(t.Context(), "hi", cli.Options(model)))
	if err == nil || strings.Contains(advice.Text(err), "success") || !strings.Contains(advice.Text(err), "the door is shut") {
		t.Errorf("error %v, want the API's words and no success", err)
	}
}

// A CLI that ends instead of answering the handshake must be reported at once and with its words,
// not as a time-out a minute later.
func TestPitfall30_DeathDuringTheHandshake(t *testing.T) {
	t.Run("unknown flag", func(t *testing.T) {
		cli, model := claudetest.CLI(t), claudetest.NewModel(t)
		opts := cli.Options(model)
		opts.ExtraArgs = []string{"--no-such-flag"}
		wantQuickDeath(t, opts, "unknown option")
	})
	t.Run("session id in use", func(t *testing.T) {
		cli, model := claudetest.CLI(t), claudetest.NewModel(t, script.Text("ok"))
		opts := cli.Options(model)
		opts.SessionID = "7b0b5f0e-94d9-4c7f-9d42-0f6f0a5a6f11"
		if _, _, err := collect(claude.Query(t.Context(), "hi", opts)); err != nil {
			t.Fatal(err)
		}
		wantQuickDeath(t, opts, "already in use")
	})
	t.Run("unknown session", func(t *testing.T) {
		cli, model := claudetest.CLI(t), claudetest.NewModel(t)
		opts := cli.Options(model)
		opts.Resume = "7b0b5f0e-94d9-4c7f-9d42-0f6f0a5a6f11"
		_, err := claude.Connect(t.Context(), opts)
		var failed *claude.ResultError
		if !errors.As(err, &failed) || !strings.Contains(advice.Text(err), "No conversation found") {
			t.Errorf("error %v, want the result's words", err)
		}
	})
	for name, die := range map[string]claudetest.CLIScript{
		"before it reads":   func(s *claudetest.ScriptSession) { s.Stderr("bad luck"); s.Exit(1) },
		"after it has read": func(s *claudetest.ScriptSession) { s.Read(); s.Stderr("bad luck"); s.Exit(1) },
		"in the middle of it": func(s *claudetest.ScriptSession) {
			s.Read()
			s.Write(`{"type":"control_resp`)
			s.Stderr("bad luck")
			s.Exit(1)
		},
		"after other messages": func(s *claudetest.ScriptSession) { s.Read(); s.SendText("hi"); s.Stderr("bad luck"); s.Exit(1) },
		"while it asks": func(s *claudetest.ScriptSession) {
			s.Read()
			s.Ask("hook_callback", "")
			s.Stderr("bad luck")
			s.Exit(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				_, err := claude.Connect(t.Context(), claudetest.ScriptCLI(t, die).Options())
				wantDeath(t, "Connect", err, 1, "bad luck")
				if took := time.Since(started); took > 100*time.Millisecond {
					t.Errorf("Connect took %v, want no more than 100 ms", took)
				}
			})
		})
	}
}

func wantQuickDeath(t *testing.T, opts *claude.Options, reason string) {
	t.Helper()
	started := time.Now()
	_, err := claude.Connect(t.Context(), opts)
	wantDeath(t, "Connect", err, 1, reason)
	var dead *claude.ProcessError
	if errors.As(err, &dead) && dead.During != "initialize" {
		t.Errorf("it ended during %q, want initialize", dead.During)
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("Connect took %v", took)
	}
}

// Servers and hooks can make the start slow. How long to wait is the caller's choice.
func TestPitfall31_SlowHandshake(t *testing.T) {
	for _, tc := range []struct {
		name        string
		takes       time.Duration
		limit       time.Duration
		wantTimeout time.Duration
	}{
		{"slow", 50 * time.Second, 0, 0},
		{"too slow", 70 * time.Second, 0, 60 * time.Second},
		{"very slow, allowed", time.Hour, 2 * time.Hour, 0},
		{"impatient", 10 * time.Second, time.Second, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
					hello := s.Await("control_request")
					time.Sleep(tc.takes)
					s.Answer(hello, map[string]any{})
					s.UntilEOF()
				}).Options()
				opts.InitializeTimeout = tc.limit
				c, err := claude.Connect(t.Context(), opts)
				if tc.wantTimeout == 0 {
					if err != nil {
						t.Fatal(err)
					}
					_ = c.Close()
					return
				}
				var late *claude.ControlTimeoutError
				if !errors.As(err, &late) || late.Subtype != "initialize" || late.After != tc.wantTimeout {
					t.Errorf("error %v, want a ControlTimeoutError after %v", err, tc.wantTimeout)
				}
				time.Sleep(tc.takes) // the script wakes up only then
			})
		})
	}
}
