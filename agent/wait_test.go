// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

func TestWait_ReturnsTheDoneAndTheError(t *testing.T) {
	emit := agenttest.Emit
	retry := event.Error{Code: "overloaded", Message: "busy", Recoverable: true}
	fatal := event.Error{Code: "auth", Message: "no key"}
	cases := []struct {
		name   string
		script agenttest.Step
		status event.DoneStatus
		want   string // of the error
	}{
		{"success", emit(text("a"), event.Done{Status: event.DoneSuccess}), event.DoneSuccess, ""},
		{"success after a retry", emit(retry, event.Done{Status: event.DoneSuccess}), event.DoneSuccess, ""},
		{"a limit", emit(event.Done{Status: event.DoneMaxTurns}), event.DoneMaxTurns, ""},
		{"interrupted", emit(event.Done{Status: event.DoneInterrupted}), event.DoneInterrupted, ""},
		{"an error event", emit(fatal, event.Done{Status: event.DoneError, Result: "it failed"}), event.DoneError, "no key"},
		{"a retry is not what broke the run", emit(fatal, retry, event.Done{Status: event.DoneError}), event.DoneError, "no key"},
		{"only a result", emit(retry, event.Done{Status: event.DoneError, Result: "it failed"}), event.DoneError, "it failed"},
		{"not a word", emit(event.Done{Status: event.DoneError}), event.DoneError, "the agent failed and gave no reason"},
		{"the adapter failed", agenttest.Fail(errBroken), event.DoneError, "the pipe broke"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			done, err := agent.Wait(scripted(t, c.script).Run(t.Context(), agent.Request{}))
			if done.Status != c.status {
				t.Errorf("status %s, want %s", done.Status, c.status)
			}
			if got := errorText(err); got != c.want {
				t.Errorf("error %q, want %q", got, c.want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWait_ReturnsTheErrorOfAnAdapterAndOfARefusal(t *testing.T) {
	if _, err := agent.Wait(scripted(t, agenttest.Fail(errBroken)).Run(t.Context(), agent.Request{})); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want the adapter's", err)
	}
	bad := agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{Mode: "yolo"}}}
	if done, err := agent.Wait(scripted(t).Run(t.Context(), bad)); err == nil || done.Status != "" {
		t.Errorf("got %+v and %v, want a refusal", done, err)
	}
}

func TestWait_StreamWithoutADoneIsAnError(t *testing.T) {
	empty := func(func(event.Event, error) bool) {}
	if _, err := agent.Wait(empty); err == nil {
		t.Error("no error, want one that says that the done is missing")
	}
}
