// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/event"
)

// doneOf is the done event, and the error event before it.
func doneOf(t testing.TB, events []event.Event) (done event.Done, failure *event.Error) {
	t.Helper()
	for _, e := range events {
		switch p := e.Payload.(type) {
		case event.Error:
			failure = &p
		case event.Done:
			return p, failure
		}
	}
	t.Fatalf("no done event among %v", payloads(events))
	return done, nil
}

func TestDone_MissingResultIsAnError(t *testing.T) {
	for name, end := range map[string]*claude.TurnEnd{"no end": nil, "no answer": {}} {
		t.Run(name, func(t *testing.T) {
			n, tick := newNormaliser()
			n.events(decode(t, `{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}}`))
			tick()
			done, failure := doneOf(t, n.done(end))
			if done.Status != event.DoneError || done.Usage.ToolUses != 1 || done.Usage.Tokens != nil || done.Usage.Cost != nil {
				t.Errorf("done %+v, want an error with one tool use and nothing else counted", done)
			}
			if failure == nil || failure.Code != codeMissingResult || !errors.Is(failure.Cause, claude.ErrNoAnswer) {
				t.Errorf("error %+v, want %s", failure, codeMissingResult)
			}
		})
	}
}

const repairLine = `{"type":"result","subtype":"success","is_error":false,"result":"","num_turns":0,"usage":{"input_tokens":0,"output_tokens":0},"total_cost_usd":0,"modelUsage":{},"session_id":"s"}`

func TestDone_RepairOfAResumedSessionIsNotTheEnd(t *testing.T) {
	init := `{"type":"system","subtype":"init","model":"m","cwd":"/w","tools":[],"session_id":"s"}`
	answerLine := `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"hi"}]},"session_id":"s"}`
	for _, test := range []struct {
		name   string
		resume string
		lines  []string
		ends   bool
	}{
		{"resumed", "s", []string{init, repairLine}, false},
		{"new session", "", []string{init, repairLine}, true},
		{"resumed, after an answer", "s", []string{init, answerLine, repairLine}, true},
		{"resumed, with a command", "s", []string{init, `{"type":"result","subtype":"success","result":"","local_command":"clear"}`}, true},
		{"resumed, with the prompt it answers", "s", []string{init, `{"type":"result","subtype":"success","result":"","user_message_uuids":["u"]}`}, true},
		{"resumed, and failed", "s", []string{init, `{"type":"result","subtype":"success","is_error":true,"result":""}`}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, tick := newNormaliser()
			n.req = agent.Request{Resume: test.resume}
			events := play(t, n, tick, test.lines...)
			_, ended := events[len(events)-1].Payload.(event.Done)
			if ended != test.ends {
				t.Fatalf("ended %v, want %v", ended, test.ends)
			}
			if !ended {
				done, _ := doneOf(t, play(t, n, tick, answerLine, `{"type":"result","subtype":"success","result":"hi"}`))
				if done.Status != event.DoneSuccess || done.Result != "hi" {
					t.Errorf("done %+v after the repair", done)
				}
			}
		})
	}
}

// The CLI calls an answer in words a success, even if a value was asked for.
func TestDone_MissingStructuredAnswerIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Await("user")
			s.Line(`{"type":"result","subtype":"success","is_error":false,"result":"It is red.","session_id":"s","total_cost_usd":0.5}`)
			s.UntilEOF()
		})
		opts := cli.Options()
		opts.OutputSchema = []byte(colourSchema)
		n := new(normaliser)
		c := claudetest.Connect(t, opts)
		for m, err := range c.Turn(t.Context(), claude.Text("Which colour?")) {
			if err != nil && !errors.Is(err, claude.ErrStructuredOutput) {
				t.Fatal(err)
			}
			end, over := m.(*claude.TurnEnd)
			if !over {
				n.events(m)
				continue
			}
			done, failure := doneOf(t, n.done(end))
			if done.Status != event.DoneError || done.Result != "It is red." || done.Output != nil {
				t.Errorf("done %+v, want an error with the words", done)
			}
			if failure == nil || failure.Code != codeOutput || !errors.Is(failure, claude.ErrStructuredOutput) {
				t.Errorf("error %+v, want %s", failure, codeOutput)
			}
			return
		}
		t.Error("the turn did not end")
	})
}

func TestDone_StatusOfAResult(t *testing.T) {
	for _, test := range []struct {
		name, line string
		status     event.DoneStatus
		code       string
		is         error
	}{
		{"success", `{"type":"result","subtype":"success","result":"hi"}`, event.DoneSuccess, "", nil},
		{"turns", `{"type":"result","subtype":"error_max_turns","is_error":true}`, event.DoneMaxTurns, "", nil},
		{"budget", `{"type":"result","subtype":"error_max_budget_usd","is_error":true}`, event.DoneMaxBudget, "", nil},
		{"budget by its reason", `{"type":"result","subtype":"success","is_error":true,"terminal_reason":"budget_exhausted"}`, event.DoneMaxBudget, "", nil},
		{"interrupted while streaming", `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}`, event.DoneInterrupted, "", nil},
		{"interrupted in a tool", `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools"}`, event.DoneInterrupted, "", nil},
		{"execution", `{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["boom"]}`, event.DoneError, "error_during_execution", nil},
		{"API", `{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"api_error_type":"overloaded_error"}`, event.DoneError, "overloaded_error", claude.ErrOverloaded},
		{"API by its status", `{"type":"result","subtype":"success","is_error":true,"api_error_status":429}`, event.DoneError, "rate_limit_error", claude.ErrRateLimited},
		{"connection", `{"type":"result","subtype":"success","is_error":true,"api_error":"connection_failed"}`, event.DoneError, "connection_failed", nil},
		{"refusal", `{"type":"result","subtype":"success","is_error":true,"stop_reason":"refusal"}`, event.DoneError, "refusal", nil},
		{"startup", `{"type":"result","subtype":"error_during_execution","is_error":true,"startup_failure_reason":"cwd_unavailable"}`, event.DoneError, "cwd_unavailable", claude.ErrStartup},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, tick := newNormaliser()
			done, failure := doneOf(t, play(t, n, tick, test.line))
			if done.Status != test.status {
				t.Errorf("status %s, want %s", done.Status, test.status)
			}
			if (failure != nil) != (test.code != "") {
				t.Fatalf("error %+v, want code %q", failure, test.code)
			}
			if failure != nil && (failure.Code != test.code || failure.Recoverable || test.is != nil && !errors.Is(failure, test.is)) {
				t.Errorf("error %+v, want code %q and %v", failure, test.code, test.is)
			}
		})
	}
}
