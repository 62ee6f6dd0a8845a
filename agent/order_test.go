// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// asking makes a runner that asks about everything, and whose approver allows after a while.
func asking(t *testing.T, takes time.Duration, steps ...agenttest.Step) *agent.Runner {
	t.Helper()
	return newRunner(t, withTools(agenttest.New(steps...)), &agent.RunnerOptions{
		Defaults: agent.Request{Settings: agent.Settings{Permissions: &gate.Permissions{}}},
		Approver: gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
			time.Sleep(takes)
			return gate.Answer{Verdict: event.Allow}, nil
		}),
	})
}

// The events of the host about a call are between the tool_use and the tool_result, whichever of the two
// goroutines was faster.
func TestOrder_DecisionIsBetweenTheCallAndItsResult(t *testing.T) {
	bash := call("a", "Bash")
	result := agenttest.Emit(event.ToolResult{ID: "a"})
	done := agenttest.Done("")
	cases := []struct {
		name   string
		script []agenttest.Step
		want   string
	}{
		{
			"the agent asks first",
			[]agenttest.Step{agenttest.Decide(bash), agenttest.Emit(bash), result, done},
			"tool_use:a permission_request:a gate:decision:a tool_result:a done:success",
		},
		{
			"the agent reports first",
			[]agenttest.Step{agenttest.Emit(bash), agenttest.Decide(bash), result, done},
			"tool_use:a permission_request:a gate:decision:a tool_result:a done:success",
		},
		{
			"both at once",
			[]agenttest.Step{agenttest.UseTool(bash, "ok"), done},
			"tool_use:a permission_request:a gate:decision:a tool_result:a done:success",
		},
		{
			"other events come between",
			[]agenttest.Step{agenttest.Decide(bash), agenttest.Emit(text("x"), event.ToolProgress{ID: "a"}, bash), result, done},
			"text tool:progress:a tool_use:a permission_request:a gate:decision:a tool_result:a done:success",
		},
		{
			"there is no tool_use",
			[]agenttest.Step{agenttest.Decide(bash), result, done},
			"permission_request:a gate:decision:a tool_result:a done:success",
		},
		{
			"the decision comes after the result of an unknown call",
			[]agenttest.Step{result, agenttest.Decide(bash), agenttest.Emit(text("x")), done},
			"tool_result:a permission_request:a gate:decision:a text done:success",
		},
		{
			"there is neither",
			[]agenttest.Step{agenttest.Decide(bash), agenttest.Decide(call("b", "Read")), agenttest.Emit(text("x")), done},
			"text permission_request:a gate:decision:a gate:decision:b done:success",
		},
		{
			"the adapter fails first",
			[]agenttest.Step{agenttest.Decide(bash), agenttest.Fail(errBroken)},
			"permission_request:a gate:decision:a error:ADAPTER_ERROR done:error",
		},
		{
			"calls cross",
			[]agenttest.Step{agenttest.Decide(bash), agenttest.Decide(call("b", "Read")), agenttest.Emit(call("b", "Read")), agenttest.Emit(bash), done},
			"tool_use:b gate:decision:b tool_use:a permission_request:a gate:decision:a done:success",
		},
		{
			"a call without an id",
			[]agenttest.Step{agenttest.Decide(call("", "Read")), agenttest.Emit(text("x")), done},
			"gate:decision text done:success",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				expect(t, collect(t, asking(t, time.Second, c.script...).Run(t.Context(), agent.Request{})), c.want)
			})
		})
	}
}

// While the approver thinks about the answer, the question is there to be read.
func TestOrder_QuestionIsReadBeforeItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		at := map[event.Kind]time.Duration{}
		for e := range asking(t, time.Hour/60, agenttest.UseTool(call("a", "Bash"), "ok"), agenttest.Done("")).Run(t.Context(), agent.Request{}) {
			at[e.Kind] = time.Since(begun)
		}
		want := map[event.Kind]time.Duration{
			event.KindToolUse: 0, event.KindPermissionRequest: 0,
			event.KindDecision: time.Minute, event.KindToolResult: time.Minute, event.KindDone: time.Minute,
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("times (-want +got):\n%s", diff)
		}
	})
}

// An event of the host has the session, the turn and the subagent of its call.
func TestDecision_HasTheSessionTurnAndSubagentOfItsCall(t *testing.T) {
	inner, outer := call("inner", "Bash"), call("outer", "Read")
	at := func(session string, turn int, parent, subagent string, p event.Payload) agenttest.Step {
		return agenttest.EmitEvents(event.Event{SessionID: session, Turn: turn, ParentToolUseID: event.CallID(parent), AgentID: subagent, Payload: p})
	}
	r := asking(t, 0,
		at("s1", 0, "", "", event.Init{}),
		agenttest.Decide(inner), // before it is reported
		at("s1", 2, "task", "sub", inner),
		at("s2", 3, "", "", outer),
		agenttest.Decide(outer), // after it was reported
		at("s3", 4, "", "", text("x")),
		agenttest.Decide(call("unknown", "Read")),
		agenttest.Done(""),
	)
	want := map[string]string{"inner": "s1 2 task sub", "outer": "s2 3  ", "unknown": "s3 0  "}
	seen := 0
	for _, e := range collect(t, r.Run(t.Context(), agent.Request{})) {
		if e.Kind != event.KindDecision && e.Kind != event.KindPermissionRequest {
			continue
		}
		seen++
		if got := placeOf(e); got != want[string(e.CallID())] || e.Agent != "scripted" {
			t.Errorf("%s of %s by %s is at %q, want %q", e.Kind, e.CallID(), e.Agent, got, want[string(e.CallID())])
		}
	}
	if seen != 4 {
		t.Errorf("saw %d events of the host, want 4", seen)
	}
}

func placeOf(e event.Event) string {
	return e.SessionID + " " + string(rune('0'+e.Turn)) + " " + string(e.ParentToolUseID) + " " + e.AgentID
}

// A stop withdraws the question that the approver is thinking about; the stream does not wait for the answer.
func TestStop_DoesNotWaitForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begun := time.Now()
		var events []event.Event
		for e := range asking(t, time.Hour, agenttest.UseTool(call("a", "Bash"), "ok"), agenttest.Done("")).Run(ctx, agent.Request{}) {
			events = append(events, e)
			if e.Kind == event.KindPermissionRequest {
				time.AfterFunc(time.Second, cancel)
			}
		}
		expect(t, events, "tool_use:a permission_request:a done:interrupted")
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the run took %v, want 1s", took)
		}
		if got := droppedIn(events); got != "2" { // the decision and the result
			t.Errorf("dropped %s events, want 2", got)
		}
		time.Sleep(time.Hour) // the approver does not listen
	})
}
