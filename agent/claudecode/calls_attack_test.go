// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

type onceApprover struct{ asked int }

func (a *onceApprover) Approve(context.Context, gate.Question) (gate.Answer, error) {
	if a.asked++; a.asked == 1 {
		return gate.Answer{Verdict: event.Allow}, nil
	}
	return gate.Answer{Verdict: event.Deny}, nil
}

// A program that speaks in the name of the CLI gets one run for one approval, whatever it has hooks asked in between.
func TestCalls_OneApprovalIsOneRun(t *testing.T) {
	g, err := gate.New(gate.AskTools("mcp__my_desk__save"), gate.Default(event.Deny))
	if err != nil {
		t.Fatal(err)
	}
	yes := &onceApprover{}
	e := gate.NewEngine(g, &gate.EngineOptions{Approver: yes})
	o, call, ran := deskOf(t, e, claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) { return nil, nil }))
	in := &claude.PreToolUseInput{ToolName: "mcp__my_desk__save", ToolUseID: "id", ToolInput: json.RawMessage(`{"a":1}`)}
	_, _ = o.Hooks[0].Func(t.Context(), in)
	call(toolCall("id", `{"a":1}`))
	if *ran != 1 {
		t.Fatal("the approved call does not run")
	}
	for range 5 {
		_, _ = o.Hooks[1].Func(t.Context(), in) // a hook without an opinion
		call(toolCall("id", `{"a":1}`))
	}
	if *ran != 1 {
		t.Errorf("one approval, %d runs (asked %d times)", *ran, yes.asked)
	}
}

// The same with questions of the CLI, which an engine answers as it did.
func TestCalls_OneApprovalIsOneRunByQuestions(t *testing.T) {
	for _, again := range []bool{false, true} {
		g, err := gate.New(gate.AskTools("mcp__my_desk__save"), gate.Default(event.Deny))
		if err != nil {
			t.Fatal(err)
		}
		yes := &onceApprover{}
		e := gate.NewEngine(g, &gate.EngineOptions{Approver: yes})
		o, call, ran := deskOf(t, e, claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) { return nil, nil }))
		in := &claude.PreToolUseInput{ToolName: "mcp__my_desk__save", ToolUseID: "id", ToolInput: json.RawMessage(`{"a":1}`)}
		_, _ = o.Hooks[0].Func(t.Context(), in)
		call(toolCall("id", `{"a":1}`))
		for range 5 {
			if again {
				_, _ = o.Hooks[1].Func(t.Context(), in)
			}
			answer, err := Permission(e, nil)(t.Context(), &claude.PermissionRequest{ToolName: in.ToolName, ToolUseID: "id", Input: in.ToolInput})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = o.CanUseTool(context.WithValue(t.Context(), answerKey{}, answer), &claude.PermissionRequest{ToolName: in.ToolName, ToolUseID: "id", Input: in.ToolInput})
			call(toolCall("id", `{"a":1}`))
		}
		if *ran != 1 {
			t.Errorf("a hook asked again %t: one approval, %d runs (asked %d times)", again, *ran, yes.asked)
		}
	}
}
